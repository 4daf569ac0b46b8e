// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/deadline.h"
#include "base/result.h"
#include "graph/model.h"
#include "hal/device.h"
#include "ipc/client_memory.h"
#include "memory/mapping.h"
#include "memory/pool.h"

namespace hearth::ipc {

// An execution in a host. Where clients do not trust each other, it computes on copies of the
// arguments, since drivers rely on memory that does not change while they read it.
class ServedExecution {
 public:
  // `outputs` are those of the model, empty when they are not known.
  explicit ServedExecution(std::vector<graph::Operand> outputs) : outputs_(std::move(outputs)) {}

  // Replaces the arguments in client memory by private ones. Before bind().
  Status copyArguments(hal::Request* request, ClientMemories* memories);

  // Binds the request, whose memories this keeps. `others` live as long, too.
  Status bind(hal::PreparedModel& model, hal::Request request,
              std::vector<memory::PoolRef> memories);
  void keep(std::shared_ptr<void> other) { kept_.push_back(std::move(other)); }

  // kBadState while another thread computes. kOpFailed when the client has taken memory away.
  hal::ExecutionResult compute(const base::Deadline& deadline);

 private:
  struct Copied {
    size_t index;  // among the inputs or outputs
    uint8_t* own;
    uint8_t* client;
    uint64_t length;
  };

  void copyIn() const;
  void copyOut(const hal::ExecutionResult& result) const;
  Status checkMemories() const;

  const std::vector<graph::Operand> outputs_;
  std::mutex turn_;
  memory::Mapping own_;
  std::vector<Copied> copiedInputs_;
  std::vector<Copied> copiedOutputs_;
  std::vector<memory::PoolRef> memories_;
  std::vector<std::shared_ptr<void>> kept_;
  std::unique_ptr<hal::Execution> execution_;
};

}  // namespace hearth::ipc
