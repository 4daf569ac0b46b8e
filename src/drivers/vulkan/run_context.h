// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <volk.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "base/result.h"
#include "drivers/vulkan/context/buffer.h"
#include "drivers/vulkan/context/commands.h"
#include "drivers/vulkan/context/gpu.h"
#include "drivers/vulkan/context/pipelines.h"
#include "drivers/vulkan/device_tensors.h"
#include "drivers/vulkan/plan/plan.h"
#include "memory/pool.h"

namespace hearth::vulkan {

// A place in memory of the client that has become a buffer; a null buffer for none.
struct HostPlace {
  std::shared_ptr<Buffer> buffer;
  uint64_t offset = 0;
};

// A dma-buf that has become a buffer.
struct ImportedDmaBuf {
  memory::PoolRef pool;
  std::shared_ptr<Buffer> buffer;
};

// The arguments of a run that the GPU itself reaches, by their places among the model's inputs and
// outputs: those in its memory, and those in memory of the client. Null for those that are copied.
struct DeviceArguments {
  std::vector<std::shared_ptr<DeviceTensor>> inputs;
  std::vector<std::shared_ptr<DeviceTensor>> outputs;
  std::vector<HostPlace> hostInputs = std::vector<HostPlace>(inputs.size());
  std::vector<HostPlace> hostOutputs = std::vector<HostPlace>(outputs.size());
  std::vector<ImportedDmaBuf> dmaBufs;  // that some of them lie in
};

// Memory for one run of a plan at a time, and the commands of it: they copy the host's inputs in,
// run the dispatches and copy the outputs out. Tensors that lie in the memory of the GPU are used
// in place. Not thread-safe.
class RunContext {
 public:
  // `constants` holds the constants of the plan; null if it has none. All of these outlive the
  // context. Errors as Buffer::create().
  static Result<std::unique_ptr<RunContext>> create(std::shared_ptr<Gpu> gpu, Pipelines& pipelines,
                                                    const Plan& plan, const Buffer* constants);
  ~RunContext();
  RunContext(const RunContext&) = delete;
  RunContext& operator=(const RunContext&) = delete;

  // Records the commands for these arguments, of the sizes that the plan has; no output is there
  // twice. The caller keeps the tensors while it runs the context. Errors as Buffer::create(),
  // Pipelines::find() and the calls that record; after one the context is bound to nothing.
  Status bind(const DeviceArguments& arguments);
  bool isBoundTo(const DeviceArguments& arguments) const;
  // Forgets memory of the client, which may be freed from now on.
  void leaveHost();

  // Where input `index` of the model has to be before a run, and where output `index` is after it;
  // null for an input that is not used and for arguments that the GPU reaches.
  uint8_t* input(size_t index) { return inputs_[index]; }
  const uint8_t* output(size_t index) const { return outputs_[index]; }
  // Whether shaders read it where the client has it.
  bool isUsedInPlace(size_t index) const { return inPlace_[index]; }
  // Whether the last run found its inputs wrong (Plan::fault).
  bool hasFault() const;

  // Runs once; it has to be bound. Errors as Commands::run().
  Status run() { return commands_->run(); }

  // Runs once after these sync files, without the CPU: for a context whose arguments all lie in the
  // memory of the GPU. As Commands::start() and finish().
  Result<base::Descriptor> start(std::span<const base::Descriptor> files) {
    return commands_->start(files);
  }
  Status finish() { return commands_->finish(); }

 private:
  RunContext(std::shared_ptr<Gpu> gpu, Pipelines& pipelines, const Plan& plan,
             const Buffer* constants)
      : gpu_(std::move(gpu)), pipelines_(pipelines), plan_(plan), constants_(constants) {}
  Status allocate();
  Status allocateSets(size_t count);
  Status placeArguments(const DeviceArguments& arguments);
  Status record(const DeviceArguments& arguments);
  Status recordDispatches();
  void recordCopy(VkBuffer from, VkBuffer to, const VkBufferCopy& region);

  // Where a tensor lies in this context.
  struct Place {
    VkBuffer buffer = VK_NULL_HANDLE;
    uint64_t offset = 0;
  };
  void findPlaces(const DeviceArguments& arguments);
  const Place& placeOf(TensorId id) const;

  const std::shared_ptr<Gpu> gpu_;
  Pipelines& pipelines_;
  const Plan& plan_;
  const Buffer* const constants_;
  std::unique_ptr<Buffer> arena_;
  std::unique_ptr<Buffer> upload_;
  std::unique_ptr<Buffer> download_;
  std::unique_ptr<Commands> commands_;
  VkDescriptorPool pool_ = VK_NULL_HANDLE;
  std::vector<VkDescriptorSet> sets_;
  std::vector<Place> places_;  // by tensor; of roots only
  std::vector<uint8_t*> inputs_;
  std::vector<uint8_t*> outputs_;
  std::vector<bool> inPlace_;  // inputs
  uint8_t* fault_ = nullptr;
  bool isAtHost_ = false;  // bound to memory of the client
  // Of the tensors that it is bound to, 0 for the host's arguments; none while it is not bound.
  std::optional<std::vector<uint32_t>> tokens_;
};

}  // namespace hearth::vulkan
