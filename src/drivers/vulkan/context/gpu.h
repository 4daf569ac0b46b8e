// SPDX-License-Identifier: Apache-2.0
// One physical device of Vulkan, opened: its logical device, its queue and what it can do.
#pragma once

#include <volk.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/sha256.h"
#include "drivers/vulkan/context/dma_bufs.h"
#include "memory/pool.h"

namespace hearth::vulkan {

// Which physical device to open, and how.
struct GpuOptions {
  // Part of the device's name, in any case of letters. An implementation on the CPU is opened only
  // if this names it.
  std::string wanted;
  // Of the devices with such a name, from 1: discrete GPUs come first, then integrated and virtual
  // ones, those of a kind in Vulkan's order.
  uint32_t number = 1;
  // For tests: gets the messages of the validation layer, which is then loaded. Called on any
  // thread.
  std::function<void(const char*)> onValidationMessage;
};

// What a device can do, as far as the driver asks.
struct GpuFacts {
  std::string name;           // as the device says
  std::string driverVersion;  // as people write it: name of the driver and its version
  VkPhysicalDeviceType type = VK_PHYSICAL_DEVICE_TYPE_OTHER;
  bool has8BitStorage = false;
  bool has16BitStorage = false;
  bool hasSyncFiles = false;         // whether semaphores take and give sync files of the kernel
  uint64_t maxBufferRange = 0;       // bytes of one tensor
  uint64_t maxAllocation = 0;        // bytes of one piece of memory
  uint64_t rangeAlignment = 1;       // of the place of a tensor in a buffer
  uint64_t hostAlignment = 0;        // of memory of the host that becomes a buffer; 0: none can
  bool importsDmaBufs = false;       // whether a buffer can be made of a dma-buf
  bool isDedicatedToDmaBuf = false;  // whether memory that is imported so has to name its buffer
  // Whose a dma-buf is while this device does not use it.
  uint32_t foreignFamily = VK_QUEUE_FAMILY_EXTERNAL;
  // Of arguments in one memory of the client: making a buffer of it takes as long as copying less.
  uint64_t leastImport = uint64_t{1} << 20;
  uint32_t maxGroups[3] = {};  // work groups of a dispatch
  // Of layers in one submission: the kernel's driver ends one that takes seconds.
  uint64_t mostProducts = UINT64_MAX;
  VkPhysicalDeviceMemoryProperties memory{};
  // Of the device, its driver and the driver's version: what is compiled for one is of no use to
  // another.
  base::Sha256Digest identity{};
  // As the head of a VkPipelineCache has them.
  uint32_t vendorId = 0;
  uint32_t deviceId = 0;
  std::array<uint8_t, VK_UUID_SIZE> pipelineCacheUuid{};
};

// kResourceExhaustedTransient for an exhausted memory, kDeadObject for a lost device, kOpFailed for
// any other failure of the Vulkan function `call`.
Status checkResult(VkResult result, const char* call);

// Thread-safe. The functions of `functions()` are for one thread at a time where Vulkan says so of
// their objects; the queue is used by submit() only.
class Gpu {
 public:
  // Errors: kUnavailableDevice, with a sentence that says what is missing, where there is no Vulkan
  // or no device to open; the sentence also says so of a number that is too high.
  static Result<std::shared_ptr<Gpu>> open(const GpuOptions& options);
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  const GpuFacts& facts() const { return facts_; }
  // How many devices there were for GpuOptions::number.
  uint32_t choices() const { return choices_; }
  VkDevice device() const { return device_; }
  uint32_t queueFamily() const { return queueFamily_; }

  // The functions of the device. Tests put others in their place, before any other thread has it.
  const VolkDeviceTable& functions() const { return functions_; }
  VolkDeviceTable& functionsForTest() { return functions_; }
  GpuFacts& factsForTest() { return facts_; }
  const DmaBufCalls& dmaBufCalls() const { return dmaBufCalls_; }
  DmaBufCalls& dmaBufCallsForTest() { return dmaBufCalls_; }

  // A memory type among `allowed` (a bit for each) that has the properties `required`, and those of
  // `preferred` if there is one. kResourceExhaustedPersistent if there is none.
  Result<uint32_t> memoryType(uint32_t allowed, VkMemoryPropertyFlags required,
                              VkMemoryPropertyFlags preferred) const;

  // kDeadObject if the device is lost, so that what was made on it may be in use for ever, or
  // belongs to the parent of this process.
  Status checkUsable() const;

  // Hands the commands to the queue; they begin after `waits`, and `fence` and `signal`, if there
  // is one, are signalled when they have run. Errors as checkUsable(), and kDeadObject if the
  // device is lost now.
  Status submit(VkCommandBuffer commands, VkFence fence, std::span<const VkSemaphore> waits = {},
                VkSemaphore signal = VK_NULL_HANDLE);
  // Waits for at most kLongestWait. An error means that the commands may still be running, and what
  // they use must not be freed: kDeadObject.
  Status wait(VkFence fence);

  // Whether the device has failed or hung: nothing that was made on it is of use any more.
  bool isLost() const { return isLost_.load(std::memory_order_relaxed); }

  // Whether memory of the host may become a buffer. Not once that has failed for several memories:
  // each attempt takes time, and some drivers fail in other ways after a refusal.
  bool importsHostMemory() const;
  // Whether this memory may. Not once it has been refused, which may be a matter of its pages.
  bool importsHostMemory(const memory::PoolRef& pool) const;
  void noteRefusedImport(const memory::PoolRef& pool);

 private:
  Gpu() = default;
  Status createInstance(const GpuOptions& options);
  Status choosePhysicalDevice(const GpuOptions& options);
  void readFacts();
  Status createDevice();
  Status noteLoss(Status status);

  VkInstance instance_ = VK_NULL_HANDLE;
  // Of this instance: those of volk are of the instance that was made last.
  PFN_vkDestroyInstance destroyInstance_ = nullptr;
  PFN_vkDestroyDebugUtilsMessengerEXT destroyMessenger_ = nullptr;
  VkDebugUtilsMessengerEXT messenger_ = VK_NULL_HANDLE;
  std::function<void(const char*)> onValidationMessage_;
  VkPhysicalDevice physical_ = VK_NULL_HANDLE;
  uint32_t choices_ = 0;
  VkDevice device_ = VK_NULL_HANDLE;
  VkQueue queue_ = VK_NULL_HANDLE;
  uint32_t queueFamily_ = 0;
  GpuFacts facts_;
  VolkDeviceTable functions_{};
  DmaBufCalls dmaBufCalls_;
  base::Mutex queueMutex_;
  std::atomic<bool> isLost_ = false;
  mutable base::Mutex importMutex_;
  std::vector<std::weak_ptr<const memory::Pool>> refusedImports_;
  int64_t process_ = 0;  // that has opened it
};

}  // namespace hearth::vulkan
