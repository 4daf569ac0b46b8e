// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "drivers/delegate/device_context.h"
#include "drivers/delegate/offered_graph.h"
#include "graph/model.h"
#include "hal/device.h"

namespace hearth::drivers::delegate {

// A graph whose end runs the vendor's code, too, and so waits for the library.
using SharedGraph = std::shared_ptr<OfferedGraph>;

// A model that a new delegate was offered.
struct Offer {
  SharedGraph graph;
  // The library's own cache, which lives as long as the graph; may be null.
  std::shared_ptr<WorkingCache> cache;
  std::shared_ptr<const graph::Model> model;  // with known shapes
  // The operations that are left, as indices in the main subgraph of the original.
  std::vector<uint32_t> operations;
  std::vector<graph::Dimensions> outputs;
};
struct OfferOptions {
  unsigned threads = 0;             // 0: as many as the delegate likes
  uint64_t maxActivationBytes = 0;  // 0: no limit
};
// Offers the model for these shapes of its inputs. Errors: those of ops::specialize() and
// OfferedGraph::create(); kOutOfMemory above the limit of the options. The library's mutex must not
// be held.
Result<Offer> offerModel(const graph::Model& model, std::span<const graph::Dimensions> inputs,
                         const DeviceContext& context, const OfferOptions& options);

// A model that a delegate has taken as a whole, for one or more shapes of its inputs.
class DelegateModel final : public hal::PreparedModel,
                            public std::enable_shared_from_this<DelegateModel> {
 public:
  // Prepares for the shapes of the model or, where it has open ones, for those that the options
  // expect; without them nothing is prepared before an execution. kUnsupported if the delegate does
  // not take all operations.
  static Result<std::shared_ptr<DelegateModel>> create(std::shared_ptr<const graph::Model> model,
                                                       std::shared_ptr<const DeviceContext> context,
                                                       const hal::PrepareOptions& options);

  Result<std::unique_ptr<hal::Execution>> createExecution(hal::Request request) override;
  hal::StartReport startReport() const override;

  VendorLibrary& library() { return context_->library(); }
  // An error if constants were lost since the model was given, which kernels read where they are.
  Status checkConstants() const;

 private:
  struct Variant {
    std::vector<graph::Dimensions> inputs;
    SharedGraph graph;
    std::vector<graph::Dimensions> outputs;
    hal::StartReport report;
  };

  DelegateModel(std::shared_ptr<const graph::Model> model,
                std::shared_ptr<const DeviceContext> context, const OfferOptions& options)
      : model_(std::move(model)), context_(std::move(context)), options_(options) {}

  // The graph for these shapes, prepared now if it was not.
  Result<Variant> variantFor(const std::vector<graph::Dimensions>& inputs);
  Result<Variant> prepareVariant(const std::vector<graph::Dimensions>& inputs) const;
  Status prepare(const Offer& offer) const;
  // Keeps what the delegate has left for later starts; how this start went.
  hal::StartReport keepCache(const Offer& offer) const;

  const std::shared_ptr<const graph::Model> model_;
  const std::shared_ptr<const DeviceContext> context_;
  const OfferOptions options_;
  mutable base::Mutex mutex_;
  std::list<Variant> variants_;  // last used first
};

}  // namespace hearth::drivers::delegate
