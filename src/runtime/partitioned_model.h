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

// A prepared part that uses an argument of the model.
struct ArgumentUse {
  std::shared_ptr<hal::Device> device;  // null: control flow between devices
  std::shared_ptr<hal::PreparedModel> prepared;
  uint32_t index = 0;  // among the inputs or outputs of `prepared`
};

// How a model runs on its devices.
struct PartitionedModel {
  std::shared_ptr<hal::PreparedModel> prepared;  // the whole
  // Device names by step; "control flow" for an IF or WHILE with subgraphs partitioned in turn.
  std::vector<std::string> devices;
  std::vector<std::vector<uint32_t>> operations;  // of each step, in run order
  std::string reason;                             // Partition::reason
  // Whether each step's cache files were used (CachedPreparation::cache).
  std::vector<std::string> caches;
  std::vector<std::vector<ArgumentUse>> inputUses;  // by input of the model
  std::vector<std::vector<ArgumentUse>> outputUses;
};

// Prepares one part; prepareCached() by default.
using PreparePart = std::function<Result<CachedPreparation>(
    hal::Device& device, const ModelSource& model, const hal::PrepareOptions& options,
    const CacheRequest* request, CacheKeyHash key)>;

struct PartitioningOptions {
  hal::PrepareOptions prepare;
  // The devices that run the whole model when its preparation or an execution fails, in the order
  // in which they are tried; empty: none.
  std::vector<std::shared_ptr<hal::Device>> fallbacks;
  // Where the devices keep their cache files; null: nowhere.
  std::shared_ptr<const CacheRequest> cache;
  PreparePart preparePart = prepareCached;
  // By which devices are chosen; null: by the figures of the drivers.
  DeviceSpeeds* speeds = nullptr;
};

// Partitions the model among the devices and prepares the parts. The model has passed
// graph::validate(). Errors: kUnsupported for an operation that no device takes, and whatever the
// drivers report. With fallbacks it
// fails only with errors that another device cannot mend (kBadData, kUnexpectedNull, missed
// deadlines, kOutOfMemory of CPUs), or when no fallback can prepare the model either.
Result<PartitionedModel> preparePartitioned(
    std::shared_ptr<const graph::Model> model,
    const std::vector<std::shared_ptr<hal::Device>>& devices, const PartitioningOptions& options);

// A text for people, like "hearth-cpu: operations 0 1; nnapi-reference: operation 2".
std::string describeParts(const PartitionedModel& plan);

}  // namespace hearth::runtime
