// SPDX-License-Identifier: Apache-2.0
#include "runtime/device_manager.h"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "base/env.h"
#include "base/fork_gate.h"
#include "base/format.h"
#include "base/helper_thread.h"
#include "base/immortal.h"
#include "base/log.h"
#include "drivers/cpu/cpu_device.h"
#include "drivers/reference/reference_device.h"
#include "hal/driver_library.h"
#include "ipc/host_list.h"
#include "runtime/compilation_cache.h"
#include "runtime/speed_measurement.h"

namespace hearth::runtime {
namespace {

// The types of devices by which a client may ask for one.
constexpr std::pair<std::string_view, hal::DeviceType> kTypes[] = {
    {"cpu", hal::DeviceType::kCpu},
    {"gpu", hal::DeviceType::kGpu},
    {"accelerator", hal::DeviceType::kAccelerator}};

std::string_view wordOf(hal::DeviceType type) {
  for (const auto& [word, known] : kTypes)
    if (known == type) return word;
  return "other";
}

std::optional<hal::DeviceType> typeNamed(std::string_view text) {
  const auto isSame = [](char one, char other) {
    return std::tolower(static_cast<unsigned char>(one)) == other;
  };
  for (const auto& [word, type] : kTypes)
    if (std::ranges::equal(text, word, isSame)) return type;
  return std::nullopt;
}

using HostPlaces = std::map<std::string, ipc::HostPlace>;

// What HEARTH_DRIVER_HOSTS says.
HostPlaces hostPlaces() {
  auto places = ipc::parseHostList(base::envString(base::Env::kDriverHosts));
  if (places) return *std::move(places);
  base::logWarn("All drivers stay where they are. {}", places.error().toString());
  return {};
}

// The device itself, or the one behind a host that `places` has in its stead; null when its host
// cannot be reached. Takes what it uses out of `places`.
std::shared_ptr<hal::Device> placed(std::shared_ptr<hal::Device> device, HostPlaces* places) {
  const auto place = places->extract(device->name());
  if (place.empty() || place.mapped().kind == ipc::HostPlace::Kind::kProcess) return device;
  auto hosted = ipc::deviceAt(place.mapped(), device->name());
  if (hosted) return *std::move(hosted);
  base::logWarn("The device {} is left out, since its host cannot be reached. {}", device->name(),
                hosted.error().toString());
  return nullptr;
}

// Makes the devices of manifests, where manifests and HEARTH_DRIVER_HOSTS say.
class InstalledDevices {
 public:
  // Takes the places that it uses out of `unused`.
  InstalledDevices(const HostPlaces& listed, HostPlaces* unused)
      : listed_(listed), unused_(*unused) {}

  Result<std::shared_ptr<hal::Device>> make(const hal::DriverManifest& manifest) {
    if (manifest.isMeasured) measured_.push_back(manifest.name);
    const bool isNamed = !unused_.extract(manifest.name).empty();
    const std::optional<ipc::HostPlace> place = placeOf(manifest);
    if (!place || place->kind == ipc::HostPlace::Kind::kProcess) return hal::loadDriver(manifest);
    const std::string& first = manifest.number > 1 ? manifest.firstName : manifest.name;
    // Behind a socket there is one device.
    const bool isKnown =
        place->kind != ipc::HostPlace::Kind::kSocket && manifest.number <= counts_[first];
    if (manifest.number > 1 && !isNamed && !isKnown)
      return fail(ErrorCode::kUnavailableDevice,
                  "The host of the device {} does not tell of a device {}.", first, manifest.name);
    HEARTH_ASSIGN(const std::shared_ptr<ipc::HostedDevice> hosted, ipc::deviceAt(*place, manifest));
    counts_[first] = std::max(counts_[first], hosted->libraryDevices());
    return hosted;
  }

  // Those whose drivers want them measured.
  std::vector<std::string> takeMeasured() { return std::move(measured_); }

 private:
  // A further device of a library is where the first one is, unless it is named itself.
  std::optional<ipc::HostPlace> placeOf(const hal::DriverManifest& manifest) const {
    for (const std::string& name : {manifest.name, manifest.firstName})
      if (const auto own = listed_.find(name); own != listed_.end()) return own->second;
    return ipc::placeOf(manifest);
  }

