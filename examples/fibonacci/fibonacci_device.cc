// SPDX-License-Identifier: Apache-2.0
#include "fibonacci_device.h"

#include <cmath>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/format.h"
#include "extension.h"
#include "graph/model.h"
#include "hal/request_check.h"

namespace example {
namespace {

namespace graph = hearth::graph;
namespace hal = hearth::hal;
using hearth::ErrorCode;
using hearth::fail;
using hearth::Result;
using hearth::Status;

constexpr int64_t kMostNumbers = 92;  // the next one has more than 64 bits

// A number from `lowest` on that int64_t holds, also when it is rounded.
bool fitsInt64(double value) {
  return value >= -0x1p63 && value < 0x1p63;
}

// One operation of a model, checked.
struct Fibonacci {
  const graph::Operand* count = nullptr;
  const graph::Operand* output = nullptr;
  std::optional<ExampleQuant64> quantization;  // of an output that is not float
  std::optional<size_t> countInput;            // position among the model's inputs; else a constant
  std::optional<size_t> outputPosition;  // among the model's outputs; nobody reads another one
};

std::optional<size_t> positionOf(uint32_t operand, const std::vector<uint32_t>& list) {
  for (size_t i = 0; i < list.size(); ++i)
    if (list[i] == operand) return i;
  return std::nullopt;
}

// Codes belong to the extension only together with the prefix that this model has for it.
bool isOurs(const graph::Model& model, int32_t code, int32_t number) {
  const graph::Extension* const extension = model.findExtension(EXAMPLE_FIBONACCI_EXTENSION);
  return extension != nullptr && code == ((extension->prefix << 16) | number);
}

Result<Fibonacci> parse(const graph::Model& model, const graph::Operation& operation) {
  const graph::Subgraph& main = model.main();
  if (!isOurs(model, static_cast<int32_t>(operation.type), EXAMPLE_FIBONACCI))
    return fail(ErrorCode::kUnsupported, "The device fibonacci does not compute {}.",
                graph::nameOf(operation.type));
  if (operation.inputs.size() != 1 || operation.outputs.size() != 1)
    return fail(ErrorCode::kBadData, "FIBONACCI has {} inputs and {} outputs, not one of each.",
                operation.inputs.size(), operation.outputs.size());
  Fibonacci parsed;
  parsed.count = &main.operands[operation.inputs[0]];
  parsed.output = &main.operands[operation.outputs[0]];
  parsed.countInput = positionOf(operation.inputs[0], main.inputs);
  parsed.outputPosition = positionOf(operation.outputs[0], main.outputs);
  if (!isOurs(model, static_cast<int32_t>(parsed.count->type), EXAMPLE_INT64) ||
      graph::elementSize(*parsed.count) != sizeof(int64_t) || !parsed.count->dimensions.empty() ||
      !(parsed.countInput || parsed.count->isConstant()))
    return fail(ErrorCode::kBadData, "FIBONACCI counts with {}, not with an INT64.",
                graph::describe(*parsed.count));
  if (parsed.output->dimensions.size() > 1)
    return fail(ErrorCode::kBadData, "The output of FIBONACCI has rank {}.",
                parsed.output->dimensions.size());
  if (parsed.output->type == graph::OperandType::kTensorFloat32) return parsed;
  ExampleQuant64 quantization;
  if (!isOurs(model, static_cast<int32_t>(parsed.output->type), EXAMPLE_TENSOR_QUANT64_ASYMM) ||
      graph::elementSize(*parsed.output) != sizeof(int64_t) ||
      parsed.output->driverData.size() != sizeof quantization)
    return fail(ErrorCode::kBadData, "The output of FIBONACCI is {} with {} bytes of data.",
                graph::describe(*parsed.output), parsed.output->driverData.size());
  std::memcpy(&quantization, parsed.output->driverData.data(), sizeof quantization);
  if (!std::isfinite(quantization.scale) || quantization.scale <= 0)
    return fail(ErrorCode::kBadData, "The scale {} of FIBONACCI's output is not positive.",
                quantization.scale);
  parsed.quantization = quantization;
  return parsed;
}

class FibonacciExecution final : public hal::Execution {
 public:
  FibonacciExecution(std::shared_ptr<const graph::Model> model, std::vector<Fibonacci> operations,
                     hal::BoundRequest request)
      : model_(std::move(model)),
        operations_(std::move(operations)),
        request_(std::move(request)) {}

  hal::ExecutionResult compute(const hearth::base::Deadline& deadline) override {
    hal::ExecutionResult result;
    std::vector<hal::OutputShape>& shapes = result.outputShapes.change();
    shapes.resize(request_.outputs.size());
    if (deadline.hasPassed()) {
      result.status = fail(ErrorCode::kMissedDeadlineTransient, "The deadline has passed.");
      return result;
    }
    for (const Fibonacci& operation : operations_) {
      Status status = run(operation, &shapes);
      if (status) continue;
      result.status = std::move(status);
      // One output that is too small does not keep the others from telling their shapes.
      if (result.status.error().code() != ErrorCode::kOutputInsufficientSize) return result;
    }
    if (Status whole = hal::checkPoolsWhole(*model_); !whole) result.status = std::move(whole);
    return result;
  }

