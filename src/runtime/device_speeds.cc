// SPDX-License-Identifier: Apache-2.0
#include "runtime/device_speeds.h"

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <mutex>

#include "base/caught.h"
#include "base/log.h"
#include "base/sha256.h"
#include "base/trace.h"
#include "base/useful_threads.h"
#include "cache/open_store.h"
#include "drivers/cpu/platform/build_identity.h"
#include "ipc/hosted_device.h"

namespace hearth::runtime {
namespace {

// The fact that has a speed.
constexpr char kFact[] = "speed of a device";

unsigned threadsOf(const hal::PrepareOptions& options) {
  return options.threads != 0 ? options.threads : static_cast<unsigned>(base::usefulThreads());
}

// Nothing where this build has no identity: what another one measured does not count.
std::optional<std::string> factKey(const hal::Device& device, unsigned threads) {
  const std::optional<base::Sha256Digest> processor = cpu::processorIdentity();
  if (!processor) return std::nullopt;
  base::Sha256 hash;
  hash.update(*processor);
  for (const std::string& text : {device.name(), device.version()})
    hash.update(text.c_str(), text.size() + 1);
  hash.update(&threads, sizeof threads);
  // The way to a host and back takes its time, too.
  const bool isHosted = dynamic_cast<const ipc::HostedDevice*>(&device) != nullptr;
  hash.update(&isHosted, sizeof isHosted);
  std::string key = std::string(kFact) + '\0';
  const base::Sha256Digest digest = hash.finish();
  key.append(digest.begin(), digest.end());
  return key;
}

// The store that the options name. A speed is the machine's, so it does not go into a bundle, which
// is one model's.
std::shared_ptr<cache::SegmentStore> openStore(const hal::PrepareOptions& options) {
  std::map<std::string, std::string> texts = options.driverOptions;
  texts.erase("bundle");
  const auto wanted = cache::StoreOptions::fromTexts(texts);
  return wanted ? cache::openSegmentStore(*wanted) : nullptr;
}

void remember(const hal::Device& device, const DeviceSpeed& speed, unsigned threads,
              const hal::PrepareOptions& options) {
  const std::optional<std::string> key = factKey(device, threads);
  if (!key) return;
  const cache::Fact fact{*key, encodeSpeed(speed)};
  if (const auto store = openStore(options)) store->remember({&fact, 1});
}

bool hasAll(const DeviceSpeed& speed, std::span<const NumberKind> kinds) {
  return speed.execution != 0 &&
         std::ranges::all_of(kinds, [&](NumberKind kind) { return speed.productOf(kind) != 0; });
}

}  // namespace

DeviceSpeeds::DeviceSpeeds(std::vector<std::string> measured, Measure measure)
    : measured_(std::move(measured)), measure_(std::move(measure)) {}

bool DeviceSpeeds::has(const hal::Device& device) const {
  return std::ranges::contains(measured_, device.name());
}

std::optional<DeviceSpeed> DeviceSpeeds::known(const hal::Device& device,
                                               const hal::PrepareOptions& options) {
  if (!has(device)) return std::nullopt;
  const Key key(device.name(), threadsOf(options));
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = speeds_.find(key); found != speeds_.end()) return found->second;
  }
  const std::optional<std::string> fact = factKey(device, key.second);
  if (!fact) return std::nullopt;
  const auto store = openStore(options);
  if (store == nullptr) return std::nullopt;
  const auto bytes = store->recall(*fact);
  if (!bytes) return std::nullopt;
  const std::optional<DeviceSpeed> speed = decodeSpeed(*bytes);
  if (!speed) return std::nullopt;
  const std::lock_guard lock(mutex_);
  return speeds_.try_emplace(key, *speed).first->second;
}

std::optional<DeviceSpeed> DeviceSpeeds::of(hal::Device& device, std::span<const NumberKind> kinds,
                                            const hal::PrepareOptions& options) {
  std::optional<DeviceSpeed> speed = known(device, options);
  if (speed && hasAll(*speed, kinds)) return speed;
  if (!has(device) || !options.deadline.isNever()) return std::nullopt;
  const unsigned threads = threadsOf(options);
  const Key key(device.name(), threads);
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return measuring_ != ::getpid(); });
    if (const auto found = speeds_.find(key); found != speeds_.end()) {
      if (hasAll(found->second, kinds)) return found->second;
      speed = found->second;
    }
    measuring_ = ::getpid();
  }
  DeviceSpeed measured = speed.value_or(DeviceSpeed());
  const Status status = measureAlone(device, kinds, key, &measured);
  if (!status) {
    base::logInfo("The speed of the device {} is not known. {}", device.name(),
                  status.error().toString());
    return std::nullopt;
  }
  remember(device, measured, threads, options);
  return measured;
}

Result<DeviceSpeed> DeviceSpeeds::renew(hal::Device& device, const hal::PrepareOptions& options) {
  if (!has(device))
    return fail(ErrorCode::kUnsupported, "The device {} is not measured.", device.name());
  const Key key(device.name(), threadsOf(options));
  DeviceSpeed speed;
  for (size_t kind = 0; kind < kNumberKinds; ++kind) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return measuring_ != ::getpid(); });
      measuring_ = ::getpid();
    }
    const NumberKind kinds[] = {static_cast<NumberKind>(kind)};
    const Status status = measureAlone(device, kinds, key, &speed);
    if (!status && speed.execution == 0) return std::unexpected(status.error());
  }
  remember(device, speed, key.second, options);
  return speed;
}

Status DeviceSpeeds::measureAlone(hal::Device& device, std::span<const NumberKind> kinds,
                                  const Key& key, DeviceSpeed* speed) {
  const base::TraceSpan span("runtime", "measure a device");
  // A lack of memory must not leave the others waiting, either.
  const Status status =
      base::caught([&]() -> Status { return measure_(device, kinds, key.second, speed); });
  {
    const std::lock_guard lock(mutex_);
    measuring_ = 0;
    if (speed->execution != 0) speeds_[key] = *speed;
  }
  changed_.notify_all();
  return status;
}

}  // namespace hearth::runtime
