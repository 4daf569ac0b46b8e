// SPDX-License-Identifier: Apache-2.0
// Hosts that end when nobody uses them, and hosts without a device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "ipc/host.h"
#include "ipc/host_process.h"
#include "ipc/hosted_device.h"
#include "ipc/testing/fake_device.h"

namespace hearth::ipc {
namespace {

using std::chrono::milliseconds;

// A host in a thread of this process that may end by itself, and else when it is destroyed. Not
// movable.
class IdleHost {
 public:
  IdleHost(std::shared_ptr<hal::Device> device, HostOptions options)
      : path_(testing::TempDir() + "/hearth-idle-" + std::to_string(::getpid())),
        stop_(::eventfd(0, EFD_CLOEXEC)) {
    options.isShared = true;
    auto listening = listenAt(path_);
    EXPECT_TRUE(listening) << listening.error().toString();
    if (!listening) return;
    listening_ = std::move(*listening);
    thread_ = std::thread([this, device = std::move(device), options] {
      Host host(device, options);
      served_ = host.serveAll(listening_.get(), stop_.get());
    });
  }
  ~IdleHost() {
    const uint64_t one = 1;
    EXPECT_EQ(::write(stop_.get(), &one, sizeof one), static_cast<ssize_t>(sizeof one));
    join();
    ::unlink(path_.c_str());
  }
  IdleHost(const IdleHost&) = delete;
  IdleHost& operator=(const IdleHost&) = delete;

  // Waits until it has ended.
  void join() {
    if (!thread_.joinable()) return;
    thread_.join();
    EXPECT_TRUE(served_) << served_.error().toString();
  }
  const std::string& path() const { return path_; }
  HostOpener opener() const {
    return [path = path_] {
      return joinHost(path);
    };
  }

 private:
  const std::string path_;
  base::Descriptor listening_;
  const base::Descriptor stop_;
  Status served_;
  std::thread thread_;
};

TEST(IdleHostTest, EndsSomeTimeAfterItsLastClient) {
  IdleHost host(std::make_shared<FakeDevice>(), {.idleExit = milliseconds(2000)});
  for (int i = 0; i < 2; ++i) {
    const auto first = HostedDevice::create("fake", host.opener());
    ASSERT_TRUE(first) << first.error().toString();
    // Longer than it waits for another one.
    if (i == 0) std::this_thread::sleep_for(milliseconds(2500));
    const auto second = HostedDevice::create("fake", host.opener());
    ASSERT_TRUE(second) << second.error().toString();
  }
  host.join();
  EXPECT_FALSE(joinHost(host.path()));
}

// Whoever connects is served, or finds that nobody listens.
TEST(IdleHostTest, NoClientIsLostInTheMomentInWhichAHostEnds) {
  int served = 0;
  for (int i = 0; i < 300; ++i) {
    const IdleHost host(std::make_shared<FakeDevice>(), {.idleExit = milliseconds(1)});
    std::this_thread::sleep_for(std::chrono::microseconds(600 + 4 * i));
    auto joined = joinHost(host.path());
    if (!joined) continue;
    ++served;
    const auto device =
        HostedDevice::create("fake", [&]() -> Result<HostConnection> { return std::move(joined); });
    ASSERT_TRUE(device) << "after " << i << ": " << device.error().toString();
    EXPECT_EQ((*device)->state().clients, 1u);
  }
  EXPECT_GT(served, 0);
}

TEST(IdleHostTest, WithoutADeviceClientsHearTheReason) {
  const IdleHost host(nullptr, {.whyUnavailable = "There is no such chip."});
  for (int i = 0; i < 3; ++i) {
    const auto device = HostedDevice::create("fake", host.opener());
    ASSERT_FALSE(device);
    EXPECT_EQ(device.error().code(), ErrorCode::kUnavailableDevice);
    EXPECT_EQ(device.error().message(), "There is no such chip.");
  }
}

TEST(IdleHostTest, ClientsAreToldHowManyDevicesALibraryHas) {
  for (const uint32_t count : {1u, 3u}) {
    const IdleHost host(std::make_shared<FakeDevice>(), {.libraryDevices = count});
    const auto device = HostedDevice::create("fake", host.opener());
    ASSERT_TRUE(device) << device.error().toString();
    EXPECT_EQ((*device)->libraryDevices(), count);
  }
}

}  // namespace
}  // namespace hearth::ipc
