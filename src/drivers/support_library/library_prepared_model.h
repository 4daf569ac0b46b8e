// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "drivers/support_library/library_model.h"
#include "drivers/support_library/support_library.h"
#include "hal/device.h"

namespace hearth::drivers::support_library {

// kOutOfMemory where an intermediate result of known shape is alone above the limit, naming it; 0
// is no limit. Libraries do not say how much memory they take, nor can they be told.
Status checkActivations(const graph::Model& model, uint64_t limit);

// A compilation of a support library. Thread-safe.
class LibraryPreparedModel final : public hal::PreparedModel,
                                   public std::enable_shared_from_this<LibraryPreparedModel> {
 public:
  // `maxActivationBytes` as of hal::PrepareOptions.
  LibraryPreparedModel(std::shared_ptr<const LibraryModel> model,
                       Handle<ANeuralNetworksCompilation> compilation, uint64_t maxActivationBytes)
      : model_(std::move(model)),
        compilation_(std::move(compilation)),
        maxActivationBytes_(maxActivationBytes) {}

  Result<std::unique_ptr<hal::Execution>> createExecution(hal::Request request) override;
  hal::StartReport startReport() const override;

  const LibraryModel& model() const { return *model_; }
  ANeuralNetworksCompilation* compilation() const { return compilation_.get(); }

 private:
  const std::shared_ptr<const LibraryModel> model_;
  const Handle<ANeuralNetworksCompilation> compilation_;
  const uint64_t maxActivationBytes_;
};

}  // namespace hearth::drivers::support_library
