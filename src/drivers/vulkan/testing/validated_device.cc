// SPDX-License-Identifier: Apache-2.0
#include "drivers/vulkan/testing/validated_device.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "drivers/vulkan/vulkan_device.h"

#ifdef __SANITIZE_ADDRESS__
// A lost device is never freed. What is not freed of others, the validation layer finds.
extern "C" __attribute__((visibility("default"))) const char* __asan_default_options() {
  return "detect_leaks=0";
}
#endif

namespace hearth::vulkan {

GpuOptions validatedOptions() {
  ::setenv("VK_KHRONOS_VALIDATION_VALIDATE_SYNC", "true", 0);
  ::setenv("VK_KHRONOS_VALIDATION_SYNCVAL_SHADER_ACCESSES_HEURISTIC", "true", 0);
  ::setenv("MESA_SHADER_CACHE_DISABLE", "true", 0);
  return {.wanted = "llvmpipe", .onValidationMessage = [](const char* message) {
            std::fprintf(stderr, "The validation layer of Vulkan says: %s\n", message);
            std::abort();
          }};
}

Result<std::shared_ptr<hal::Device>> createValidatedDevice() {
  auto device = createDevice(validatedOptions());
  if (device) return std::shared_ptr<hal::Device>(std::move(*device));
  if (device.error().code() != ErrorCode::kUnavailableDevice)
    return std::unexpected(std::move(device.error()));
  return fail(ErrorCode::kUnsupported, "{}", device.error().message());
}

}  // namespace hearth::vulkan
