// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "graph/model.h"
#include "hal/device.h"
#include "runtime/device_manager.h"

namespace hearth::runtime {

// An output whose value is the value of an input at the next run (an LSTM's memory). Positions
// among the inputs and outputs of the main subgraph; state comes behind everything a client sees.
struct StatePair {
  uint32_t input = 0;
  uint32_t output = 0;
  std::vector<uint8_t> initialValue;  // empty = zero bytes
};

// Arguments whose address is a multiple of this, and which have so many bytes behind them in the
// page of their last one, are used where they lie by every device of ours.
inline constexpr uint32_t kPreferredAlignment = 64;
inline constexpr uint32_t kPreferredPadding = 64;

struct CompilationOptions {
  std::string device;  // empty = the first that takes every operation
  // Of threads 0 = what HEARTH_THREADS says, of maxActivationBytes half of the machine's memory.
  hal::PrepareOptions prepare;
};

// What HEARTH_PREPARATION says. Error: kBadData for another word than its two.
Result<hal::Preparation> defaultPreparation();

// What HEARTH_TUNING says. Error: kBadData for another word than its two.
Result<bool> isTunedByDefault();

// Half of the machine's memory, in bytes.
uint64_t defaultActivationLimit();

// A model made ready on one device. Immutable and thread-safe.
class Compilation {
 public:
  // Errors: kBadData (invalid model), kNotFound (device), kUnsupported (names operations that the
  // device, or each device, does not take, and why), kResourceExhaustedPersistent (names the tensor
  // above the activation limit), and whatever the driver reports.
  static Result<std::shared_ptr<const Compilation>> create(
      std::shared_ptr<const graph::Model> model, std::vector<StatePair> states,
      const CompilationOptions& options, const DeviceManager& devices);

  // How create() would start now, on the device that it would choose; nothing is packed or kept.
  // The same errors.
  static Result<hal::StartReport> explainStart(std::shared_ptr<const graph::Model> model,
                                               const CompilationOptions& options,
                                               const DeviceManager& devices);

  const graph::Model& model() const { return *model_; }
  hal::Device& device() const { return *device_; }
  hal::PreparedModel& preparedModel() const { return *prepared_; }
  hal::StartReport startReport() const { return prepared_->startReport(); }
  hal::StartReport startReportSoFar() const { return prepared_->startReportSoFar(); }
  const std::vector<StatePair>& states() const { return states_; }
  hal::Priority priority() const { return priority_; }

  // Without state.
  size_t inputCount() const { return model_->main().inputs.size() - states_.size(); }
  size_t outputCount() const { return model_->main().outputs.size() - states_.size(); }
  const graph::Operand& input(size_t index) const {
    return model_->main().operands[model_->main().inputs[index]];
  }
  const graph::Operand& output(size_t index) const {
    return model_->main().operands[model_->main().outputs[index]];
  }

 private:
  static Result<hal::PrepareOptions> prepareOptions(const graph::Model& model,
                                                    const CompilationOptions& options);
  Compilation() = default;

  std::shared_ptr<const graph::Model> model_;
  std::vector<StatePair> states_;
  std::shared_ptr<hal::Device> device_;
  std::shared_ptr<hal::PreparedModel> prepared_;
  hal::Priority priority_ = hal::Priority::kMedium;
};

}  // namespace hearth::runtime
