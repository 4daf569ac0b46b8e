// SPDX-License-Identifier: Apache-2.0
#include "drivers/vulkan/context/gpu.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::vulkan {
namespace {

constexpr uint32_t kLeastVersion = VK_API_VERSION_1_2;
constexpr char kValidationLayer[] = "VK_LAYER_KHRONOS_validation";
// So many refusals are no matter of single memories.
constexpr size_t kMostRefusedImports = 3;
// No model of a mobile device computes so long; a GPU that does is taken for hung.
constexpr uint64_t kLongestWait = 60'000'000'000;  // nanoseconds
// A tenth of a second of slow GPUs: a Raspberry Pi computes 5 * 10^9 products in a second, an old
// GPU with memory of its own 10^11.
constexpr uint64_t kMostProducts = 500'000'000;
constexpr uint64_t kMostProductsOfDiscrete = 10'000'000'000;

// volk keeps the functions of the loader and of the instance in global variables.
std::mutex& loaderMutex() {
  static std::mutex mutex;
  return mutex;
}

bool containsIgnoringCase(std::string_view text, std::string_view part) {
  const auto equal = [](unsigned char a, unsigned char b) {
    return std::tolower(a) == std::tolower(b);
  };
  return !std::ranges::search(text, part, equal).empty() || part.empty();
}

// Lower is better; nothing for a device that is opened only by its name.
std::optional<int> rankOf(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
      return 0;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
      return 1;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
      return 2;
    default:
      return std::nullopt;
  }
}

bool hasExtension(const std::vector<VkExtensionProperties>& extensions, const char* name) {
  return std::ranges::any_of(extensions, [&](const VkExtensionProperties& extension) {
    return std::strcmp(extension.extensionName, name) == 0;
  });
}

// The name of an extension does not say which kinds of descriptors it takes.
bool takesSyncFiles(VkPhysicalDevice device) {
  VkPhysicalDeviceExternalSemaphoreInfo asked{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_SEMAPHORE_INFO};
  asked.handleType = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_SYNC_FD_BIT;
  VkExternalSemaphoreProperties answer{VK_STRUCTURE_TYPE_EXTERNAL_SEMAPHORE_PROPERTIES};
  vkGetPhysicalDeviceExternalSemaphoreProperties(device, &asked, &answer);
  constexpr VkExternalSemaphoreFeatureFlags kBoth =
      VK_EXTERNAL_SEMAPHORE_FEATURE_EXPORTABLE_BIT | VK_EXTERNAL_SEMAPHORE_FEATURE_IMPORTABLE_BIT;
  return (answer.externalSemaphoreFeatures & kBoth) == kBoth;
}

// What buffers of this driver can do with memory from elsewhere.
VkExternalMemoryFeatureFlags featuresOf(VkPhysicalDevice device,
                                        VkExternalMemoryHandleTypeFlagBits kind) {
  VkPhysicalDeviceExternalBufferInfo asked{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_BUFFER_INFO};
  asked.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  asked.handleType = kind;
  VkExternalBufferProperties answer{VK_STRUCTURE_TYPE_EXTERNAL_BUFFER_PROPERTIES};
  vkGetPhysicalDeviceExternalBufferProperties(device, &asked, &answer);
  return answer.externalMemoryProperties.externalMemoryFeatures;
}

// How memory of the host has to be aligned to become a buffer; 0 where it cannot.
uint64_t hostAlignmentOf(VkPhysicalDevice device) {
  const VkExternalMemoryFeatureFlags features =
      featuresOf(device, VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT);
  if ((features & VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT) == 0 ||
      (features & VK_EXTERNAL_MEMORY_FEATURE_DEDICATED_ONLY_BIT) != 0)
    return 0;
  VkPhysicalDeviceExternalMemoryHostPropertiesEXT host{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT};
  VkPhysicalDeviceProperties2 properties{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &host};
  vkGetPhysicalDeviceProperties2(device, &properties);
  // Memories are mapped by pages: there is nothing to take behind the last one.
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  const uint64_t alignment = host.minImportedHostPointerAlignment;
  return alignment != 0 && alignment <= page ? page : 0;
}

VKAPI_ATTR VkBool32 VKAPI_CALL passOn(VkDebugUtilsMessageSeverityFlagBitsEXT /*severity*/,
                                      VkDebugUtilsMessageTypeFlagsEXT /*types*/,
                                      const VkDebugUtilsMessengerCallbackDataEXT* message,
                                      void* receiver) {
  (*static_cast<const std::function<void(const char*)>*>(receiver))(message->pMessage);
  return VK_FALSE;
}

