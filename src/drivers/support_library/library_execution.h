// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "drivers/support_library/library_event.h"
#include "drivers/support_library/library_prepared_model.h"
#include "hal/device.h"
#include "hal/fenced_thread.h"
#include "hal/request_check.h"

namespace hearth::drivers::support_library {

// An execution of a support library, which it repeats with the same arguments. Arguments in pools
// are given to it as descriptors, others by their address. An output that shares memory with an
// input is computed beside it and copied, as NNAPI promises nothing of such arguments.
//
// The library itself waits for fences that are sync files of the kernel. NNAPI has no function that
// gives up a computation, so it never gets other ones, which may never be signalled: a thread waits
// for those.
class LibraryExecution final : public hal::Execution {
 public:
  // `bound` is what hal::checkRequest() makes of the request, in which what lies in `memories` has
  // no value. Errors are those of the library.
  static Result<std::unique_ptr<LibraryExecution>> make(
      std::shared_ptr<const LibraryPreparedModel> prepared, const hal::Request& request,
      hal::BoundRequest bound, DeviceArguments memories);

  ~LibraryExecution() override;

  hal::ExecutionResult compute(const base::Deadline& deadline) override;
  Result<base::Descriptor> startFenced(std::vector<base::Descriptor> fences,
                                       const base::Deadline& deadline) override;
  hal::ExecutionResult finishFenced() override;

 private:
  struct Copy {
    std::vector<uint64_t> memory;
    const ops::RunArgument* output = nullptr;
  };

  LibraryExecution(std::shared_ptr<const LibraryPreparedModel> prepared, hal::BoundRequest bound,
                   DeviceArguments memories, Handle<ANeuralNetworksExecution> execution)
      : prepared_(std::move(prepared)),
        bound_(std::move(bound)),
        deviceArguments_(std::move(memories)),
        execution_(std::move(execution)) {}

  const NnApiSLDriverImplFL5& functions() const { return prepared_->model().library().functions(); }
  const graph::Subgraph& main() const { return prepared_->model().source().main(); }

  Status setArguments(const hal::Request& request);
  Status setArgument(bool isInput, size_t index, const hal::Argument& argument);
  Result<const PoolMemory*> memoryOf(const memory::PoolRef& pool);
  // Whether a computation may miss an input.
  bool omitsAnInput() const;
  bool overlapsAnInput(const ops::RunArgument& output) const;
  Status setTimeout(const base::Deadline& deadline);
  // The result of a computation that ended with this status.
  hal::ExecutionResult ended(Status status);
  Result<hal::OutputShape> outputShape(size_t index) const;
  // The shapes of all outputs after a computation that ended with this status.
  Result<hal::OutputShapes> outputShapes(const Status& computed);
  void copyOutputs(const hal::OutputShapes& shapes, uint64_t* copiedBytes) const;
  uint64_t duration(int32_t code) const;

  const std::shared_ptr<const LibraryPreparedModel> prepared_;
  const hal::BoundRequest bound_;
  const DeviceArguments deviceArguments_;
  std::map<const memory::Pool*, PoolMemory> memories_;
  std::vector<Copy> copies_;
  // Before the arguments, which it refers to.
  const Handle<ANeuralNetworksExecution> execution_;
  bool isMeasured_ = false;
  bool hasTimeout_ = false;
  hal::OutputShapes knownShapes_;      // where the model and the request determine all of them
  std::optional<LibraryEvent> event_;  // of what startFenced() has given to the library
  bool isOnThread_ = false;            // whether thread_ has what startFenced() has started
  hal::FencedThread thread_;
};

}  // namespace hearth::drivers::support_library
