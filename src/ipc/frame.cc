// SPDX-License-Identifier: Apache-2.0
#include "ipc/frame.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "memory/sealed_file.h"

namespace hearth::ipc {
namespace {

// In front of each message. The first descriptor of a spilled one is the memory that holds it.
struct Header {
  uint32_t magic;
  uint32_t isSpilled;
  uint64_t words;
};
static_assert(sizeof(Header) == 2 * sizeof(capnp::word));

constexpr uint32_t kMagic = 0x31447248;
constexpr size_t kMostInlineWords = 4096;
constexpr size_t kMostInlinePieces = 8;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

// Room for the descriptors of one message, aligned as the kernel wants it.
union Control {
  cmsghdr header;
  std::array<char, CMSG_SPACE(kMaxDescriptors * sizeof(int))> bytes;
};

using Pieces = std::span<const std::span<const uint8_t>>;

std::span<const uint8_t> bytesOf(std::span<const capnp::word> words) {
  return {reinterpret_cast<const uint8_t*>(words.data()), words.size_bytes()};
}

Status sendOnce(int socket, const Header& header, Pieces pieces, std::span<const int> descriptors) {
  std::array<iovec, 1 + kMostInlinePieces> parts{};
  parts[0] = {const_cast<Header*>(&header), sizeof header};
  for (size_t i = 0; i < pieces.size(); ++i)
    parts[i + 1] = {const_cast<uint8_t*>(pieces[i].data()), pieces[i].size()};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = 1 + pieces.size();
  Control control;
  if (!descriptors.empty()) {
    message.msg_control = &control;
    message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* const head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(head), descriptors.data(), descriptors.size_bytes());
  }
  while (::sendmsg(socket, &message, MSG_NOSIGNAL) < 0) {
    if (errno == EINTR) continue;
    if (errno == EPIPE || errno == ECONNRESET || errno == ENOTCONN || errno == EAGAIN)
      return fail(ErrorCode::kDeadObject, "{}",
                  errno == EAGAIN ? "The peer of a connection does not read."
                                  : "The peer has closed the connection.");
    if (errno == EBADF) return fail(ErrorCode::kBadData, "A descriptor of a message is not open.");
    return std::unexpected(base::errnoError(errno, "Sending a message"));
  }
  return {};
}

// Takes all descriptors out of a message, so that they are closed whatever happens next.
std::vector<base::Descriptor> takeDescriptors(msghdr* message) {
  std::vector<base::Descriptor> taken;
  for (cmsghdr* head = CMSG_FIRSTHDR(message); head != nullptr; head = CMSG_NXTHDR(message, head)) {
    if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(head) + i * sizeof fd, sizeof fd);
      taken.emplace_back(fd);
    }
  }
  return taken;
}

Result<memory::PoolRef> mapSpilled(const base::Descriptor& file, uint64_t words) {
  if (words > kMaxMessageBytes / sizeof(capnp::word))
    return fail(ErrorCode::kBadData, "A message claims {} words; {} bytes are the limit.", words,
                kMaxMessageBytes);
  const int seals = ::fcntl(file.get(), F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals)
    return fail(ErrorCode::kBadData, "The memory of a long message is not sealed.");
  return memory::Pool::ofFile(file.get(), 0, static_cast<size_t>(words) * sizeof(capnp::word),
                              memory::Mapping::Access::kReadOnly);
}

// Sends a message that lies in pieces.
Status sendPieces(int socket, Pieces pieces, std::span<const int> descriptors) {
  size_t bytes = 0;
  for (const auto& piece : pieces) bytes += piece.size();
  const size_t words = bytes / sizeof(capnp::word);
  const bool isSpilled = words > kMostInlineWords || pieces.size() > kMostInlinePieces;
  if (bytes > kMaxMessageBytes)
    return fail(ErrorCode::kUnsupported, "A message of {} bytes is too long; the limit is {}.",
                bytes, kMaxMessageBytes);
  if (descriptors.size() + (isSpilled ? 1 : 0) > kMaxDescriptors)
    return fail(ErrorCode::kUnsupported, "A message with {} descriptors has too many; {} fit.",
                descriptors.size(), kMaxDescriptors);
  const Header header{kMagic, isSpilled ? 1u : 0u, words};
  if (!isSpilled) return sendOnce(socket, header, pieces, descriptors);
  HEARTH_ASSIGN(const base::Descriptor file, memory::sealedFile(pieces));
  std::vector<int> all = {file.get()};
  all.insert(all.end(), descriptors.begin(), descriptors.end());
  return sendOnce(socket, header, {}, all);
}

}  // namespace

