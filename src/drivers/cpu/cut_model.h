// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "drivers/cpu/model_family.h"
#include "drivers/cpu/prepared_model.h"
#include "graph/model.h"
#include "graph/step_model.h"
#include "hal/device.h"
#include "hal/interpreted_model.h"
#include "hal/request_check.h"
#include "ops/interpreter.h"

namespace hearth::cpu {

class DynamicModel;

// A model for known shapes of its inputs in which the shapes of some results depend on values, as
// that of NON_ZERO does. The operations with such results divide it into parts, which run one after
// the other: `front` is what reads none of these results and has known shapes; `cut` is the
// operations themselves, which are interpreted; `rest` is what reads their results, a model with
// unknown shapes, which is planned for the shapes of each execution and may be divided again.
// Thread-safe.
class CutModel : public std::enable_shared_from_this<CutModel> {
 public:
  // A tensor that is an argument of the whole model or of one of its parts.
  struct Slot {
    graph::Operand operand;
    std::optional<uint32_t> input;   // position among the inputs of the whole model
    std::optional<uint32_t> output;  // or among its outputs
    bool isRead = false;             // by a later part
  };
  // Indices of the slots of a part's arguments.
  struct Arguments {
    std::vector<uint32_t> inputs;
    std::vector<uint32_t> outputs;
  };

  // Divides a model of `family` that passed graph::validate() and ops::validateOperations().
  // `shapes` are those of its inputs, `numbers` those of its operations in the whole of the family,
  // `limits` those of the rest. Errors: kUnsupported where there is nothing to
  // divide, or a part cannot be planned; those of ops::specializePartly() and
  // CpuPreparedModel::create().
  static Result<std::shared_ptr<CutModel>> create(std::shared_ptr<const graph::Model> model,
                                                  std::span<const graph::Dimensions> shapes,
                                                  std::shared_ptr<ModelFamily> family,
                                                  std::span<const uint32_t> numbers,
                                                  const PartLimits& limits);
  ~CutModel();

  // `bound` is the request, which has passed hal::checkRequest() and omits no input.
  Result<std::unique_ptr<hal::Execution>> createExecution(hal::Request request,
                                                          hal::BoundRequest bound);
  // Sums up the reports of the parts that are prepared.
  hal::StartReport report(hal::StartReport (hal::PreparedModel::*reportOf)() const) const;

  // ---- for executions ----

  const std::vector<Slot>& slots() const { return slots_; }
  const std::shared_ptr<CpuPreparedModel>& front() const { return front_; }  // may be null
  const Arguments& frontArguments() const { return frontArguments_; }
  const ops::Interpreter& cut() const { return *cut_; }
  const Arguments& cutArguments() const { return cutArguments_; }
  const std::shared_ptr<DynamicModel>& rest() const { return rest_; }  // may be null
  const Arguments& restArguments() const { return restArguments_; }
  // Of the constants that `cut` reads; null unless the model is a saved one.
  const std::shared_ptr<SavedSegments>& saved() const { return family_->saved(); }
  const graph::Model& model() const { return *model_; }
  uint64_t frontBytes() const { return frontBytes_; }  // activations of `front`
  // The limit on activations; 0 = none.
  uint64_t maxActivationBytes() const { return family_->options().maxActivationBytes; }
  // The whole model, interpreted: for executions whose rest cannot be bound.
  Result<std::shared_ptr<hal::InterpretedModel>> whole();

 private:
  CutModel() = default;
  CutModel(const CutModel&) = delete;
  CutModel& operator=(const CutModel&) = delete;
  Status prepareParts(const graph::Model& divided, std::span<const uint32_t> numbers,
                      std::span<const uint32_t> open, const PartLimits& limits);
  Status prepareFront(const graph::StepModel& part, std::vector<uint32_t> numbers);
  Arguments argumentsOf(const graph::Model& divided, const graph::StepModel& part);
  uint32_t slotOf(const graph::Model& divided, uint32_t operand);

  std::shared_ptr<const graph::Model> model_;
  std::shared_ptr<ModelFamily> family_;
  std::vector<std::optional<uint32_t>> slotOf_;  // by operand
  std::vector<Slot> slots_;
  std::shared_ptr<CpuPreparedModel> front_;
  bool isFrontWorthKeeping_ = false;
  uint64_t frontBytes_ = 0;
  Arguments frontArguments_;
  std::shared_ptr<const ops::Interpreter> cut_;
  Arguments cutArguments_;
  std::shared_ptr<DynamicModel> rest_;
  bool isRestWorthKeeping_ = false;
  Arguments restArguments_;

  base::Mutex mutex_;
  std::shared_ptr<hal::InterpretedModel> whole_;  // made when it is needed
};

}  // namespace hearth::cpu
