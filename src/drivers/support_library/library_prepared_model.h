// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "drivers/support_library/library_event.h"
#include "drivers/support_library/library_memory.h"
#include "drivers/support_library/library_model.h"
#include "drivers/support_library/support_library.h"
#include "hal/device.h"

namespace hearth::drivers::support_library {

// kOutOfMemory where an intermediate result of known shape is alone above the limit, naming it; 0
// is no limit. Libraries do not say how much memory they take, nor can they be told.
Status checkActivations(const graph::Model& model, uint64_t limit);

// The arguments of a request that lie in memory of the device; null for the others.
struct DeviceArguments {
  std::vector<std::shared_ptr<const LibraryMemory>> inputs;
  std::vector<std::shared_ptr<const LibraryMemory>> outputs;
};

// A compilation of a support library. Thread-safe.
class LibraryPreparedModel final : public hal::PreparedModel,
                                   public std::enable_shared_from_this<LibraryPreparedModel> {
 public:
  // `memories` are those of the model's device; `maxActivationBytes` as of hal::PrepareOptions,
  // `cacheProblem` as of hal::StartReport.
  LibraryPreparedModel(std::shared_ptr<LibraryMemories> memories,
                       std::shared_ptr<const LibraryModel> model,
                       Handle<ANeuralNetworksCompilation> compilation, uint64_t maxActivationBytes,
                       std::string cacheProblem)
      : memories_(std::move(memories)),
        model_(std::move(model)),
        compilation_(std::move(compilation)),
        maxActivationBytes_(maxActivationBytes),
        cacheProblem_(std::move(cacheProblem)) {}

  Result<std::unique_ptr<hal::Execution>> createExecution(hal::Request request) override;
  hal::StartReport startReport() const override;
  bool hasFences() const override { return hasEvents(model_->library().functions()); }

  const LibraryModel& model() const { return *model_; }
  ANeuralNetworksCompilation* compilation() const { return compilation_.get(); }

 private:
  // Takes the arguments in memory of the device out of the request, which then has no value there.
  Result<DeviceArguments> takeDeviceArguments(hal::Request* request) const;

  const std::shared_ptr<LibraryMemories> memories_;
  const std::shared_ptr<const LibraryModel> model_;
  const Handle<ANeuralNetworksCompilation> compilation_;
  const uint64_t maxActivationBytes_;
  const std::string cacheProblem_;
};

}  // namespace hearth::drivers::support_library
