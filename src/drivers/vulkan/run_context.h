// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <volk.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/result.h"
#include "drivers/vulkan/context/buffer.h"
#include "drivers/vulkan/context/commands.h"
#include "drivers/vulkan/context/gpu.h"
#include "drivers/vulkan/context/pipelines.h"
#include "drivers/vulkan/plan/plan.h"

namespace hearth::vulkan {

// Memory for one run of a plan at a time, and the commands of it: they copy the inputs in, run the
// dispatches and copy the outputs out. Not thread-safe.
class RunContext {
 public:
  // `constants` holds the constants of the plan; null if it has none. Errors as Buffer::create(),
  // Pipelines::find() and the calls that record.
  static Result<std::unique_ptr<RunContext>> create(std::shared_ptr<Gpu> gpu, Pipelines& pipelines,
                                                    const Plan& plan, const Buffer* constants);
  ~RunContext();
  RunContext(const RunContext&) = delete;
  RunContext& operator=(const RunContext&) = delete;

  // Where input `index` of the model has to be before a run, and where output `index` is after it;
  // null for an input that is not used.
  uint8_t* input(size_t index) { return inputs_[index]; }
  const uint8_t* output(size_t index) const { return outputs_[index]; }

  // Runs once. Errors as Commands::run().
  Status run() { return commands_->run(); }

 private:
  explicit RunContext(std::shared_ptr<Gpu> gpu) : gpu_(std::move(gpu)) {}
  Status allocate(const Plan& plan);
  Status allocateSets(const Pipelines& pipelines, size_t count);
  Status record(Pipelines& pipelines, const Plan& plan, const Buffer* constants);

  std::shared_ptr<Gpu> gpu_;
  std::unique_ptr<Buffer> arena_;
  std::unique_ptr<Buffer> upload_;
  std::unique_ptr<Buffer> download_;
  std::unique_ptr<Commands> commands_;
  VkDescriptorPool pool_ = VK_NULL_HANDLE;
  std::vector<VkDescriptorSet> sets_;
  std::vector<uint8_t*> inputs_;
  std::vector<uint8_t*> outputs_;
};

}  // namespace hearth::vulkan
