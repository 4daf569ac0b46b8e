// SPDX-License-Identifier: Apache-2.0
#include "hal/interpreted_model.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>
#include <vector>

#include "hal/request_check.h"
#include "ops/interpreter.h"

namespace hearth::hal {
namespace {

class InterpretedExecution final : public Execution {
 public:
  InterpretedExecution(std::shared_ptr<const graph::Model> model,
                       std::shared_ptr<const ops::Interpreter> interpreter,
                       std::shared_ptr<LosableMemory> memory, BoundRequest request)
      : model_(std::move(model)),
        interpreter_(std::move(interpreter)),
        memory_(std::move(memory)),
        request_(std::move(request)) {}

  ExecutionResult compute(const base::Deadline& deadline) override {
    const auto start = std::chrono::steady_clock::now();
    ops::RunOptions options;
    options.deadline = deadline;
    options.loopTimeoutNanoseconds = request_.loopTimeout;
    std::vector<std::vector<uint64_t>> copies;
    const std::vector<ops::RunArgument> inputs = readableInputs(&copies);
    ops::RunResult run = runWhole(inputs, options);
    ExecutionResult result;
    result.status = std::move(run.status);
    for (const std::vector<uint64_t>& copy : copies)
      result.copiedBytes += copy.size() * sizeof(uint64_t);
    // The run may have failed because of the loss, so the loss is the error.
    if (Status whole = checkPoolsWhole(*model_); memory_ == nullptr && !whole)
      result.status = std::move(whole);
    // Those of the client, and mappings that only this request has.
    if (Status whole = checkMemoriesWhole(request_.pools); !whole) result.status = std::move(whole);
    for (ops::RunOutputShape& shape : run.outputShapes)
      result.outputShapes.push_back({std::move(shape.dimensions), shape.isSufficient});
    if (result.status) {
      const auto elapsed = std::chrono::steady_clock::now() - start;
      result.timing.onDevice = result.timing.inDriver = static_cast<uint64_t>(
          std::chrono::duration_cast<std::chrono::nanoseconds>(elapsed).count());
    }
    return result;
  }

 private:
  // Runs until a run has read no lost bytes. The inputs are unchanged, so it can be repeated.
  ops::RunResult runWhole(const std::vector<ops::RunArgument>& inputs,
                          const ops::RunOptions& options) const {
    if (memory_ == nullptr) return interpreter_->run(inputs, request_.outputs, options);
    while (true) {
      const uint64_t before = memory_->replacements();
      ops::RunResult run = interpreter_->run(inputs, request_.outputs, options);
      if (Status replaced = memory_->replaceLost(); !replaced)
        return {.status = std::move(replaced)};
      if (memory_->replacements() == before) return run;
    }
  }

  // The inputs. One that shares memory with an output is copied, since operations write their
  // results while others have yet to read.
  std::vector<ops::RunArgument> readableInputs(std::vector<std::vector<uint64_t>>* copies) const {
    std::vector<ops::RunArgument> inputs = request_.inputs;
    for (ops::RunArgument& input : inputs) {
      const auto begin = reinterpret_cast<uintptr_t>(input.data);
      const bool isShared = std::ranges::any_of(request_.outputs, [&](const auto& output) {
        const auto other = reinterpret_cast<uintptr_t>(output.data);
        return input.length != 0 && output.length != 0 && begin < other + output.length &&
               other < begin + input.length;
      });
      if (!isShared) continue;
      copies->emplace_back((input.length + sizeof(uint64_t) - 1) / sizeof(uint64_t));
      std::memcpy(copies->back().data(), input.data, input.length);
      input.data = copies->back().data();
    }
    return inputs;
  }

  std::shared_ptr<const graph::Model> model_;
  std::shared_ptr<const ops::Interpreter> interpreter_;
  std::shared_ptr<LosableMemory> memory_;
  BoundRequest request_;
};

class PlainInterpretedModel final : public InterpretedModel {
 public:
  PlainInterpretedModel(std::shared_ptr<const graph::Model> model,
                        std::shared_ptr<const ops::Interpreter> interpreter, std::string reason,
                        std::shared_ptr<LosableMemory> memory)
      : model_(std::move(model)),
        interpreter_(std::move(interpreter)),
        memory_(std::move(memory)),
        reason_(std::move(reason)) {}

  Result<std::unique_ptr<Execution>> createExecution(Request request) override {
    HEARTH_ASSIGN(BoundRequest bound, checkRequest(model_->main(), request));
    return std::make_unique<InterpretedExecution>(model_, interpreter_, memory_, std::move(bound));
  }

  StartReport startReport() const override {
    StartReport report;
    report.state = StartReport::State::kUncached;
    report.reason = reason_;
    report.activationBytes = interpreter_->activationBytes();
    report.cacheProblem = cacheProblem_;
    return report;
  }

  void setCacheProblem(std::string problem) override { cacheProblem_ = std::move(problem); }

 private:
  std::shared_ptr<const graph::Model> model_;
  std::shared_ptr<const ops::Interpreter> interpreter_;
  std::shared_ptr<LosableMemory> memory_;
  const std::string reason_;
  std::string cacheProblem_;
};

}  // namespace

Result<std::shared_ptr<InterpretedModel>> prepareInterpreted(
    std::shared_ptr<const graph::Model> model, const PrepareOptions& options,
    std::shared_ptr<threads::ThreadPool> pool, std::string reason,
    std::shared_ptr<LosableMemory> memory, ops::KernelSet kernels) {
  ops::InterpreterOptions interpreterOptions;
  interpreterOptions.kernels = kernels;
  interpreterOptions.maxActivationBytes = options.maxActivationBytes;
  interpreterOptions.threadPool = std::move(pool);
  const uint64_t before = memory != nullptr ? memory->replacements() : 0;
  HEARTH_ASSIGN(std::shared_ptr<const ops::Interpreter> interpreter,
                ops::Interpreter::create(model, std::move(interpreterOptions)));
  if (memory == nullptr) HEARTH_TRY(checkPoolsWhole(*model));
  if (memory != nullptr) {
    // Preparing may have read constants, too.
    HEARTH_TRY(memory->replaceLost());
    if (memory->replacements() != before)
      return fail(ErrorCode::kOpFailed, "Constants were lost while the model was prepared.");
  }
  return std::make_shared<PlainInterpretedModel>(std::move(model), std::move(interpreter),
                                                 std::move(reason), std::move(memory));
}

}  // namespace hearth::hal
