// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "drivers/vulkan/gpu_model.h"
#include "drivers/vulkan/prepared_model.h"
#include "drivers/vulkan/shared_constants.h"
#include "graph/model.h"
#include "hal/interpreted_model.h"
#include "hal/prepared_shapes.h"
#include "ops/specialized_model.h"

namespace hearth::vulkan {

// The model for some shapes of its inputs, so that it can be seen which operations the GPU runs:
// unknown dimensions become 64 or, where the model cannot take that, other numbers. Errors as
// ops::specialize(); kUnsupported for an input of unknown rank.
Result<ops::SpecializedModel> specializeForTrial(const graph::Model& model);

// A model with inputs of unknown dimensions: a plan for each tuple of shapes that they have had
// lately, over the same constants and pipelines. An execution whose shapes the GPU cannot run is
// interpreted on the CPU. Thread-safe.
class DynamicModel final : public GpuModel {
 public:
  // The model has passed graph::validate() and ops::validateOperations(). It is prepared for
  // `options.expectedInputs`, if there are any. Errors as VulkanPreparedModel::create() for the
  // shapes that are tried.
  static Result<std::shared_ptr<DynamicModel>> create(OpenGpu open,
                                                      std::shared_ptr<const graph::Model> model,
                                                      const hal::PrepareOptions& options);

  bool hasFences() const override { return true; }
  Result<std::unique_ptr<hal::Execution>> createExecution(hal::Request request) override;
  hal::StartReport startReport() const override;
  const std::shared_ptr<Gpu>& gpu() const override { return open_.gpu; }
  Result<uint64_t> argumentBytes(bool isInput, uint32_t index,
                                 const graph::Dimensions& wanted) const override;

 private:
  using Member = std::shared_ptr<VulkanPreparedModel>;
  using Shapes = hal::PreparedShapes<Member>::Shapes;

  DynamicModel(OpenGpu open, std::shared_ptr<const graph::Model> model,
               const hal::PrepareOptions& options);
  Status prepareExpected();
  Result<Member> prepareFor(const Shapes& shapes);
  Result<Shapes> shapesOf(const hal::Request& request) const;
  Result<std::unique_ptr<hal::Execution>> interpret(hal::Request request, const Error& reason);

  const OpenGpu open_;
  const std::shared_ptr<const graph::Model> model_;
  const hal::PrepareOptions options_;
  SharedConstants constants_;
  hal::PreparedShapes<Member> members_;
  base::Mutex mutex_;
  std::shared_ptr<hal::InterpretedModel> interpreted_;  // made when it is needed
};

}  // namespace hearth::vulkan
