// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/descriptor.h"
#include "frontends/nnapi/testing/test_models.h"

namespace hearth::nnapi {
namespace {

using ndk::Out;
using HardwareBuffer = QuietTest;

constexpr uint64_t kCpuUsage =
    AHARDWAREBUFFER_USAGE_CPU_READ_OFTEN | AHARDWAREBUFFER_USAGE_CPU_WRITE_OFTEN;

AHardwareBuffer_Desc describe(uint32_t width, uint32_t height, uint32_t layers, uint32_t format) {
  AHardwareBuffer_Desc description = {};
  description.width = width;
  description.height = height;
  description.layers = layers;
  description.format = format;
  description.usage = kCpuUsage;
  return description;
}

int allocate(const AHardwareBuffer_Desc& description) {
  ndk::HardwareBufferHandle buffer;
  const int code = AHardwareBuffer_allocate(&description, Out(buffer));
  EXPECT_EQ(code == 0, buffer != nullptr);
  return code;
}

TEST_F(HardwareBuffer, DescriptionsAreChecked) {
  EXPECT_EQ(allocate(describe(16, 1, 1, AHARDWAREBUFFER_FORMAT_BLOB)), 0);
  EXPECT_EQ(allocate(describe(5, 3, 2, AHARDWAREBUFFER_FORMAT_R8G8B8_UNORM)), 0);
  EXPECT_EQ(allocate(describe(16, 2, 1, AHARDWAREBUFFER_FORMAT_BLOB)), -EINVAL);
  EXPECT_EQ(allocate(describe(16, 1, 2, AHARDWAREBUFFER_FORMAT_BLOB)), -EINVAL);
  EXPECT_EQ(allocate(describe(0, 1, 1, AHARDWAREBUFFER_FORMAT_BLOB)), -EINVAL);
  EXPECT_EQ(allocate(describe(4, 0, 1, AHARDWAREBUFFER_FORMAT_R8_UNORM)), -EINVAL);
  EXPECT_EQ(allocate(describe(4, 4, 1, 0)), -EINVAL);
  EXPECT_EQ(allocate(describe(4, 4, 1, 0x7777)), -EINVAL);
  // The size overflows.
  EXPECT_EQ(allocate(describe(UINT32_MAX, UINT32_MAX, UINT32_MAX,
                              AHARDWAREBUFFER_FORMAT_R16G16B16A16_FLOAT)),
            -EINVAL);
  AHardwareBuffer_Desc reserved = describe(16, 1, 1, AHARDWAREBUFFER_FORMAT_BLOB);
  reserved.rfu0 = 1;
  EXPECT_EQ(allocate(reserved), -EINVAL);
  EXPECT_EQ(AHardwareBuffer_allocate(&reserved, nullptr), -EINVAL);
  ndk::HardwareBufferHandle none;
  EXPECT_EQ(AHardwareBuffer_allocate(nullptr, Out(none)), -EINVAL);
}

TEST_F(HardwareBuffer, DescribesItself) {
  const AHardwareBuffer_Desc wanted = describe(5, 3, 1, AHARDWAREBUFFER_FORMAT_R8G8B8A8_UNORM);
  ndk::HardwareBufferHandle buffer;
  ASSERT_EQ(AHardwareBuffer_allocate(&wanted, Out(buffer)), 0);
  AHardwareBuffer_Desc found = {};
  AHardwareBuffer_describe(buffer.get(), &found);
  EXPECT_EQ(found.width, 5u);
  EXPECT_EQ(found.height, 3u);
  EXPECT_EQ(found.stride, 5u);
  EXPECT_EQ(found.usage, kCpuUsage);
  AHardwareBuffer_describe(nullptr, &found);
  EXPECT_EQ(found.width, 0u);
  AHardwareBuffer_acquire(buffer.get());
  AHardwareBuffer_release(buffer.get());
  AHardwareBuffer_release(nullptr);
}

TEST_F(HardwareBuffer, LocksGiveTheAddress) {
  AHardwareBuffer_Desc description = describe(4, 4, 1, AHARDWAREBUFFER_FORMAT_R8_UNORM);
  description.usage = AHARDWAREBUFFER_USAGE_CPU_READ_RARELY;
  ndk::HardwareBufferHandle buffer;
  ASSERT_EQ(AHardwareBuffer_allocate(&description, Out(buffer)), 0);
  void* address = nullptr;
  const auto lock = [&](uint64_t usage, const ARect* rect) {
    return AHardwareBuffer_lock(buffer.get(), usage, -1, rect, &address);
  };
  EXPECT_EQ(lock(AHARDWAREBUFFER_USAGE_CPU_READ_OFTEN, nullptr), 0);
  EXPECT_NE(address, nullptr);
  EXPECT_EQ(lock(AHARDWAREBUFFER_USAGE_CPU_WRITE_OFTEN, nullptr), -EINVAL);
  EXPECT_EQ(lock(AHARDWAREBUFFER_USAGE_GPU_SAMPLED_IMAGE, nullptr), -EINVAL);
  const ARect inside = {1, 1, 4, 4};
  const ARect outside = {0, 0, 5, 4};
  const ARect negative = {-1, 0, 4, 4};
  const ARect empty = {2, 2, 2, 3};
  EXPECT_EQ(lock(AHARDWAREBUFFER_USAGE_CPU_READ_RARELY, &inside), 0);
  EXPECT_EQ(lock(AHARDWAREBUFFER_USAGE_CPU_READ_RARELY, &outside), -EINVAL);
  EXPECT_EQ(lock(AHARDWAREBUFFER_USAGE_CPU_READ_RARELY, &negative), -EINVAL);
  EXPECT_EQ(lock(AHARDWAREBUFFER_USAGE_CPU_READ_RARELY, &empty), -EINVAL);
  int32_t fence = 5;
  EXPECT_EQ(AHardwareBuffer_unlock(buffer.get(), &fence), 0);
  EXPECT_EQ(fence, -1);
  // The function takes ownership of the fence.
  const int signalled = ::eventfd(1, EFD_CLOEXEC);
  EXPECT_EQ(AHardwareBuffer_lock(buffer.get(), AHARDWAREBUFFER_USAGE_CPU_READ_RARELY, signalled,
                                 nullptr, &address),
            0);
  EXPECT_EQ(::fcntl(signalled, F_GETFD), -1);
}

class Sockets : public QuietTest {
 protected:
  void SetUp() override {
    QuietTest::SetUp();
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    here_.reset(ends[0]);
    there_.reset(ends[1]);
  }
  // Sends bytes with a descriptor, as a hostile peer might.
  void sendRaw(const void* data, size_t size, int fd) {
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    iovec part{const_cast<void*>(data), size};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    if (fd >= 0) {
      header.msg_control = control.data();
      header.msg_controllen = control.size();
      cmsghdr* const item = CMSG_FIRSTHDR(&header);
      item->cmsg_level = SOL_SOCKET;
      item->cmsg_type = SCM_RIGHTS;
      item->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(item), &fd, sizeof(fd));
    }
    ASSERT_EQ(::sendmsg(there_.get(), &header, 0), static_cast<ssize_t>(size));
  }
  int receive() {
    ndk::HardwareBufferHandle buffer;
    const int code = AHardwareBuffer_recvHandleFromUnixSocket(here_.get(), Out(buffer));
    EXPECT_EQ(code == 0, buffer != nullptr);
    return code;
  }

