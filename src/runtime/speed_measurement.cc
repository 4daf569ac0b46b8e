// SPDX-License-Identifier: Apache-2.0
#include "runtime/speed_measurement.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "graph/validated_model.h"

namespace hearth::runtime {
namespace {

using Clock = std::chrono::steady_clock;
using graph::OperandType;
using graph::OperationType;

// Executions of each model: at least and at most so many after the first, which is not measured,
// and no more once they have taken so long. The fastest one counts, since other work disturbs the
// others. Where the first one takes long already, it counts: such a device is slow, first or not.
constexpr int kLeastRuns = 2;
constexpr int kMostRuns = 20;
constexpr std::chrono::milliseconds kRunTime{8};
constexpr std::chrono::milliseconds kLongRun{20};

// A float32 made of these bytes is 0.0115, a float16 is 1.06: layers of it neither overflow nor
// reach denormals.
constexpr uint8_t kByte = 0x3c;

struct Image {
  uint32_t extent = 0;  // width and height
  uint32_t channels = 0;

  uint64_t elements() const { return uint64_t{extent} * extent * channels; }
};

constexpr Image kTiny = {8, 16};
constexpr Image kSmall = {28, 64};  // 200 KB of float32
// Of a layer with many products. The large one is for devices that compute the small one in less
// than a few times what an execution takes anyway.
constexpr Image kFewProducts = {14, 64};
constexpr Image kManyProducts = {56, 64};
constexpr double kFewExecutions = 8;
// 0 means that nothing was measured.
constexpr double kLeastExecution = 1e-9;
constexpr double kLeastProduct = 1e-18;
constexpr uint32_t kWindow = 3;
constexpr uint32_t kChain = 8;  // layers

// One convolution after the other, with windows of 3 x 3, over images that keep their size.
class LayerModel {
 public:
  LayerModel(OperationType type, uint32_t layers, const Image& image, NumberKind kind)
      : image_(image), type_(typeOf(kind)), isQuantized_(kind == NumberKind::kQuantized) {
    model_->subgraphs.emplace_back();
    // One set of constants for all layers.
    const bool isDepthwise = type == OperationType::kDepthwiseConv2d;
    const uint32_t filter = constant(
        type_, {isDepthwise ? 1 : image.channels, kWindow, kWindow, image.channels}, kByte, kScale);
    const uint32_t bias = constant(isQuantized_ ? OperandType::kTensorInt32 : type_,
                                   {image.channels}, 0, kScale * kScale);
    const uint32_t same = scalar(1);
    const uint32_t one = scalar(1);
    const uint32_t none = scalar(0);
    uint32_t values = tensor(graph::Lifetime::kSubgraphInput);
    main().inputs = {values};
    for (uint32_t i = 0; i < layers; ++i) {
      const bool isLast = i + 1 == layers;
      const uint32_t results =
          tensor(isLast ? graph::Lifetime::kSubgraphOutput : graph::Lifetime::kTemporary);
      std::vector<uint32_t> inputs = {values, filter, bias, same, one, one};
      if (isDepthwise) inputs.push_back(one);
      inputs.push_back(none);
      main().operations.push_back({type, std::move(inputs), {results}, ""});
      values = results;
    }
    main().outputs = {values};
  }

  const std::shared_ptr<graph::Model>& model() const { return model_; }
  uint64_t argumentBytes() const { return image_.elements() * graph::elementSize(type_); }

 private:
  static constexpr float kScale = 0.03125f;

  graph::Subgraph& main() { return model_->main(); }
  static OperandType typeOf(NumberKind kind) {
    switch (kind) {
      case NumberKind::kFloat32:
        break;
      case NumberKind::kFloat16:
        return OperandType::kTensorFloat16;
      case NumberKind::kQuantized:
        return OperandType::kTensorQuant8Asymm;
    }
    return OperandType::kTensorFloat32;
  }
  uint32_t add(graph::Operand operand) {
    main().operands.push_back(std::move(operand));
    return static_cast<uint32_t>(main().operands.size() - 1);
  }
  uint32_t tensor(graph::Lifetime lifetime) {
    graph::Operand operand;
    operand.type = type_;
    operand.dimensions = {1, image_.extent, image_.extent, image_.channels};
    operand.scale = isQuantized_ ? kScale : 0;
    operand.lifetime = lifetime;
    return add(std::move(operand));
  }
  uint32_t constant(OperandType type, graph::Dimensions dimensions, uint8_t byte, float scale) {
    graph::Operand operand;
    operand.type = type;
    operand.dimensions = std::move(dimensions);
    operand.scale = isQuantized_ ? scale : 0;
    operand.lifetime = graph::Lifetime::kConstantCopy;
    uint64_t bytes = graph::elementSize(type);
    for (const uint32_t dimension : operand.dimensions) bytes *= dimension;
    return constant(std::move(operand), std::vector<uint8_t>(bytes, byte));
  }
  uint32_t scalar(int32_t value) {
    graph::Operand operand;
    operand.type = OperandType::kInt32;
    operand.lifetime = graph::Lifetime::kConstantCopy;
    std::vector<uint8_t> bytes(sizeof value);
    std::memcpy(bytes.data(), &value, sizeof value);
    return constant(std::move(operand), bytes);
  }
  uint32_t constant(graph::Operand operand, const std::vector<uint8_t>& bytes) {
    constexpr size_t kAlignment = 64;
    std::vector<uint8_t>& all = model_->constantBytes;
    all.resize((all.size() + kAlignment - 1) / kAlignment * kAlignment);
    operand.location = {0, all.size(), bytes.size()};
    all.insert(all.end(), bytes.begin(), bytes.end());
    return add(std::move(operand));
  }

