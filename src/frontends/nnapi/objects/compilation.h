// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "frontends/nnapi/objects/devices.h"
#include "frontends/nnapi/objects/model.h"
#include "hal/device.h"
#include "runtime/model_plan.h"

namespace hearth::nnapi {

// What a compilation comes to. Immutable, shared with executions, bursts and memory roles.
class CompiledModel {
 public:
  CompiledModel(std::shared_ptr<const graph::Model> model, runtime::ModelPlan plan,
                hal::Priority priority, bool hasExplicitDevices, size_t deviceCount)
      : model_(std::move(model)),
        plan_(std::move(plan)),
        priority_(priority),
        hasExplicitDevices_(hasExplicitDevices),
        deviceCount_(deviceCount) {}

  const runtime::ModelPlan& plan() const { return plan_; }
  hal::Priority priority() const { return priority_; }
  bool hasExplicitDevices() const { return hasExplicitDevices_; }
  // What timing and deadlines are bound to.
  bool hasSingleExplicitDevice() const { return hasExplicitDevices_ && deviceCount_ == 1; }

  // True once: for a warning that is enough once.
  bool isFirstOtherType() const {
    return !hasSeenOtherType_.exchange(true, std::memory_order_relaxed);
  }

  size_t inputCount() const { return model_->main().inputs.size(); }
  size_t outputCount() const { return model_->main().outputs.size(); }
  // index < inputCount() or outputCount().
  const graph::Operand& input(size_t index) const {
    return model_->main().operands[model_->main().inputs[index]];
  }
  const graph::Operand& output(size_t index) const {
    return model_->main().operands[model_->main().outputs[index]];
  }

 private:
  const std::shared_ptr<const graph::Model> model_;
  const runtime::ModelPlan plan_;
  const hal::Priority priority_;
  const bool hasExplicitDevices_;
  const size_t deviceCount_;
  mutable std::atomic<bool> hasSeenOtherType_ = false;
};

// A compilation while its options are set, and the compiled model once it is finished. All changes
// after finish() are kBadState.
class Compilation {
 public:
  // `devices` empty: all, with the reference for what fails.
  Compilation(const Model& model, DeviceList devices);

  Status setPreference(int32_t preference);
  Status setPriority(int32_t priority);
  // Nanoseconds, 0 = no limit.
  Status setTimeout(uint64_t duration);
  // `token` has BYTE_SIZE_OF_CACHE_TOKEN bytes. The last call counts.
  Status setCaching(const char* directory, const uint8_t* token);
  // For a model that one device takes as a whole, in files that the client has open; they are
  // duplicated.
  Status setCachingByFiles(std::span<const int> modelFiles, std::span<const int> dataFiles,
                           const uint8_t* token);
  // No device knows one: kBadData.
  Status addAttribute(const char* extension, uint16_t code);
  Status finish();

  // kBadState when the compilation is not finished or failed.
  Result<std::shared_ptr<const CompiledModel>> compiled() const;

 private:
  Status requireOpen() const;

  const std::shared_ptr<const graph::Model> model_;
  const bool hasUnknownOperation_;
  const DeviceList explicitDevices_;
  hal::PrepareOptions options_;
  std::shared_ptr<const runtime::CacheRequest> cache_;
  uint64_t timeout_ = 0;
  bool wantsFirstAnswer_ = false;
  bool isFinished_ = false;
  std::shared_ptr<const CompiledModel> compiled_;
};

}  // namespace hearth::nnapi

struct ANeuralNetworksCompilation final : hearth::nnapi::Compilation {
  using Compilation::Compilation;
};
