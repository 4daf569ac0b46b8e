// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "cache/store/segment_store.h"
#include "drivers/cpu/cut_model.h"
#include "drivers/cpu/model_family.h"
#include "drivers/cpu/prepared_model.h"
#include "graph/model.h"
#include "hal/device.h"
#include "hal/interpreted_model.h"
#include "hal/prepared_shapes.h"
#include "threads/thread_pool.h"

namespace hearth::cpu {

// A model with unknown dimensions: one prepared model for each tuple of shapes that its inputs have
// had lately. All use the packed weights of the first one (ModelFamily). Where a later shape
// depends on values, the model is divided there (CutModel). An execution whose shapes cannot be
// planned, as when an input is omitted or has no elements, is interpreted. Thread-safe.
class DynamicModel final : public hal::PreparedModel {
 public:
  // Prepares a model that passed graph::validate() and ops::validateOperations() for
  // `options.expectedInputs`; where these are missing or cannot be planned, executions prepare it.
  // Errors: kUnsupported when the shapes are known, but the model has to be interpreted; those
  // of CpuPreparedModel::create(). `store`, `saved` and `keeping` as in ModelFamily.
  static Result<std::shared_ptr<DynamicModel>> create(std::shared_ptr<const graph::Model> model,
                                                      const hal::PrepareOptions& options,
                                                      std::shared_ptr<threads::ThreadPool> pool,
                                                      std::shared_ptr<cache::SegmentStore> store,
                                                      SavedFamily saved, FamilyKeeping keeping);

  // A part of a model of the family, which executions prepare. `numbers` are those of the part's
  // operations in the whole of the family.
  static std::shared_ptr<DynamicModel> partOf(std::shared_ptr<ModelFamily> family,
                                              std::shared_ptr<const graph::Model> part,
                                              std::vector<uint32_t> numbers,
                                              const PartLimits& limits);

  // Whether it has been prepared for any shapes.
  bool isPrepared() const;

  Result<std::unique_ptr<hal::Execution>> createExecution(hal::Request request) override;
  // Waits until the client's cache files are written.
  hal::StartReport startReport() const override;
  hal::StartReport startReportSoFar() const override;

 private:
  using Shapes = std::vector<graph::Dimensions>;  // of the inputs
  // For one tuple of shapes: one of the two.
  struct Prepared {
    std::shared_ptr<CpuPreparedModel> planned;
    std::shared_ptr<CutModel> divided;
  };

  DynamicModel(std::shared_ptr<ModelFamily> family, std::shared_ptr<const graph::Model> model,
               std::vector<uint32_t> numbers, const PartLimits& limits);

  // Prepares for the shapes that are known or expected, if they are.
  Status prepareExpected(const hal::PrepareOptions& options);
  // The prepared model for these shapes, which is made where there is none.
  Result<Prepared> prepareFor(const Shapes& shapes);
  Result<Prepared> makeFor(const Shapes& shapes);
  PartLimits restLimits() const;
  Result<std::shared_ptr<CpuPreparedModel>> plan(const Shapes& shapes);
  Result<std::shared_ptr<hal::InterpretedModel>> interpretedModel(const Error& reason);
  Result<std::unique_ptr<hal::Execution>> interpret(hal::Request request, const Error& reason);
  hal::StartReport report(hal::StartReport (hal::PreparedModel::*reportOf)() const) const;

  const std::shared_ptr<ModelFamily> family_;
  const std::shared_ptr<const graph::Model> model_;
  const std::vector<uint32_t> numbers_;  // of the operations in the whole of the family
  const PartLimits limits_;

  hal::PreparedShapes<Prepared> members_;
  base::Mutex mutex_;
  std::shared_ptr<hal::InterpretedModel> interpreted_;  // made when it is needed
};

}  // namespace hearth::cpu
