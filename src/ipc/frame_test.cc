// SPDX-License-Identifier: Apache-2.0
#include "ipc/frame.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "ipc/decoding.h"
#include "ipc/paged_message.h"
#include "ipc/testing/socket_pair.h"

namespace hearth::ipc {
namespace {

using testing::HasSubstr;

std::vector<capnp::word> wordsOf(size_t count) {
  std::vector<capnp::word> words(count);
  auto* const bytes = reinterpret_cast<uint8_t*>(words.data());
  std::iota(bytes, bytes + count * sizeof(capnp::word), uint8_t{1});
  return words;
}

bool areEqual(std::span<const capnp::word> a, std::span<const capnp::word> b) {
  return std::ranges::equal(std::as_bytes(a), std::as_bytes(b));
}

// What the frame header of this protocol looks like to somebody who writes one by hand.
struct ByHand {
  uint32_t magic = 0x31447248;
  uint32_t isSpilled = 0;
  uint64_t words = 0;
};

class FrameTest : public testing::Test {
 protected:
  // Sends bytes that no sendFrame() wrote, with a descriptor unless it is negative.
  void sendByHand(const void* bytes, size_t size, int fd = -1) {
    iovec part{const_cast<void*>(bytes), size};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    if (fd >= 0) {
      message.msg_control = control.data();
      message.msg_controllen = control.size();
      cmsghdr* const head = CMSG_FIRSTHDR(&message);
      head->cmsg_level = SOL_SOCKET;
      head->cmsg_type = SCM_RIGHTS;
      head->cmsg_len = CMSG_LEN(sizeof fd);
      std::memcpy(CMSG_DATA(head), &fd, sizeof fd);
    }
    ASSERT_EQ(::sendmsg(pair_.left.get(), &message, 0), static_cast<ssize_t>(size));
  }
  void expectRefused(const std::string& text) {
    const auto frame = receiveFrame(pair_.right.get());
    ASSERT_FALSE(frame);
    EXPECT_EQ(frame.error().code(), ErrorCode::kBadData);
    EXPECT_THAT(frame.error().toString(), HasSubstr(text));
  }

