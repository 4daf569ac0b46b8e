// SPDX-License-Identifier: Apache-2.0
#include "hal/driver_entry.h"

#include <atomic>
#include <utility>

#include "base/format.h"
#include "drivers/vulkan/vulkan_device.h"

namespace {

using namespace hearth;

// How many GPUs there were when one was opened. Whoever asks for one more need not start Vulkan,
// which takes long, to learn that it is not there.
constexpr uint32_t kUnknown = UINT32_MAX;
constinit std::atomic<uint32_t> knownChoices = kUnknown;

Result<std::unique_ptr<hal::Device>> createNumbered(uint32_t number) {
  if (number > knownChoices)
    return fail(ErrorCode::kUnavailableDevice, "Vulkan has no GPU of the number {}.", number);
  vulkan::GpuOptions options = vulkan::optionsOfEnvironment();
  options.number = number;
  uint32_t choices = 0;
  HEARTH_ASSIGN(std::unique_ptr<hal::Device> device, vulkan::createDevice(options, &choices));
  knownChoices = choices;
  return device;
}

hal::Device* create(uint32_t apiVersion, uint32_t number, char* message, size_t messageSize) {
  if (!hal::isBuiltFor(apiVersion, message, messageSize)) return nullptr;
  auto device = createNumbered(number);
  if (device) return device->release();
  std::snprintf(message, messageSize, "%s", device.error().toString().c_str());
  return nullptr;
}

}  // namespace

HEARTH_DRIVER_EXPORT hal::Device* hearth_driver_create(uint32_t apiVersion, char* message,
                                                       size_t messageSize) {
  return create(apiVersion, 1, message, messageSize);
}

HEARTH_DRIVER_EXPORT hal::Device* hearth_driver_create_numbered(uint32_t apiVersion,
                                                                uint32_t number, char* message,
                                                                size_t messageSize) {
  return create(apiVersion, number, message, messageSize);
}

HEARTH_DRIVER_EXPORT uint32_t hearth_driver_count() {
  const uint32_t choices = knownChoices;
  return choices == kUnknown ? 0 : choices;
}
