// SPDX-License-Identifier: Apache-2.0
// Writes what the driver interface has into messages.
#pragma once

#include <capnp/message.h>

#include <cstdint>
#include <span>
#include <vector>

#include "base/deadline.h"
#include "base/result.h"
#include "driver.capnp.h"
#include "graph/model.h"
#include "hal/cache_explainer.h"
#include "hal/device.h"
#include "memory/pool.h"

namespace hearth::ipc {

// The descriptors that go with a message. Those of pools stay open as long as this exists.
class Attachments {
 public:
  // Returns the descriptor's index. The same descriptor has the same index.
  uint32_t add(int fd);
  uint32_t add(memory::PoolRef pool);

  std::span<const int> descriptors() const { return descriptors_; }

 private:
  std::vector<int> descriptors_;
  std::vector<memory::PoolRef> pools_;
};

// A deadline as the schema has it.
int64_t encodeDeadline(const base::Deadline& deadline);

void writeError(const Error& error, schema::Error::Builder to);

// A pool with a descriptor of its own.
void writeMemory(const memory::PoolRef& pool, schema::Memory::Builder to, Attachments* attachments);

// Pools that have no descriptor are copied into shared memory. Errors: kOpFailed for a pool that is
// not mapped; kOutOfMemory, kIo.
Status writeModel(const graph::Model& model, schema::Model::Builder to, Attachments* attachments);

void writeOptions(const hal::PrepareOptions& options, schema::Preparation::Builder to);
void writeCache(const hal::Cache& cache, schema::CacheFiles::Builder to, Attachments* attachments);

void writeDevice(const hal::Device& device, schema::Device::Builder to);
void writeSupport(const std::vector<hal::OperationSupport>& support, schema::Reply::Builder to);
void writeReport(const hal::StartReport& report, schema::StartReport::Builder to);
void writeVerdict(const hal::CacheVerdict& verdict, schema::CacheVerdict::Builder to);
void writeResult(const hal::ExecutionResult& result, schema::ExecutionResult::Builder to);

// For the fields `dimensions` of several messages.
template <typename Builder>
void writeDimensions(const graph::Dimensions& dimensions, Builder to) {
  if (dimensions.empty()) return;
  auto list = to.initDimensions(static_cast<uint32_t>(dimensions.size()));
  for (uint32_t i = 0; i < dimensions.size(); ++i) list.set(i, dimensions[i]);
}

}  // namespace hearth::ipc
