// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "drivers/vulkan/compilation_cache/model_cache.h"
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
// interpreted on the CPU. Cache files have the model, and plans for the first shapes: they are
// written when the model is prepared, and again when an execution has others. Thread-safe.
class DynamicModel final : public GpuModel {
 public:
  // The model has passed graph::validate() and ops::validateOperations(). It is prepared for
  // `options.expectedInputs`, if there are any, and written to the cache files, if there are any.
  // Errors as VulkanPreparedModel::create() for the shapes that are tried.
  static Result<std::shared_ptr<DynamicModel>> create(OpenGpu open,
                                                      std::shared_ptr<const graph::Model> model,
                                                      const hal::PrepareOptions& options,
                                                      hal::Cache cache = {});
  // A model that create() wrote to these files. Errors as VulkanPreparedModel::createSaved() for
  // `options.expectedInputs`.
  static Result<std::shared_ptr<DynamicModel>> createSaved(OpenGpu open,
                                                           const hal::PrepareOptions& options,
                                                           SavedFamily saved, hal::Cache cache);

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
               const hal::PrepareOptions& options, hal::Cache cache);
  Status prepareExpected();
  Result<Member> prepareFor(const Shapes& shapes);
  // Of cache files, or new; says which.
  Result<Member> makeFor(const Shapes& shapes, bool* isSaved);
  // Writes the plans of the files and those that were made since, unless the files have as many
  // as are kept.
  void save();
  void useMeasured(FamilyMember* member) const;
  Result<Shapes> shapesOf(const hal::Request& request) const;
  Result<std::unique_ptr<hal::Execution>> interpret(hal::Request request, const Error& reason);

  const OpenGpu open_;
  const std::shared_ptr<const graph::Model> model_;
  const hal::PrepareOptions options_;
  const std::shared_ptr<TunedFiles> files_;  // cache files; null: none
  bool isSaved_ = false;  // prepared from cache files; set before anybody else has the model
  SharedConstants constants_;
  hal::PreparedShapes<Member> members_;
  base::Mutex mutex_;
  std::shared_ptr<hal::InterpretedModel> interpreted_;  // made when it is needed
  uint32_t lowered_ = 0;                                // shapes whose plans were made here
  mutable base::Mutex saveMutex_;                       // taken before those of files_ and members_
  std::vector<FamilyMember> saved_;                     // what the cache files have
  std::string cacheProblem_;
};

}  // namespace hearth::vulkan