Frame Frame::of(std::span<const capnp::word> words, std::vector<base::Descriptor> descriptors) {
  Frame frame;
  frame.words_ = words;
  frame.descriptors_ = std::move(descriptors);
  return frame;
}

Status sendFrame(int socket, std::span<const capnp::word> words, std::span<const int> descriptors) {
  const std::array pieces = {bytesOf(words)};
  return sendPieces(socket, pieces, descriptors);
}

Status sendMessage(int socket, capnp::MessageBuilder& message, std::span<const int> descriptors) {
  const auto segments = message.getSegmentsForOutput();
  // In front of the segments: how many more than one there are, and their lengths in words.
  std::vector<uint32_t> table = {static_cast<uint32_t>(segments.size() - 1)};
  for (const auto& segment : segments) table.push_back(static_cast<uint32_t>(segment.size()));
  if (table.size() % 2 != 0) table.push_back(0);
  std::vector<std::span<const uint8_t>> pieces;
  pieces.emplace_back(reinterpret_cast<const uint8_t*>(table.data()),
                      table.size() * sizeof(uint32_t));
  for (const auto& segment : segments) pieces.push_back(bytesOf({segment.begin(), segment.size()}));
  return sendPieces(socket, pieces, descriptors);
}

Result<Frame> receiveFrame(int socket) {
  Header header{};
  Frame frame;
  // Uninitialised, since most messages are short.
  frame.inline_.reset(new capnp::word[kMostInlineWords]);
  std::array<iovec, 2> parts{};
  parts[0] = {&header, sizeof header};
  parts[1] = {frame.inline_.get(), kMostInlineWords * sizeof(capnp::word)};
  Control control;
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  message.msg_control = &control;
  message.msg_controllen = sizeof control;
  ssize_t count;
  do {
    message.msg_controllen = sizeof control;
    count = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (count < 0 && errno == EINTR);
  if (count < 0 && (errno == ECONNRESET || errno == ENOTCONN || errno == EPIPE))
    return fail(ErrorCode::kDeadObject, "The peer has closed the connection.");
  if (count < 0 && errno == EAGAIN)
    return fail(ErrorCode::kMissedDeadlineTransient, "No message has come in time.");
  if (count < 0) return std::unexpected(base::errnoError(errno, "Receiving a message"));
  frame.descriptors_ = takeDescriptors(&message);
  if (count == 0) return fail(ErrorCode::kDeadObject, "The peer has closed the connection.");
  if ((message.msg_flags & MSG_CTRUNC) != 0)
    return fail(ErrorCode::kBadData, "A message has more descriptors than can be received.");
  const auto size = static_cast<size_t>(count);
  if ((message.msg_flags & MSG_TRUNC) != 0 || size < sizeof header || header.magic != kMagic ||
      header.isSpilled > 1)
    return fail(ErrorCode::kBadData, "A message of {} bytes is none of a driver's connection.",
                size);
  if (header.isSpilled != 0) {
    if (size != sizeof header || frame.descriptors_.empty())
      return fail(ErrorCode::kBadData, "The memory of a long message is missing.");
    HEARTH_ASSIGN(frame.spilled_, mapSpilled(frame.descriptors_.front(), header.words));
    frame.descriptors_.erase(frame.descriptors_.begin());
    frame.inline_.reset();
    frame.words_ = {reinterpret_cast<const capnp::word*>(frame.spilled_->data()),
                    static_cast<size_t>(header.words)};
    return frame;
  }
  if (header.words != (size - sizeof header) / sizeof(capnp::word) ||
      size % sizeof(capnp::word) != 0)
    return fail(ErrorCode::kBadData, "A message of {} bytes claims {} words.", size, header.words);
  frame.words_ = {frame.inline_.get(), static_cast<size_t>(header.words)};
  return frame;
}

}  // namespace hearth::ipc
