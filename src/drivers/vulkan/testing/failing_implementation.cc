// SPDX-License-Identifier: Apache-2.0
// An implementation of Vulkan, as the loader opens it: that of the library which HEARTH_TEST_VULKAN
// names, but for the function that HEARTH_TEST_FAILING names, which fails.
#include <dlfcn.h>
#include <vulkan/vk_icd.h>

#include <cstdlib>
#include <string_view>

namespace {

VKAPI_ATTR VkResult VKAPI_CALL failing() {
  return VK_ERROR_OUT_OF_HOST_MEMORY;
}

template <typename Function>
Function functionOf(const char* name) {
  static void* const library = ::dlopen(std::getenv("HEARTH_TEST_VULKAN"), RTLD_NOW | RTLD_LOCAL);
  return reinterpret_cast<Function>(::dlsym(library, name));
}

}  // namespace

#define HEARTH_EXPORT extern "C" __attribute__((visibility("default"))) VKAPI_ATTR

HEARTH_EXPORT VkResult VKAPI_CALL vk_icdNegotiateLoaderICDInterfaceVersion(uint32_t* version) {
  return functionOf<PFN_vkNegotiateLoaderICDInterfaceVersion>(__func__)(version);
}

HEARTH_EXPORT PFN_vkVoidFunction VKAPI_CALL vk_icdGetInstanceProcAddr(VkInstance instance,
                                                                      const char* name) {
  const char* const chosen = std::getenv("HEARTH_TEST_FAILING");
  if (chosen != nullptr && std::string_view(name) == chosen)
    return reinterpret_cast<PFN_vkVoidFunction>(failing);
  return functionOf<PFN_vkGetInstanceProcAddr>(__func__)(instance, name);
}

HEARTH_EXPORT PFN_vkVoidFunction VKAPI_CALL vk_icdGetPhysicalDeviceProcAddr(VkInstance instance,
                                                                            const char* name) {
  return functionOf<PFN_vkGetInstanceProcAddr>(__func__)(instance, name);
}
