// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <volk.h>

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "drivers/vulkan/context/gpu.h"

namespace hearth::vulkan {

// Of all shaders: storage buffers at bindings 0 to 4, and bytes of parameters. Every device of
// Vulkan gives so many.
inline constexpr uint32_t kBindings = 5;
inline constexpr uint32_t kParameterBytes = 128;

// An embedded shader and the value of its constant 0.
struct PipelineKey {
  std::string shader;
  uint32_t constant = 0;

  friend auto operator<=>(const PipelineKey&, const PipelineKey&) = default;
};

// What Vulkan gives of a compiled pipeline for later processes: the data of a VkPipelineCache that
// holds this pipeline alone. It contains machine code, so that nobody must have changed it.
struct SavedPipeline {
  PipelineKey key;
  std::vector<uint8_t> data;
};

// Where pipelines lie from process to process. Thread-safe.
class PipelineStore {
 public:
  virtual ~PipelineStore() = default;
  // SavedPipeline::data as an earlier process gave it to keep(), for the same device; empty where
  // there is none. Nobody has changed it.
  virtual std::vector<uint8_t> find(const PipelineKey& key) = 0;
  virtual void keep(const SavedPipeline& pipeline) = 0;
  // Brings what was given to keep() to later processes, in the background.
  virtual void save() = 0;
  // Returns when that is done.
  virtual void flush() = 0;
};

// The compiled pipelines of one device. Models that use the same shader share its pipeline.
// Thread-safe.
class Pipelines {
 public:
  // `store`: of this device; null: nothing is kept.
  static Result<std::unique_ptr<Pipelines>> create(std::shared_ptr<Gpu> gpu,
                                                   std::shared_ptr<PipelineStore> store = nullptr);
  ~Pipelines();
  Pipelines(const Pipelines&) = delete;
  Pipelines& operator=(const Pipelines&) = delete;

  // The pipeline of this key; at its first use made of what the store has, or compiled.
  // `isRestored`, unless it is null, says whether Vulkan got the machine code of an earlier process
  // for it. Lives as long as this object. Errors: kUnsupported for a shader that is not embedded;
  // those of the calls that compile.
  Result<VkPipeline> find(const PipelineKey& key, bool* isRestored = nullptr);

  // The same of a pipeline that an earlier process compiled for this device. The caller has checked
  // that the data is what save() returned there. If Vulkan refuses it, it is compiled.
  Status restore(const SavedPipeline& saved);

  // The pipeline for later processes; without data where Vulkan gave none. It must be compiled.
  SavedPipeline save(const PipelineKey& key);

  // Lets the store save what was compiled; flushStore() waits for it.
  void saveToStore();
  void flushStore();

  VkPipelineLayout layout() const { return layout_; }
  VkDescriptorSetLayout setLayout() const { return setLayout_; }

 private:
  Pipelines(std::shared_ptr<Gpu> gpu, std::shared_ptr<PipelineStore> store)
      : gpu_(std::move(gpu)), store_(std::move(store)) {}
  struct Compiled {
    VkPipeline pipeline = VK_NULL_HANDLE;
    std::vector<uint8_t> data;  // SavedPipeline::data
    bool isRestored = false;    // made of data that Vulkan has taken
  };
  Status createLayouts();
  Result<Compiled> compile(const PipelineKey& key, std::span<const uint8_t> saved);
  // With the data, unless they are of another device or Vulkan refuses them.
  VkPipelineCache createCache(std::span<const uint8_t> saved, bool* isTaken);
  std::vector<uint8_t> dataOf(VkPipelineCache cache);

  std::shared_ptr<Gpu> gpu_;
  const std::shared_ptr<PipelineStore> store_;
  VkDescriptorSetLayout setLayout_ = VK_NULL_HANDLE;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  base::Mutex mutex_;
  std::map<PipelineKey, Compiled> pipelines_;
};

}  // namespace hearth::vulkan
