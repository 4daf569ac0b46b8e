// SPDX-License-Identifier: Apache-2.0
#include "frontends/nnapi/objects/hardware_buffer.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "base/descriptor.h"
#include "base/log.h"

namespace hearth::nnapi {
namespace {

constexpr uint64_t kMaxBytes = uint64_t{1} << 47;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW;
constexpr uint64_t kMessageMark = 0x48424148'48545248;  // "HRTHHABH" in memory

// The bytes sent through the socket along with the descriptor.
struct Message {
  uint64_t mark;
  AHardwareBuffer_Desc description;
};

// Bits of a pixel, over all planes; 0 for an unknown format.
uint64_t pixelBits(uint32_t format) {
  switch (format) {
    case AHARDWAREBUFFER_FORMAT_BLOB:
    case AHARDWAREBUFFER_FORMAT_S8_UINT:
    case AHARDWAREBUFFER_FORMAT_R8_UNORM:
      return 8;
    case AHARDWAREBUFFER_FORMAT_Y8Cb8Cr8_420:
      return 12;
    case AHARDWAREBUFFER_FORMAT_R5G6B5_UNORM:
    case AHARDWAREBUFFER_FORMAT_D16_UNORM:
      return 16;
    case AHARDWAREBUFFER_FORMAT_R8G8B8_UNORM:
    case AHARDWAREBUFFER_FORMAT_YCbCr_P010:
      return 24;
    case AHARDWAREBUFFER_FORMAT_R8G8B8A8_UNORM:
    case AHARDWAREBUFFER_FORMAT_R8G8B8X8_UNORM:
    case AHARDWAREBUFFER_FORMAT_R10G10B10A2_UNORM:
    case AHARDWAREBUFFER_FORMAT_D24_UNORM:
    case AHARDWAREBUFFER_FORMAT_D24_UNORM_S8_UINT:
    case AHARDWAREBUFFER_FORMAT_D32_FLOAT:
      return 32;
    case AHARDWAREBUFFER_FORMAT_R16G16B16A16_FLOAT:
    case AHARDWAREBUFFER_FORMAT_D32_FLOAT_S8_UINT:
      return 64;
    default:
      return 0;
  }
}

bool isEmptyOrOutside(const ARect& rect, const AHardwareBuffer_Desc& description) {
  return rect.left < 0 || rect.top < 0 || rect.right <= rect.left || rect.bottom <= rect.top ||
         static_cast<uint32_t>(rect.right) > description.width ||
         static_cast<uint32_t>(rect.bottom) > description.height;
}

// Waits for the fence and closes it. Returns 0, or an errno value.
int waitForFence(int fence) {
  const base::Descriptor owned(fence);
  pollfd waited{fence, POLLIN, 0};
  while (::poll(&waited, 1, -1) < 0)
    if (errno != EINTR) return errno;
  return (waited.revents & (POLLERR | POLLNVAL)) != 0 ? EINVAL : 0;
}

// Returns EINVAL unless the memory is large enough and the peer cannot shrink it under a mapping.
int checkReceived(int fd, uint64_t size) {
  const int seals = ::fcntl(fd, F_GET_SEALS);
  const bool isFixed = (seals >= 0 && (seals & F_SEAL_SHRINK) != 0) || memory::isDmaBuf(fd);
  if (!isFixed || memory::mappableSize(fd).value_or(0) < size) {
    base::logWarn("A received hardware buffer of {} bytes is no memory that keeps that size.",
                  size);
    return EINVAL;
  }
  return 0;
}

// Reads one message; the descriptor comes with its first byte. Returns 0, or an errno value.
int receive(int socket, Message* message, base::Descriptor* descriptor) {
  size_t filled = 0;
  while (filled < sizeof(*message)) {
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    iovec part{reinterpret_cast<char*>(message) + filled, sizeof(*message) - filled};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    const ssize_t received = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
    if (received < 0 && errno == EINTR) continue;
    if (received < 0) return errno;
    if (received == 0) return filled == 0 ? ECONNRESET : EINVAL;
    for (cmsghdr* item = CMSG_FIRSTHDR(&header); item != nullptr;
         item = CMSG_NXTHDR(&header, item)) {
      if (item->cmsg_level != SOL_SOCKET || item->cmsg_type != SCM_RIGHTS) continue;
      // Alignment leaves room for a second descriptor; only the last one is kept.
      const size_t count = (item->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (size_t i = 0; i < count; ++i) {
        int fd;
        std::memcpy(&fd, CMSG_DATA(item) + i * sizeof(int), sizeof(int));
        descriptor->reset(fd);
      }
    }
    filled += static_cast<size_t>(received);
    // There were more descriptors than room; the kernel has closed the rest.
    if ((header.msg_flags & MSG_CTRUNC) != 0) return EINVAL;
  }
  return 0;
}

int makeBuffer(const AHardwareBuffer_Desc& description, memory::PoolRef pool,
               AHardwareBuffer** out) {
  auto* buffer = new (std::nothrow) AHardwareBuffer{description, std::move(pool)};
  if (buffer == nullptr) return -ENOMEM;
  // Rows follow each other without gaps.
  buffer->description.stride = description.width;
  *out = buffer;
  return 0;
}

}  // namespace

uint64_t hardwareBufferSize(const AHardwareBuffer_Desc& description) {
  const bool isBlob = description.format == AHARDWAREBUFFER_FORMAT_BLOB;
  if (description.rfu0 != 0 || description.rfu1 != 0 || description.width == 0 ||
      (isBlob && (description.height != 1 || description.layers != 1)))
    return 0;
  const uint64_t pixels = uint64_t{description.width} * description.height;
  const uint64_t bits = pixelBits(description.format);
  uint64_t sum;
  if (__builtin_mul_overflow(pixels, description.layers * bits, &sum)) return 0;
  const uint64_t bytes = sum / 8 + (sum % 8 != 0);
  return bytes > kMaxBytes ? 0 : bytes;
}

}  // namespace hearth::nnapi

using namespace hearth;
using namespace hearth::nnapi;

namespace {

int allocate(const AHardwareBuffer_Desc* desc, AHardwareBuffer** outBuffer) {
  if (desc == nullptr || outBuffer == nullptr) return -EINVAL;
  *outBuffer = nullptr;
  const uint64_t size = hardwareBufferSize(*desc);
  if (size == 0) {
    base::logWarn("There is no hardware buffer of {}x{}, {} layers, format {:#x}.", desc->width,
                  desc->height, desc->layers, desc->format);
    return -EINVAL;
  }
  auto pool = memory::Pool::anonymous(size);
  if (!pool) {
    base::logWarn("A hardware buffer cannot be allocated. {}", pool.error().toString());
    return -ENOMEM;
  }
  // Seals the size, so that every process that maps the buffer can rely on it.
  if (::fcntl((*pool)->fd(), F_ADD_SEALS, kSeals) != 0) return -errno;
  return makeBuffer(*desc, std::move(*pool), outBuffer);
}

int receiveBuffer(int socketFd, AHardwareBuffer** outBuffer) {
  if (outBuffer == nullptr) return -EINVAL;
  *outBuffer = nullptr;
  Message message{};
  base::Descriptor descriptor;
  if (const int error = receive(socketFd, &message, &descriptor); error != 0) return -error;
  const uint64_t size = hardwareBufferSize(message.description);
  if (message.mark != kMessageMark || !descriptor.valid() || size == 0) {
    base::logWarn("What comes from a socket is no hardware buffer.");
    return -EINVAL;
  }
  if (const int error = checkReceived(descriptor.get(), size); error != 0) return -error;
  auto pool = memory::Pool::ofFile(descriptor.get(), 0, size, memory::Mapping::Access::kReadWrite);
  if (!pool) {
    base::logWarn("A received hardware buffer cannot be mapped. {}", pool.error().toString());
    return -ENOMEM;
  }
  return makeBuffer(message.description, std::move(*pool), outBuffer);
}

// Returns the code of `body`, or -ENOMEM when it throws.
template <typename Body>
int guarded(Body body) noexcept {
  try {
    return body();
  } catch (...) {
    return -ENOMEM;
  }
}

}  // namespace

int AHardwareBuffer_allocate(const AHardwareBuffer_Desc* desc, AHardwareBuffer** outBuffer) {
  return guarded([&] { return allocate(desc, outBuffer); });
}

void AHardwareBuffer_acquire(AHardwareBuffer* buffer) {
  if (buffer != nullptr) buffer->references.fetch_add(1, std::memory_order_relaxed);
}

void AHardwareBuffer_release(AHardwareBuffer* buffer) {
  if (buffer != nullptr && buffer->references.fetch_sub(1, std::memory_order_acq_rel) == 1)
    delete buffer;
}

void AHardwareBuffer_describe(const AHardwareBuffer* buffer, AHardwareBuffer_Desc* outDesc) {
  if (outDesc != nullptr)
    *outDesc = buffer != nullptr ? buffer->description : AHardwareBuffer_Desc{};
}

int AHardwareBuffer_lock(AHardwareBuffer* buffer, uint64_t usage, int32_t fence, const ARect* rect,
                         void** outVirtualAddress) {
  if (buffer == nullptr || outVirtualAddress == nullptr) return -EINVAL;
  *outVirtualAddress = nullptr;
  const AHardwareBuffer_Desc& description = buffer->description;
  for (const uint64_t mask :
       {AHARDWAREBUFFER_USAGE_CPU_READ_MASK, AHARDWAREBUFFER_USAGE_CPU_WRITE_MASK})
    if ((usage & mask) != 0 && (description.usage & mask) == 0) return -EINVAL;
  if ((usage & ~(AHARDWAREBUFFER_USAGE_CPU_READ_MASK | AHARDWAREBUFFER_USAGE_CPU_WRITE_MASK)) != 0)
    return -EINVAL;
  if (rect != nullptr && isEmptyOrOutside(*rect, description)) return -EINVAL;
  if (fence >= 0) {
    if (const int error = waitForFence(fence); error != 0) return -error;
  }
  *outVirtualAddress = buffer->pool->mutableData();
  return 0;
}

int AHardwareBuffer_unlock(AHardwareBuffer* buffer, int32_t* fence) {
  if (buffer == nullptr) return -EINVAL;
  if (fence != nullptr) *fence = -1;
  return 0;
}

int AHardwareBuffer_sendHandleToUnixSocket(const AHardwareBuffer* buffer, int socketFd) {
  if (buffer == nullptr) return -EINVAL;
  Message message{kMessageMark, buffer->description};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  iovec part{&message, sizeof(message)};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  cmsghdr* const item = CMSG_FIRSTHDR(&header);
  item->cmsg_level = SOL_SOCKET;
  item->cmsg_type = SCM_RIGHTS;
  item->cmsg_len = CMSG_LEN(sizeof(int));
  const int fd = buffer->pool->fd();
  std::memcpy(CMSG_DATA(item), &fd, sizeof(fd));
  ssize_t count;
  do {
    count = ::sendmsg(socketFd, &header, MSG_NOSIGNAL);
  } while (count < 0 && errno == EINTR);
  if (count < 0) return -errno;
  // A message this short is sent whole or not at all.
  return count == static_cast<ssize_t>(sizeof(message)) ? 0 : -EIO;
}

int AHardwareBuffer_recvHandleFromUnixSocket(int socketFd, AHardwareBuffer** outBuffer) {
  return guarded([&] { return receiveBuffer(socketFd, outBuffer); });
}