  SocketPair pair_;
};

TEST_F(FrameTest, CarriesMessagesOfAllSizes) {
  for (const size_t count : {size_t{0}, size_t{1}, size_t{4096}, size_t{4097}, size_t{1} << 20}) {
    const auto words = wordsOf(count);
    ASSERT_TRUE(sendFrame(pair_.left.get(), words, {})) << count;
    const auto frame = receiveFrame(pair_.right.get());
    ASSERT_TRUE(frame) << frame.error().toString();
    EXPECT_TRUE(areEqual(frame->words(), words)) << count;
  }
}

TEST_F(FrameTest, CarriesDescriptorsInTheirOrder) {
  for (const size_t count : {size_t{3}, size_t{5000}}) {
    std::array<base::Descriptor, 2> files;
    for (auto& file : files) file = base::Descriptor(::memfd_create("test", MFD_CLOEXEC));
    ASSERT_EQ(::ftruncate(files[1].get(), 77), 0);
    const std::array<int, 2> sent = {files[0].get(), files[1].get()};
    ASSERT_TRUE(sendFrame(pair_.left.get(), wordsOf(count), sent));
    auto frame = receiveFrame(pair_.right.get());
    ASSERT_TRUE(frame) << frame.error().toString();
    ASSERT_EQ(frame->descriptors().size(), 2u);
    EXPECT_EQ(frame->descriptors()[0].size().value_or(1), 0u);
    EXPECT_EQ(frame->descriptors()[1].size().value_or(1), 77u);
    EXPECT_EQ(::fcntl(frame->descriptors()[0].get(), F_GETFD), FD_CLOEXEC);
  }
}

TEST_F(FrameTest, LongMessagesCannotBeChangedByTheirSender) {
  const auto words = wordsOf(5000);
  ASSERT_TRUE(sendFrame(pair_.left.get(), words, {}));
  std::array<uint8_t, 64> bytes{};
  iovec part{bytes.data(), bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ASSERT_GT(::recvmsg(pair_.right.get(), &message, MSG_CMSG_CLOEXEC), 0);
  int fd;
  std::memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
  const base::Descriptor memory(fd);
  EXPECT_NE(::fcntl(memory.get(), F_GET_SEALS) & F_SEAL_WRITE, 0);
  EXPECT_NE(::fcntl(memory.get(), F_GET_SEALS) & F_SEAL_SHRINK, 0);
}

TEST_F(FrameTest, WhatIsTooLargeIsNotSent) {
  const auto words = wordsOf(kMaxMessageBytes / sizeof(capnp::word) + 1);
  const Status tooLong = sendFrame(pair_.left.get(), words, {});
  ASSERT_FALSE(tooLong);
  EXPECT_EQ(tooLong.error().code(), ErrorCode::kUnsupported);
  const std::vector<int> many(kMaxDescriptors + 1, pair_.left.get());
  const Status tooMany = sendFrame(pair_.left.get(), wordsOf(1), many);
  ASSERT_FALSE(tooMany);
  EXPECT_EQ(tooMany.error().code(), ErrorCode::kUnsupported);
  // The connection is still good.
  ASSERT_TRUE(sendFrame(pair_.left.get(), wordsOf(1), {}));
  EXPECT_TRUE(receiveFrame(pair_.right.get()));
}

TEST_F(FrameTest, ADescriptorThatIsNotOpenIsAnError) {
  const std::array<int, 1> closed = {1 << 20};
  const Status sent = sendFrame(pair_.left.get(), wordsOf(1), closed);
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code(), ErrorCode::kBadData);
}

TEST_F(FrameTest, AClosedConnectionIsADeadObject) {
  pair_.left.reset();
  const auto frame = receiveFrame(pair_.right.get());
  ASSERT_FALSE(frame);
  EXPECT_EQ(frame.error().code(), ErrorCode::kDeadObject);
  const Status sent = sendFrame(pair_.right.get(), wordsOf(1), {});
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code(), ErrorCode::kDeadObject);
}

TEST_F(FrameTest, OtherBytesAreRefused) {
  sendByHand("GET / HTTP/1.1\r\n\r\n", 18);
  expectRefused("none of a driver's");
  sendByHand("x", 1);
  expectRefused("none of a driver's");
  ByHand header;
  header.words = 1;
  sendByHand(&header, sizeof header);
  expectRefused("claims 1 words");
  header.words = uint64_t{1} << 60;
  sendByHand(&header, sizeof header);
  expectRefused("claims");
  header.isSpilled = 7;
  sendByHand(&header, sizeof header);
  expectRefused("none of a driver's");
  std::vector<uint8_t> large(100'000);
  std::memcpy(large.data(), &header, sizeof header);
  sendByHand(large.data(), large.size());
  expectRefused("none of a driver's");
}

TEST_F(FrameTest, WrongMemoryOfALongMessageIsRefused) {
  ByHand header;
  header.isSpilled = 1;
  header.words = 16;
  sendByHand(&header, sizeof header);
  expectRefused("missing");
  const base::Descriptor unsealed(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(unsealed.get(), 4096), 0);
  sendByHand(&header, sizeof header, unsealed.get());
  expectRefused("not sealed");
  sendByHand(&header, sizeof header, pair_.right.get());
  expectRefused("not sealed");
  const base::Descriptor sealed(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(sealed.get(), 64), 0);
  ASSERT_EQ(::fcntl(sealed.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE), 0);
  sendByHand(&header, sizeof header, sealed.get());
  expectRefused("outside the file");
  header.words = uint64_t{1} << 60;
  sendByHand(&header, sizeof header, sealed.get());
  expectRefused("limit");
  header.words = 0;
  sendByHand(&header, sizeof header, sealed.get());
  expectRefused("0 bytes");
}

// In the message itself and in sealed memory, of one segment and of several.
TEST_F(FrameTest, MessagesThatWereBuiltArriveWhole) {
  for (const size_t size : {0, 1, 500, 2000, 40'000, 200'000}) {
    for (const int parts : {1, 3, 20}) {
      PagedMessage message;
      auto names = message.initRoot<schema::Reply>().initDevice().initExtensions(
          static_cast<uint32_t>(parts));
      for (uint32_t i = 0; i < names.size(); ++i)
        names.set(i, std::string(size, static_cast<char>('a' + i)).c_str());
      ASSERT_TRUE(sendMessage(pair_.left.get(), message, {}));
      const auto frame = receiveFrame(pair_.right.get());
      ASSERT_TRUE(frame) << frame.error().toString();
      const auto read =
          readMessage<schema::Reply>(frame->words(), [&](schema::Reply::Reader reply) -> Status {
            const auto texts = reply.getDevice().getExtensions();
            EXPECT_EQ(texts.size(), names.size());
            for (uint32_t i = 0; i < texts.size(); ++i)
              EXPECT_EQ(std::string(texts[i].cStr()),
                        std::string(size, static_cast<char>('a' + i)));
            return {};
          });
      EXPECT_TRUE(read) << size << " " << parts << " " << read.error().toString();
    }
  }
}

}  // namespace
}  // namespace hearth::ipc
