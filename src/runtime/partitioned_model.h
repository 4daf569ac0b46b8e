// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "hal/device.h"
#include "runtime/compilation_cache.h"
#include "runtime/partitioner.h"

namespace hearth::runtime {

// A driver's part in an argument of the model.
struct ArgumentUse {
  std::shared_ptr<hal::Device> device;  // null: control flow between devices
  std::shared_ptr<hal::PreparedModel> prepared;
  uint32_t index = 0;  // among the inputs or outputs of `prepared`
};

// How a model runs on its devices.
struct PartitionedModel {
  std::shared_ptr<hal::PreparedModel> prepared;  // the whole
  // Names, one for each step; "control flow" for an IF or WHILE whose parts are divided in turn.
  std::vector<std::string> devices;
  std::vector<std::vector<uint32_t>> operations;  // of each step, in run order
  // What became of the cache files of each step (CachedPreparation::cache).
  std::vector<std::string> caches;
  std::vector<std::vector<ArgumentUse>> inputUses;  // by input of the model
  std::vector<std::vector<ArgumentUse>> outputUses;
};

// How one part is made ready (prepareCached).
using PreparePart = std::function<Result<CachedPreparation>(
    hal::Device& device, const ModelSource& model, const hal::PrepareOptions& options,
    const CacheRequest* request, CacheKeyHash key)>;

struct PartitioningOptions {
  hal::PrepareOptions prepare;
  // Where the model goes as a whole when its preparation or an execution fails; null: nowhere.
  std::shared_ptr<hal::Device> fallback;
  // Where the devices cache what they make of the parts; null: nowhere.
  std::shared_ptr<const CacheRequest> cache;
  PreparePart preparePart = prepareCached;
};

// Divides the model among the devices and prepares the parts. The model passed graph::validate().
// Errors: kUnsupported for an operation that no device takes, kOpFailed for a division at a tensor
// of unknown size, and whatever the drivers report. With a fallback, the errors are those that
// another device does not mend (kBadData, kUnexpectedNull, missed deadlines, kOutOfMemory of CPUs),
// and those of a model that the fallback does not take either.
Result<PartitionedModel> preparePartitioned(
    std::shared_ptr<const graph::Model> model,
    const std::vector<std::shared_ptr<hal::Device>>& devices, const PartitioningOptions& options);

// "hearth-cpu: operations 0, 1; nnapi-reference: operation 2" for people.
std::string describeParts(const PartitionedModel& plan);

}  // namespace hearth::runtime