VkDebugUtilsMessengerCreateInfoEXT messengerFor(std::function<void(const char*)>* receiver) {
  VkDebugUtilsMessengerCreateInfoEXT info{VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT};
  info.messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
                         VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
  info.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT |
                     VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT;
  info.pfnUserCallback = passOn;
  info.pUserData = receiver;
  return info;
}

}  // namespace

Status checkResult(VkResult result, const char* call) {
  switch (result) {
    case VK_SUCCESS:
      return {};
    case VK_ERROR_OUT_OF_HOST_MEMORY:
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
      return fail(ErrorCode::kResourceExhaustedTransient,
                  "{} finds too little memory on the GPU (result {}).", call,
                  static_cast<int>(result));
    case VK_ERROR_DEVICE_LOST:
      return fail(ErrorCode::kDeadObject, "The GPU was lost in {}.", call);
    default:
      return fail(ErrorCode::kOpFailed, "{} of the GPU's driver failed with the result {}.", call,
                  static_cast<int>(result));
  }
}

Result<std::shared_ptr<Gpu>> Gpu::open(const GpuOptions& options) {
  // Its destructor takes the lock, too: it has to come after the lock's release.
  std::shared_ptr<Gpu> gpu(new Gpu());
  const std::lock_guard lock(loaderMutex());
  if (volkInitialize() != VK_SUCCESS)
    return fail(ErrorCode::kUnavailableDevice,
                "There is no Vulkan here: the library libvulkan.so.1 cannot be loaded.");
  gpu->process_ = ::getpid();
  HEARTH_TRY(gpu->createInstance(options));
  HEARTH_TRY(gpu->choosePhysicalDevice(options));
  gpu->readFacts();
  HEARTH_TRY(gpu->createDevice());
  return gpu;
}

Gpu::~Gpu() {
  // Of a hung device nothing can be freed, and a child cannot free what its parent has.
  if (isLost() || process_ != ::getpid()) return;
  if (device_ != VK_NULL_HANDLE) functions_.vkDestroyDevice(device_, nullptr);
  const std::lock_guard lock(loaderMutex());
  if (instance_ == VK_NULL_HANDLE) return;
  if (messenger_ != VK_NULL_HANDLE) destroyMessenger_(instance_, messenger_, nullptr);
  destroyInstance_(instance_, nullptr);
}