  const Image image_;
  const OperandType type_;
  const bool isQuantized_;
  std::shared_ptr<graph::Model> model_ = std::make_shared<graph::Model>();
};

hal::Argument argumentOf(std::vector<uint8_t>& bytes) {
  hal::Argument argument;
  argument.kind = hal::Argument::Kind::kPointer;
  argument.pointer = bytes.data();
  argument.length = bytes.size();
  return argument;
}

// Seconds of the fastest execution.
Result<double> timeOf(hal::Device& device, unsigned threads, const LayerModel& layers) {
  HEARTH_TRY(graph::validate(*layers.model()));
  hal::PrepareOptions options;
  options.threads = threads;
  // Such a model is worth nothing to a later start.
  options.driverOptions["store_mode"] = "off";
  HEARTH_ASSIGN(const auto prepared, device.prepareModel(layers.model(), options, {}));
  std::vector<uint8_t> input(layers.argumentBytes(), kByte), output(layers.argumentBytes());
  hal::Request request;
  request.inputs.push_back(argumentOf(input));
  request.outputs.push_back(argumentOf(output));
  HEARTH_ASSIGN(const auto execution, prepared->createExecution(std::move(request)));
  const auto run = [&]() -> Result<Clock::duration> {
    const Clock::time_point begin = Clock::now();
    HEARTH_TRY(execution->compute({}).status);
    return Clock::now() - begin;
  };
  HEARTH_ASSIGN(Clock::duration fastest, run());
  if (fastest < kLongRun) {
    fastest = Clock::duration::max();
    Clock::duration sum{};
    for (int runs = 0; runs < kMostRuns && (runs < kLeastRuns || sum < kRunTime); ++runs) {
      HEARTH_ASSIGN(const Clock::duration time, run());
      fastest = std::min(fastest, time);
      sum += time;
    }
  }
  return std::chrono::duration<double>(fastest).count();
}

// All but products, by chains of depthwise convolutions, whose time goes to memory.
Status measureMoves(hal::Device& device, unsigned threads, DeviceSpeed* speed) {
  const auto time = [&](uint32_t layers, const Image& image) {
    return timeOf(device, threads,
                  LayerModel(OperationType::kDepthwiseConv2d, layers, image, NumberKind::kFloat32));
  };
  HEARTH_ASSIGN(const double tiny, time(1, kTiny));
  HEARTH_ASSIGN(const double tinyChain, time(kChain, kTiny));
  HEARTH_ASSIGN(const double small, time(1, kSmall));
  HEARTH_ASSIGN(const double smallChain, time(kChain, kSmall));
  const auto argument = static_cast<double>(kSmall.elements() * sizeof(float));
  const double operation = std::max(0.0, (tinyChain - tiny) / (kChain - 1));
  const double layer = std::max(operation, (smallChain - small) / (kChain - 1));
  speed->operation = operation;
  speed->movedByte = (layer - operation) / (2 * argument);
  speed->execution = std::max(kLeastExecution, tiny - operation);
  speed->argumentByte = std::max(0.0, small - layer - speed->execution) / (2 * argument);
  return {};
}

Status measureProducts(hal::Device& device, unsigned threads, NumberKind kind, DeviceSpeed* speed) {
  // What is left of a layer's time, for each product.
  const auto measure = [&](const Image& image, double* layer) -> Result<double> {
    const LayerModel layers(OperationType::kConv2d, 1, image, kind);
    HEARTH_ASSIGN(const double time, timeOf(device, threads, layers));
    const double arguments = 2 * static_cast<double>(layers.argumentBytes()) * speed->argumentByte;
    *layer = std::max(0.0, time - speed->execution - speed->operation - arguments);
    const auto products =
        static_cast<double>(image.elements() * image.channels * kWindow * kWindow);
    return std::max(*layer / products, kLeastProduct);
  };
  double layer = 0;
  HEARTH_ASSIGN(double product, measure(kFewProducts, &layer));
  if (layer < kFewExecutions * (speed->execution + speed->operation)) {
    HEARTH_ASSIGN(product, measure(kManyProducts, &layer));
  }
  speed->product[static_cast<size_t>(kind)] = product;
  return {};
}

}  // namespace

Status measureSpeed(hal::Device& device, std::span<const NumberKind> kinds, unsigned threads,
                    DeviceSpeed* speed) {
  if (speed->execution == 0) HEARTH_TRY(measureMoves(device, threads, speed));
  for (const NumberKind kind : kinds)
    if (speed->productOf(kind) == 0) HEARTH_TRY(measureProducts(device, threads, kind, speed));
  return {};
}

}  // namespace hearth::runtime
