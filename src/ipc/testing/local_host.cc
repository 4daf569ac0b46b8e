// SPDX-License-Identifier: Apache-2.0
#include "ipc/testing/local_host.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

namespace hearth::ipc {

LocalHost::LocalHost(std::shared_ptr<hal::Device> device, HostOptions options)
    : device_(std::move(device)), options_(options) {}

LocalHost::~LocalHost() {
  kill();
  for (std::thread& thread : threads_) thread.join();
}

Result<base::Descriptor> LocalHost::open() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return std::unexpected(base::errnoError(errno, "Making a pair of sockets"));
  base::Descriptor client(ends[0]);
  base::Descriptor served(ends[1]);
  const std::lock_guard lock(mutex_);
  HEARTH_ASSIGN(base::Descriptor duplicate, served.duplicate());
  ends_.push_back(std::move(duplicate));
  threads_.emplace_back(
      [device = device_, options = options_, socket = std::move(served)]() mutable {
        Host host(device, options);
        host.serve(std::move(socket));
      });
  return client;
}

void LocalHost::kill() {
  const std::lock_guard lock(mutex_);
  for (const base::Descriptor& end : ends_) ::shutdown(end.get(), SHUT_RDWR);
  ends_.clear();
}

int LocalHost::starts() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(threads_.size());
}

}  // namespace hearth::ipc
