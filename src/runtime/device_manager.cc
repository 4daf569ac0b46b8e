// SPDX-License-Identifier: Apache-2.0
#include "runtime/device_manager.h"

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <utility>

#include "base/fork_gate.h"
#include "base/helper_thread.h"
#include "base/immortal.h"
#include "base/log.h"
#include "drivers/cpu/cpu_device.h"
#include "drivers/reference/reference_device.h"
#include "hal/driver_library.h"
#include "runtime/compilation_cache.h"

namespace hearth::runtime {
namespace {

// The built-in CPU device first, installed drivers after it, the reference always last.
std::vector<std::shared_ptr<hal::Device>> findDevices() {
  std::vector<std::shared_ptr<hal::Device>> devices = {cpu::createCpuDevice()};
  const std::shared_ptr<hal::Device> reference = drivers::reference::createDevice();
  for (auto& device : hal::discoverDrivers({devices[0]->name(), reference->name()}).devices)
    devices.push_back(std::move(device));
  devices.push_back(reference);
  return DeviceManager::registrable(std::move(devices));
}

// The thread that warms the devices up. Forks wait for its end: it is inside initialisations of
// drivers that happen once.
class WarmingThread {
 public:
  static void startOnce() {
    static std::atomic<bool> isStarted = false;
    // With one processor it would only come in between.
    if (isStarted.exchange(true) || std::thread::hardware_concurrency() < 2) return;
    instance().start();
  }

 private:
  static WarmingThread& instance() {
    static constinit base::Immortal<WarmingThread> only;
    return only.get();
  }

  void start() {
    base::ForkGate::atFork({.before = [] { instance().lockAndEnd(); },
                            .afterInParent = [] { instance().mutex_.unlock(); },
                            .afterInChild =
                                [] {
                                  instance().mutex_.unlock();
                                }});
    // What a driver's library is at must not lose its static objects.
    std::atexit([] {
      instance().lockAndEnd();
      instance().mutex_.unlock();
    });
    const std::lock_guard lock(mutex_);
    thread_ = base::startHelperThread("hearth-devices", [] {
      for (const auto& device : DeviceManager::shared().devices()) device->warmUp();
    });
  }

  void lockAndEnd() {
    mutex_.lock();
    if (thread_.joinable()) thread_.join();
  }

  std::mutex mutex_;  // held during a fork
  std::thread thread_;
};

}  // namespace

std::vector<std::shared_ptr<hal::Device>> DeviceManager::registrable(
    std::vector<std::shared_ptr<hal::Device>> devices) {
  std::erase_if(devices, [](const std::shared_ptr<hal::Device>& device) {
    const auto counts = device->numberOfCacheFilesNeeded();
    if (!counts) {
      base::logWarn("The device {} is left out: {}", device->name(), counts.error().toString());
      return true;
    }
    if (counts->model <= kMaxCacheFiles && counts->data <= kMaxCacheFiles) return false;
    base::logWarn("The device {} is left out: it asks for {} and {} cache files, more than {}.",
                  device->name(), counts->model, counts->data, kMaxCacheFiles);
    return true;
  });
  return devices;
}

const DeviceManager& DeviceManager::shared() {
  // Never destroyed: threads of a driver may still run while the process exits. Not base::Immortal:
  // drivers may start threads and wait for them, which is not to be done inside the ForkGate. In a
  // child that was forked meanwhile this is done again: POSIX's once, below, knows of forks.
  static constinit const DeviceManager* manager = nullptr;
  static constinit std::once_flag once;
  std::call_once(once, [] { manager = new DeviceManager(findDevices()); });
  return *manager;
}

void DeviceManager::warmUp() {
  WarmingThread::startOnce();
}

std::shared_ptr<hal::Device> DeviceManager::reference() const {
  for (const auto& device : devices_)
    if (device->name() == kReferenceDeviceName) return device;
  return nullptr;
}

Result<std::shared_ptr<hal::Device>> DeviceManager::find(std::string_view name) const {
  std::string names;
  for (const auto& device : devices_) {
    if (device->name() == name) return device;
    names += (names.empty() ? "" : ", ") + device->name();
  }
  return fail(ErrorCode::kNotFound, "There is no device {}; there are: {}.", name,
              names.empty() ? "none" : names);
}

}  // namespace hearth::runtime