Status Gpu::createInstance(const GpuOptions& options) {
  if (volkGetInstanceVersion() < kLeastVersion)
    return fail(ErrorCode::kUnavailableDevice,
                "The Vulkan loader has the version {}.{}, this driver needs 1.2.",
                VK_API_VERSION_MAJOR(volkGetInstanceVersion()),
                VK_API_VERSION_MINOR(volkGetInstanceVersion()));
  VkApplicationInfo application{VK_STRUCTURE_TYPE_APPLICATION_INFO};
  application.pApplicationName = application.pEngineName = "hearth";
  application.apiVersion = kLeastVersion;
  VkInstanceCreateInfo info{VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
  info.pApplicationInfo = &application;
  const char* const layers[] = {kValidationLayer};
  const char* const extensions[] = {VK_EXT_DEBUG_UTILS_EXTENSION_NAME};
  onValidationMessage_ = options.onValidationMessage;
  const VkDebugUtilsMessengerCreateInfoEXT messenger = messengerFor(&onValidationMessage_);
  if (onValidationMessage_) {
    info.enabledLayerCount = info.enabledExtensionCount = 1;
    info.ppEnabledLayerNames = layers;
    info.ppEnabledExtensionNames = extensions;
    info.pNext = &messenger;
  }
  if (const VkResult result = vkCreateInstance(&info, nullptr, &instance_); result != VK_SUCCESS) {
    instance_ = VK_NULL_HANDLE;
    return fail(ErrorCode::kUnavailableDevice,
                "Vulkan cannot be started here: vkCreateInstance failed with the result {}.",
                static_cast<int>(result));
  }
  volkLoadInstanceOnly(instance_);
  destroyInstance_ = vkDestroyInstance;
  destroyMessenger_ = vkDestroyDebugUtilsMessengerEXT;
  if (onValidationMessage_)
    return checkResult(vkCreateDebugUtilsMessengerEXT(instance_, &messenger, nullptr, &messenger_),
                       "vkCreateDebugUtilsMessengerEXT");
  return {};
}

Status Gpu::choosePhysicalDevice(const GpuOptions& options) {
  const std::string& wanted = options.wanted;
  uint32_t count = 0;
  HEARTH_TRY(checkResult(vkEnumeratePhysicalDevices(instance_, &count, nullptr),
                         "vkEnumeratePhysicalDevices"));
  std::vector<VkPhysicalDevice> devices(count);
  const VkResult listed = vkEnumeratePhysicalDevices(instance_, &count, devices.data());
  if (listed != VK_INCOMPLETE) HEARTH_TRY(checkResult(listed, "vkEnumeratePhysicalDevices"));
  devices.resize(count);
  std::vector<std::pair<int, VkPhysicalDevice>> choices;  // with their ranks
  std::string names;
  for (const VkPhysicalDevice device : devices) {
    VkPhysicalDeviceProperties properties;
    vkGetPhysicalDeviceProperties(device, &properties);
    if (!names.empty()) names += ", ";
    names += properties.deviceName;
    if (properties.apiVersion < kLeastVersion) continue;
    if (!containsIgnoringCase(properties.deviceName, wanted)) continue;
    std::optional<int> rank = rankOf(properties.deviceType);
    if (!rank && !wanted.empty()) rank = 3;
    if (rank) choices.emplace_back(*rank, device);
  }
  choices_ = static_cast<uint32_t>(choices.size());
  std::ranges::stable_sort(choices, {}, [](const auto& choice) { return choice.first; });
  if (options.number >= 1 && options.number <= choices_) {
    physical_ = choices[options.number - 1].second;
    return {};
  }
  if (!choices.empty())
    return fail(ErrorCode::kUnavailableDevice, "Vulkan has {} of these devices, and no number {}.",
                choices_, options.number);
  if (devices.empty())
    return fail(ErrorCode::kUnavailableDevice, "Vulkan knows no device on this machine.");
  if (!wanted.empty())
    return fail(ErrorCode::kUnavailableDevice,
                "No device of Vulkan 1.2 has \"{}\" in its name; there are: {}.", wanted, names);
  return fail(ErrorCode::kUnavailableDevice,
              "Vulkan knows no GPU of version 1.2 on this machine; there are: {}.", names);
}

void Gpu::readFacts() {
  VkPhysicalDeviceVulkan12Properties vulkan12{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES};
  VkPhysicalDeviceVulkan11Properties vulkan11{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES, &vulkan12};
  VkPhysicalDeviceProperties2 properties{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &vulkan11};
  vkGetPhysicalDeviceProperties2(physical_, &properties);
  const VkPhysicalDeviceLimits& limits = properties.properties.limits;
  facts_.name = properties.properties.deviceName;
  facts_.driverVersion = std::string(vulkan12.driverName) + " " + vulkan12.driverInfo;
  facts_.type = properties.properties.deviceType;
  facts_.maxBufferRange = limits.maxStorageBufferRange;
  facts_.maxAllocation = vulkan11.maxMemoryAllocationSize;
  facts_.rangeAlignment = std::max<uint64_t>(limits.minStorageBufferOffsetAlignment, 16);
  std::ranges::copy(limits.maxComputeWorkGroupCount, facts_.maxGroups);
  facts_.mostProducts =
      facts_.type == VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU ? kMostProductsOfDiscrete : kMostProducts;
  facts_.vendorId = properties.properties.vendorID;
  facts_.deviceId = properties.properties.deviceID;
  std::ranges::copy(properties.properties.pipelineCacheUUID, facts_.pipelineCacheUuid.begin());
  base::Sha256 identity;
  identity.update(facts_.pipelineCacheUuid);
  identity.update(vulkan11.deviceUUID);
  identity.update(vulkan11.driverUUID);
  for (const uint32_t word : {facts_.vendorId, facts_.deviceId, properties.properties.driverVersion,
                              static_cast<uint32_t>(vulkan12.driverID)})
    identity.update(&word, sizeof word);
  facts_.identity = identity.finish();
  vkGetPhysicalDeviceMemoryProperties(physical_, &facts_.memory);
}

Status Gpu::createDevice() {
  uint32_t count = 0;
  vkGetPhysicalDeviceQueueFamilyProperties(physical_, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  vkGetPhysicalDeviceQueueFamilyProperties(physical_, &count, families.data());
  const auto computes = [](const VkQueueFamilyProperties& family) {
    return (family.queueFlags & VK_QUEUE_COMPUTE_BIT) != 0;
  };
  const auto family = std::ranges::find_if(families, computes);
  if (family == families.end())
    return fail(ErrorCode::kUnavailableDevice, "The GPU {} has no queue that computes.",
                facts_.name);
  queueFamily_ = static_cast<uint32_t>(family - families.begin());

  vkEnumerateDeviceExtensionProperties(physical_, nullptr, &count, nullptr);
  std::vector<VkExtensionProperties> extensions(count);
  vkEnumerateDeviceExtensionProperties(physical_, nullptr, &count, extensions.data());
  extensions.resize(count);
  const bool isRobust2Known = hasExtension(extensions, VK_EXT_ROBUSTNESS_2_EXTENSION_NAME);

  VkPhysicalDeviceRobustness2FeaturesEXT robustness{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ROBUSTNESS_2_FEATURES_EXT};
  VkPhysicalDeviceVulkan12Features vulkan12{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
                                            isRobust2Known ? &robustness : nullptr};
  VkPhysicalDeviceVulkan11Features vulkan11{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES,
                                            &vulkan12};
  VkPhysicalDeviceFeatures2 known{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &vulkan11};
  vkGetPhysicalDeviceFeatures2(physical_, &known);
  facts_.has8BitStorage = vulkan12.storageBuffer8BitAccess == VK_TRUE;
  facts_.has16BitStorage = vulkan11.storageBuffer16BitAccess == VK_TRUE;

  // Only what is used is switched on. With robust accesses a wrong index in a shader reads zeros,
  // and writes nothing, outside the range that is bound.
  const bool isRobust2 = isRobust2Known && robustness.robustBufferAccess2 == VK_TRUE;
  robustness = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ROBUSTNESS_2_FEATURES_EXT};
  robustness.robustBufferAccess2 = VK_TRUE;
  vulkan12 = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
              isRobust2 ? &robustness : nullptr};
  vulkan12.storageBuffer8BitAccess = facts_.has8BitStorage;
  vulkan11 = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES, &vulkan12};
  vulkan11.storageBuffer16BitAccess = facts_.has16BitStorage;
  VkPhysicalDeviceFeatures2 features{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, &vulkan11};
  features.features.robustBufferAccess = VK_TRUE;

  const float priority = 1.0f;
  VkDeviceQueueCreateInfo queue{VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO};
  queue.queueFamilyIndex = queueFamily_;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  VkDeviceCreateInfo info{VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, &features};
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  facts_.hasSyncFiles = hasExtension(extensions, VK_KHR_EXTERNAL_SEMAPHORE_FD_EXTENSION_NAME) &&
                        takesSyncFiles(physical_);
  if (hasExtension(extensions, VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME))
    facts_.hostAlignment = hostAlignmentOf(physical_);
  std::vector<const char*> wanted;
  if (hasExtension(extensions, VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME) &&
      hasExtension(extensions, VK_EXT_EXTERNAL_MEMORY_DMA_BUF_EXTENSION_NAME)) {
    const VkExternalMemoryFeatureFlags features =
        featuresOf(physical_, VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT);
    facts_.importsDmaBufs = (features & VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT) != 0;
    facts_.isDedicatedToDmaBuf = (features & VK_EXTERNAL_MEMORY_FEATURE_DEDICATED_ONLY_BIT) != 0;
  }
  if (facts_.importsDmaBufs) {
    wanted.push_back(VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME);
    wanted.push_back(VK_EXT_EXTERNAL_MEMORY_DMA_BUF_EXTENSION_NAME);
    if (hasExtension(extensions, VK_EXT_QUEUE_FAMILY_FOREIGN_EXTENSION_NAME)) {
      wanted.push_back(VK_EXT_QUEUE_FAMILY_FOREIGN_EXTENSION_NAME);
      facts_.foreignFamily = VK_QUEUE_FAMILY_FOREIGN_EXT;
    }
  }
  if (isRobust2) wanted.push_back(VK_EXT_ROBUSTNESS_2_EXTENSION_NAME);
  if (facts_.hasSyncFiles) wanted.push_back(VK_KHR_EXTERNAL_SEMAPHORE_FD_EXTENSION_NAME);
  if (facts_.hostAlignment != 0) wanted.push_back(VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME);
  info.enabledExtensionCount = static_cast<uint32_t>(wanted.size());
  info.ppEnabledExtensionNames = wanted.data();
  if (const VkResult result = vkCreateDevice(physical_, &info, nullptr, &device_);
      result != VK_SUCCESS) {
    device_ = VK_NULL_HANDLE;
    return fail(ErrorCode::kUnavailableDevice,
                "The GPU {} cannot be opened: vkCreateDevice failed with the result {}.",
                facts_.name, static_cast<int>(result));
  }
  volkLoadDeviceTable(&functions_, device_);
  functions_.vkGetDeviceQueue(device_, queueFamily_, 0, &queue_);
  return {};
}