  base::Descriptor here_;
  base::Descriptor there_;
};

TEST_F(Sockets, PeersShareTheMemory) {
  const AHardwareBuffer_Desc wanted = describe(100, 1, 1, AHARDWAREBUFFER_FORMAT_BLOB);
  ndk::HardwareBufferHandle sent;
  ASSERT_EQ(AHardwareBuffer_allocate(&wanted, Out(sent)), 0);
  ASSERT_EQ(AHardwareBuffer_sendHandleToUnixSocket(sent.get(), there_.get()), 0);
  ndk::HardwareBufferHandle received;
  ASSERT_EQ(AHardwareBuffer_recvHandleFromUnixSocket(here_.get(), Out(received)), 0);
  AHardwareBuffer_Desc found = {};
  AHardwareBuffer_describe(received.get(), &found);
  EXPECT_EQ(found.width, 100u);
  void* mine = nullptr;
  void* theirs = nullptr;
  ASSERT_EQ(AHardwareBuffer_lock(sent.get(), kCpuUsage, -1, nullptr, &mine), 0);
  ASSERT_EQ(AHardwareBuffer_lock(received.get(), kCpuUsage, -1, nullptr, &theirs), 0);
  EXPECT_NE(mine, theirs);
  std::strcpy(static_cast<char*>(mine), "the same");
  EXPECT_STREQ(static_cast<char*>(theirs), "the same");
  EXPECT_EQ(AHardwareBuffer_sendHandleToUnixSocket(nullptr, there_.get()), -EINVAL);
  EXPECT_EQ(AHardwareBuffer_sendHandleToUnixSocket(sent.get(), -1), -EBADF);
}

TEST_F(Sockets, HostilePeersAreRefused) {
  // A valid message, to be corrupted.
  const AHardwareBuffer_Desc wanted = describe(8192, 1, 1, AHARDWAREBUFFER_FORMAT_BLOB);
  ndk::HardwareBufferHandle buffer;
  ASSERT_EQ(AHardwareBuffer_allocate(&wanted, Out(buffer)), 0);
  ASSERT_EQ(AHardwareBuffer_sendHandleToUnixSocket(buffer.get(), there_.get()), 0);
  std::array<char, 256> message{};
  const ssize_t size = ::recv(here_.get(), message.data(), message.size(), 0);
  ASSERT_GT(size, 0);
  const auto length = static_cast<size_t>(size);

  const base::Descriptor small(::memfd_create("small", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(small.get(), 4096), 0);
  ASSERT_EQ(::fcntl(small.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  const base::Descriptor unsealed(::memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(unsealed.get(), 8192), 0);
  int pipes[2];
  ASSERT_EQ(::pipe2(pipes, O_CLOEXEC), 0);
  const base::Descriptor pipeEnd(pipes[0]);
  const base::Descriptor otherEnd(pipes[1]);

  sendRaw(message.data(), length, -1);
  EXPECT_EQ(receive(), -EINVAL);
  for (const base::Descriptor* wrong : {&small, &unsealed, &pipeEnd}) {
    sendRaw(message.data(), length, wrong->get());
    EXPECT_EQ(receive(), -EINVAL);
  }
  std::array<char, 256> spoilt = message;
  spoilt[0] ^= 1;
  sendRaw(spoilt.data(), length, small.get());
  EXPECT_EQ(receive(), -EINVAL);
  // Half a message, then the end of the stream.
  sendRaw(message.data(), length / 2, small.get());
  there_.reset();
  EXPECT_EQ(receive(), -EINVAL);
  EXPECT_EQ(receive(), -ECONNRESET);
}

}  // namespace
}  // namespace hearth::nnapi