 private:
  Status run(const Fibonacci& operation, std::vector<hal::OutputShape>* shapes) const {
    // Read once: the client may write to its memory at any time.
    int64_t count = 0;
    std::memcpy(&count,
                operation.countInput ? request_.inputs[*operation.countInput].data
                                     : model_->constantData(*operation.count),
                sizeof count);
    if (count < 1 || count > kMostNumbers)
      return fail(ErrorCode::kBadData, "FIBONACCI is asked for {} numbers, not for 1 to {}.", count,
                  kMostNumbers);
    if (!operation.outputPosition) return {};
    const hearth::ops::RunArgument& output = request_.outputs[*operation.outputPosition];
    const auto length = static_cast<uint32_t>(count);
    for (const graph::Dimensions* dimensions : {&operation.output->dimensions, &output.dimensions})
      if (!dimensions->empty() && dimensions->front() != 0 && dimensions->front() != length)
        return fail(ErrorCode::kBadData, "FIBONACCI gives {} numbers, the output has {}.", count,
                    dimensions->front());
    const size_t element = operation.quantization ? sizeof(int64_t) : sizeof(float);
    hal::OutputShape& shape = (*shapes)[*operation.outputPosition];
    shape.dimensions = {length};
    if (!output.isPresent) return {};
    shape.isSufficient = output.length >= length * element;
    if (!shape.isSufficient)
      return fail(ErrorCode::kOutputInsufficientSize, "FIBONACCI writes {} bytes, there are {}.",
                  length * element, output.length);
    return write(operation, length, static_cast<uint8_t*>(output.data));
  }

  static Status write(const Fibonacci& operation, uint32_t length, uint8_t* to) {
    int64_t number = 1;
    int64_t next = 1;
    for (uint32_t i = 0; i < length; ++i) {
      if (operation.quantization) {
        const ExampleQuant64& quantization = *operation.quantization;
        const double steps = std::nearbyint(static_cast<double>(number) / quantization.scale);
        int64_t element = 0;
        if (!fitsInt64(steps) ||
            __builtin_add_overflow(static_cast<int64_t>(steps), quantization.zeroPoint, &element))
          return fail(ErrorCode::kBadData, "The Fibonacci number {} needs more than 64 bits.",
                      number);
        std::memcpy(to + i * sizeof element, &element, sizeof element);
      } else {
        const auto element = static_cast<float>(number);
        std::memcpy(to + i * sizeof element, &element, sizeof element);
      }
      // The number behind the last one is not needed and may be too large.
      const int64_t sum =
          static_cast<int64_t>(static_cast<uint64_t>(number) + static_cast<uint64_t>(next));
      number = std::exchange(next, sum);
    }
    return {};
  }

  const std::shared_ptr<const graph::Model> model_;
  const std::vector<Fibonacci> operations_;
  const hal::BoundRequest request_;
};

class FibonacciModel final : public hal::PreparedModel {
 public:
  FibonacciModel(std::shared_ptr<const graph::Model> model, std::vector<Fibonacci> operations)
      : model_(std::move(model)), operations_(std::move(operations)) {}

  Result<std::unique_ptr<hal::Execution>> createExecution(hal::Request request) override {
    HEARTH_ASSIGN(hal::BoundRequest bound, hal::checkRequest(model_->main(), request));
    for (const Fibonacci& operation : operations_)
      if (operation.countInput && !bound.inputs[*operation.countInput].isPresent)
        return fail(ErrorCode::kBadData, "FIBONACCI's input {} is omitted.", *operation.countInput);
    return std::make_unique<FibonacciExecution>(model_, operations_, std::move(bound));
  }

  hal::StartReport startReport() const override { return {}; }

 private:
  const std::shared_ptr<const graph::Model> model_;
  const std::vector<Fibonacci> operations_;
};

class FibonacciDevice final : public hal::Device {
 public:
  std::string name() const override { return "fibonacci"; }
  std::string version() const override { return "1"; }
  hal::DeviceType type() const override { return hal::DeviceType::kOther; }
  int64_t featureLevel() const override { return 1000007; }
  hal::Capabilities capabilities() const override { return {}; }

  std::vector<std::string> supportedExtensions() const override {
    return {EXAMPLE_FIBONACCI_EXTENSION};
  }
  std::vector<hal::ExtensionOperandType> extensionOperandTypes() const override {
    return {{EXAMPLE_FIBONACCI_EXTENSION, EXAMPLE_INT64, sizeof(int64_t), false},
            {EXAMPLE_FIBONACCI_EXTENSION, EXAMPLE_TENSOR_QUANT64_ASYMM, sizeof(int64_t), true}};
  }

  Result<std::vector<hal::OperationSupport>> supportedOperations(
      const graph::Model& model) override {
    HEARTH_TRY(hal::checkPoolsMapped(model));
    HEARTH_TRY(graph::validate(model));
    std::vector<hal::OperationSupport> supports;
    for (const graph::Operation& operation : model.main().operations) {
      const Result<Fibonacci> parsed = parse(model, operation);
      supports.push_back(parsed ? hal::OperationSupport{true, "own", ""}
                                : hal::OperationSupport{false, "", parsed.error().toString()});
    }
    return supports;
  }

  Result<std::shared_ptr<hal::PreparedModel>> prepareModel(
      std::shared_ptr<const graph::Model> model, const hal::PrepareOptions& options,
      hal::Cache /*cache*/) override {
    if (options.deadline.hasPassed())
      return fail(ErrorCode::kMissedDeadlinePersistent,
                  "The deadline has passed before the preparation.");
    HEARTH_TRY(hal::checkPoolsMapped(*model));
    HEARTH_TRY(graph::validate(*model));
    std::vector<Fibonacci> operations;
    for (const graph::Operation& operation : model->main().operations) {
      HEARTH_ASSIGN(Fibonacci parsed, parse(*model, operation));
      operations.push_back(parsed);
    }
    return std::make_shared<FibonacciModel>(std::move(model), std::move(operations));
  }
};

}  // namespace

std::unique_ptr<hal::Device> createFibonacciDevice() {
  return std::make_unique<FibonacciDevice>();
}

}  // namespace example