Result<uint32_t> Gpu::memoryType(uint32_t allowed, VkMemoryPropertyFlags required,
                                 VkMemoryPropertyFlags preferred) const {
  for (const VkMemoryPropertyFlags wanted : {required | preferred, required})
    for (uint32_t i = 0; i < facts_.memory.memoryTypeCount; ++i)
      if ((allowed & (1u << i)) != 0 &&
          (facts_.memory.memoryTypes[i].propertyFlags & wanted) == wanted)
        return i;
  return fail(ErrorCode::kResourceExhaustedPersistent,
              "The GPU {} has no memory with the properties {}.", facts_.name, required);
}

bool Gpu::importsHostMemory() const {
  if (facts_.hostAlignment == 0) return false;
  const std::lock_guard lock(importMutex_);
  return refusedImports_.size() < kMostRefusedImports;
}

bool Gpu::importsHostMemory(const memory::PoolRef& pool) const {
  if (!importsHostMemory()) return false;
  const std::lock_guard lock(importMutex_);
  return std::ranges::none_of(refusedImports_,
                              [&](const auto& refused) { return refused.lock() == pool; });
}

void Gpu::noteRefusedImport(const memory::PoolRef& pool) {
  const std::lock_guard lock(importMutex_);
  refusedImports_.push_back(pool);
}

