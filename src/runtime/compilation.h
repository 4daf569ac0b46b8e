// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "graph/model.h"
#include "graph/state_pair.h"
#include "hal/device.h"
#include "runtime/cache_explanation.h"
#include "runtime/compilation_cache.h"
#include "runtime/device_manager.h"
#include "runtime/partitioned_model.h"

namespace hearth::runtime {

// All our devices use an argument in place if its address is a multiple of kPreferredAlignment and
// kPreferredPadding bytes follow its last byte in the same page, or the client promises that they
// can be read.
inline constexpr uint32_t kPreferredAlignment = 64;
inline constexpr uint32_t kPreferredPadding = 64;

struct CompilationOptions {
  // The devices that may run the model or parts of it, in order of preference. Empty: every device,
  // and the reference device runs what fails on the others.
  std::vector<std::shared_ptr<hal::Device>> devices;
  // `threads` 0 means what HEARTH_THREADS sets, `maxActivationBytes` 0 half of the machine's
  // memory. The two optional members below replace `preparation` and `isTuned`.
  hal::PrepareOptions prepare;
  std::optional<hal::Preparation> preparation;  // none = what HEARTH_PREPARATION sets
  // Also whether devices are chosen by their measured speeds; none = what HEARTH_TUNING sets.
  std::optional<bool> isTuned;
  // Where the devices keep their cache files (NNAPI's compilation caching); null: nowhere.
  std::shared_ptr<const CacheRequest> cache;
};

// Half of the machine's memory, in bytes.
uint64_t defaultActivationLimit();

// A model prepared on one or several devices. Immutable and thread-safe.
class Compilation {
 public:
  // Errors: kBadData (invalid model, a setting of the environment), kUnsupported (names operations
  // that no device takes, and why), kResourceExhaustedPersistent (names the tensor above the
  // activation limit), and whatever the drivers report (preparePartitioned()).
  static Result<std::shared_ptr<const Compilation>> create(
      std::shared_ptr<const graph::Model> model, std::vector<graph::StatePair> states,
      const CompilationOptions& options, const DeviceManager& manager);

  // Tells how create() would start now, on the devices that it would choose. Packs and keeps
  // nothing, and ignores the client's cache files. Fails like create().
  static Result<hal::StartReport> explainStart(std::shared_ptr<const graph::Model> model,
                                               const CompilationOptions& options,
                                               const DeviceManager& manager);

  // Tells which of the client's cache files create() would take, in the order in which it prepares
  // the parts. `options.cache` must be set. Fails like create(), without a fallback.
  static Result<std::vector<CacheExplanation>> explainCaches(
      std::shared_ptr<const graph::Model> model, const CompilationOptions& options,
      const DeviceManager& manager);

  const graph::Model& model() const { return *model_; }
  const PartitionedModel& parts() const { return parts_; }
  hal::PreparedModel& preparedModel() const { return *parts_.prepared; }
  const std::vector<graph::StatePair>& states() const { return states_; }
  hal::Priority priority() const { return priority_; }

  // Whether the client named the devices.
  bool hasExplicitDevices() const { return explicitDevices_ != 0; }
  // NNAPI allows timing and deadlines only then.
  bool hasSingleExplicitDevice() const { return explicitDevices_ == 1; }

  // Names of the steps' devices, with ", " between them.
  std::string deviceNames() const;
  // kCacheHit when all parts came from the client's cache files, else why the first part that did
  // not is no hit; empty without cache files.
  std::string cacheOutcome() const;

  // True at the first call only: for a message that only the first execution logs.
  bool isFirstRemark() const { return !hasRemark_.exchange(true, std::memory_order_relaxed); }

  // Of the client's arguments, without state.
  size_t inputCount() const { return model_->main().inputs.size() - states_.size(); }
  size_t outputCount() const { return model_->main().outputs.size() - states_.size(); }
  const graph::Operand& input(size_t index) const {
    return model_->main().operands[model_->main().inputs[index]];
  }
  const graph::Operand& output(size_t index) const {
    return model_->main().operands[model_->main().outputs[index]];
  }

 private:
  Compilation() = default;

  std::shared_ptr<const graph::Model> model_;
  std::vector<graph::StatePair> states_;
  PartitionedModel parts_;
  hal::Priority priority_ = hal::Priority::kMedium;
  size_t explicitDevices_ = 0;
  mutable std::atomic<bool> hasRemark_ = false;
};

}  // namespace hearth::runtime