  const HostPlaces& listed_;
  HostPlaces& unused_;
  std::vector<std::string> measured_;
  // How many devices libraries have that are in hosts, by the names of their first devices.
  std::map<std::string, uint32_t> counts_;
};

// The built-in CPU device first, installed drivers after it, the reference always last.
DeviceManager findDevices() {
  const HostPlaces listed = hostPlaces();
  HostPlaces places = listed;  // without those that are used
  const std::shared_ptr<hal::Device> cpu = cpu::createCpuDevice();
  const std::shared_ptr<hal::Device> reference = drivers::reference::createDevice();
  InstalledDevices installed(listed, &places);
  std::vector<std::shared_ptr<hal::Device>> devices = {placed(cpu, &places)};
  // What an optional driver lacks here may be where its host is.
  std::vector<std::string> placedNames;
  for (const auto& [name, place] : places)
    if (place.kind != ipc::HostPlace::Kind::kProcess) placedNames.push_back(name);
  hal::DiscoveredDrivers drivers = hal::discoverDrivers(
      {cpu->name(), reference->name()},
      [&](const hal::DriverManifest& manifest) { return installed.make(manifest); }, placedNames);
  for (auto& device : drivers.devices) devices.push_back(std::move(device));
  devices.push_back(placed(reference, &places));
  std::erase(devices, nullptr);
  std::vector<std::string> measured = installed.takeMeasured();
  // A driver that is to stay in the process may also be missing.
  for (const auto& [name, place] : places)
    if (place.kind != ipc::HostPlace::Kind::kProcess)
      base::logWarn("HEARTH_DRIVER_HOSTS names the device {}, which is not there.", name);
  devices = DeviceManager::registrable(std::move(devices));
  // hearth-cpu is measured only to be compared.
  const bool isAnyMeasured = std::ranges::any_of(
      devices, [&](const auto& device) { return std::ranges::contains(measured, device->name()); });
  std::shared_ptr<DeviceSpeeds> speeds;
  if (isAnyMeasured) {
    measured.push_back(cpu->name());
    speeds = std::make_shared<DeviceSpeeds>(std::move(measured), measureSpeed);
  }
  return DeviceManager(std::move(devices), std::move(drivers.leftOut), std::move(speeds));
}

// The thread that warms the devices up. A fork waits for its end, because a child could not finish
// the one-time initialisations of drivers that it is inside.
class WarmingThread {
 public:
  static void startOnce() {
    static std::atomic<bool> isStarted = false;
    // With one processor the thread would only delay the caller.
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
    // exit() must not destroy the static objects of a driver's library that is starting.
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

Status checkExtensionTypes(const hal::Device& device) {
  const std::vector<hal::ExtensionOperandType> types = device.extensionOperandTypes();
  if (types.empty()) return {};
  const std::vector<std::string> extensions = device.supportedExtensions();
  std::set<std::pair<std::string_view, uint16_t>> known;
  for (const hal::ExtensionOperandType& type : types) {
    if (type.extension == graph::kTfliteExtensionName ||
        std::ranges::find(extensions, type.extension) == extensions.end())
      return fail(ErrorCode::kBadData, "it announces a type of the extension \"{}\".",
                  type.extension);
    if (type.elementSize == 0)
      return fail(ErrorCode::kBadData, "the type {} of the extension \"{}\" has 0 bytes.",
                  type.number, type.extension);
    if (!known.emplace(type.extension, type.number).second)
      return fail(ErrorCode::kBadData, "it announces the type {} of the extension \"{}\" twice.",
                  type.number, type.extension);
  }
  return {};
}

}  // namespace

std::vector<std::shared_ptr<hal::Device>> DeviceManager::registrable(
    std::vector<std::shared_ptr<hal::Device>> devices) {
  std::erase_if(devices, [](const std::shared_ptr<hal::Device>& device) {
    if (const Status types = checkExtensionTypes(*device); !types) {
      base::logWarn("The device {} is left out: {}", device->name(), types.error().toString());
      return true;
    }
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
  // a driver may start threads and wait for them, which is forbidden inside the ForkGate. A child
  // forked meanwhile runs this again: POSIX's once, under call_once, knows of forks.
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

std::shared_ptr<hal::Device> DeviceManager::find(std::string_view name) const {
  for (const auto& device : devices_)
    if (device->name() == name) return device;
  return nullptr;
}

Result<std::vector<std::shared_ptr<hal::Device>>> DeviceManager::select(
    std::string_view nameOrType) const {
  if (auto named = find(nameOrType)) return std::vector{std::move(named)};
  const std::optional<hal::DeviceType> type = typeNamed(nameOrType);
  std::vector<std::shared_ptr<hal::Device>> selected;
  for (const auto& device : devices_)
    if (device->type() == type) selected.push_back(device);
  if (!selected.empty()) return selected;
  std::string known;
  for (const auto& device : devices_)
    known += base::formatText("{}{} ({})", known.empty() ? "" : ", ", device->name(),
                              wordOf(device->type()));
  const auto leftOut = std::ranges::find(leftOut_, nameOrType, &hal::LeftOutDriver::name);
  return fail(ErrorCode::kNotFound, "There is no device {}{}; there are: {}.{}",
              type ? "of the type " : "", type ? wordOf(*type) : nameOrType,
              known.empty() ? "none" : known,
              leftOut == leftOut_.end() ? "" : " It is left out: " + leftOut->reason);
}

}  // namespace hearth::runtime