Status Gpu::noteLoss(Status status) {
  if (!status && status.error().code() == ErrorCode::kDeadObject)
    isLost_.store(true, std::memory_order_relaxed);
  return status;
}

Status Gpu::checkUsable() const {
  if (process_ != ::getpid())
    return fail(ErrorCode::kDeadObject,
                "The GPU was opened by the parent of this process, which has to use it alone.");
  if (isLost()) return fail(ErrorCode::kDeadObject, "The GPU {} was lost.", facts_.name);
  return {};
}

Status Gpu::submit(VkCommandBuffer commands, VkFence fence, std::span<const VkSemaphore> waits,
                   VkSemaphore signal) {
  HEARTH_TRY(checkUsable());
  VkSubmitInfo info{VK_STRUCTURE_TYPE_SUBMIT_INFO};
  info.commandBufferCount = 1;
  info.pCommandBuffers = &commands;
  const std::vector<VkPipelineStageFlags> stages(waits.size(), VK_PIPELINE_STAGE_ALL_COMMANDS_BIT);
  info.waitSemaphoreCount = static_cast<uint32_t>(waits.size());
  info.pWaitSemaphores = waits.data();
  info.pWaitDstStageMask = stages.data();
  info.signalSemaphoreCount = signal == VK_NULL_HANDLE ? 0 : 1;
  info.pSignalSemaphores = &signal;
  const std::lock_guard lock(queueMutex_);
  return noteLoss(checkResult(functions_.vkQueueSubmit(queue_, 1, &info, fence), "vkQueueSubmit"));
}

Status Gpu::wait(VkFence fence) {
  const VkResult result = functions_.vkWaitForFences(device_, 1, &fence, VK_TRUE, kLongestWait);
  if (result == VK_SUCCESS) return {};
  // Whatever the reason, the commands may go on.
  isLost_.store(true, std::memory_order_relaxed);
  if (result == VK_TIMEOUT)
    return fail(ErrorCode::kDeadObject, "The GPU {} has computed for {} s and is taken for hung.",
                facts_.name, kLongestWait / 1'000'000'000);
  return fail(ErrorCode::kDeadObject, "The GPU {} was lost: vkWaitForFences failed with {}.",
              facts_.name, static_cast<int>(result));
}

}  // namespace hearth::vulkan
