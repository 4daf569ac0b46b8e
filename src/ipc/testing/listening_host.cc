// SPDX-License-Identifier: Apache-2.0
#include "ipc/testing/listening_host.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <utility>

#include "ipc/host_process.h"

namespace hearth::ipc {

ListeningHost::ListeningHost(std::shared_ptr<hal::Device> device, HostOptions options,
                             Heartbeat heartbeat) {
  static std::atomic<int> hosts = 0;
  options.isShared = true;
  path_ = testing::TempDir() + "/hearth-host-" + std::to_string(::getpid()) + "-" +
          std::to_string(++hosts);
  auto listening = listenAt(path_);
  EXPECT_TRUE(listening) << listening.error().toString();
  if (!listening) return;
  listening_ = std::move(*listening);
  stop_.reset(::eventfd(0, EFD_CLOEXEC));
  thread_ =
      std::thread([this, device = std::move(device), options, heartbeat = std::move(heartbeat)] {
        Host host(device, options);
        served_ = host.serveAll(listening_.get(), stop_.get(), heartbeat);
      });
}

ListeningHost::~ListeningHost() {
  if (!thread_.joinable()) return;
  const uint64_t one = 1;
  EXPECT_EQ(::write(stop_.get(), &one, sizeof one), static_cast<ssize_t>(sizeof one));
  thread_.join();
  EXPECT_TRUE(served_) << served_.error().toString();
  ::unlink(path_.c_str());
}

HostOpener ListeningHost::opener() const {
  return [path = path_] {
    return joinHost(path);
  };
}

}  // namespace hearth::ipc
