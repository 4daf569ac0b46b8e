// SPDX-License-Identifier: Apache-2.0
#include "drivers/vulkan/sample_models.h"

#include <cstring>
#include <random>
#include <string>
#include <utility>

#include "graph/codes.h"
#include "ops/half.h"

namespace hearth::vulkan {
namespace {

using graph::Dimensions;
using graph::OperandType;
using graph::OperationType;

// The type of tensors that a shader's name has behind the dot; for two of them, of data and
// weights, the first.
OperandType dataTypeOf(std::string_view suffix) {
  if (suffix.starts_with("f16") || suffix == "bits16") return OperandType::kTensorFloat16;
  if (suffix.starts_with("u8") || suffix == "bits8") return OperandType::kTensorQuant8Asymm;
  if (suffix.starts_with("i8")) return OperandType::kTensorQuant8AsymmSigned;
  if (suffix == "i32") return OperandType::kTensorInt32;
  return OperandType::kTensorFloat32;
}

// Builds the model, and the inputs as it goes. Quantised tensors have the scale that is given, and
// a zero point that is not 0 but for those of weights.
class SampleBuilder {
 public:
  SampleBuilder() { model_.subgraphs.emplace_back(); }

  uint32_t input(OperandType type, Dimensions dimensions, float scale = 0.125f) {
    graph::Operand operand = tensor(type, std::move(dimensions), scale, kZeroPoint);
    operand.lifetime = graph::Lifetime::kSubgraphInput;
    inputs_.push_back(values(operand));
    main().inputs.push_back(add(std::move(operand)));
    return main().inputs.back();
  }
  uint32_t output(OperandType type, Dimensions dimensions, float scale = 0.125f,
                  int32_t zeroPoint = kZeroPoint) {
    graph::Operand operand = tensor(type, std::move(dimensions), scale, zeroPoint);
    operand.lifetime = graph::Lifetime::kSubgraphOutput;
    main().outputs.push_back(add(std::move(operand)));
    return main().outputs.back();
  }
  uint32_t weights(OperandType type, Dimensions dimensions, float scale) {
    graph::Operand operand = tensor(type, std::move(dimensions), scale, 0);
    return constant(operand, values(operand));
  }
  template <typename T>
  uint32_t list(OperandType type, const std::vector<T>& elements) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(elements.data());
    return constant(tensor(type, {static_cast<uint32_t>(elements.size())}, 0, 0),
                    {bytes, bytes + elements.size() * sizeof(T)});
  }
  template <typename T>
  uint32_t scalar(T value) {
    constexpr OperandType kType = std::is_same_v<T, bool>    ? OperandType::kBool
                                  : std::is_same_v<T, float> ? OperandType::kFloat32
                                                             : OperandType::kInt32;
    std::vector<uint8_t> bytes(sizeof value);
    std::memcpy(bytes.data(), &value, sizeof value);
    return constant(tensor(kType, {}, 0, 0), bytes);
  }
  // A number of the type that scalars beside tensors of this type have.
  uint32_t scalar(OperandType beside, float value) {
    if (beside != OperandType::kTensorFloat16) return scalar(value);
    const auto half = static_cast<ops::Half>(value);
    std::vector<uint8_t> bytes(sizeof half);
    std::memcpy(bytes.data(), &half, sizeof half);
    return constant(tensor(OperandType::kFloat16, {}, 0, 0), bytes);
  }
  void operation(OperationType type, std::vector<uint32_t> inputs, uint32_t output) {
    main().operations.push_back({type, std::move(inputs), {output}, ""});
  }
  SampleModel finish() {
    return {std::make_shared<const graph::Model>(std::move(model_)), std::move(inputs_)};
  }

 private:
  static constexpr int32_t kZeroPoint = 5;

  graph::Subgraph& main() { return model_.main(); }
  uint32_t add(graph::Operand operand) {
    main().operands.push_back(std::move(operand));
    return static_cast<uint32_t>(main().operands.size() - 1);
  }
  static graph::Operand tensor(OperandType type, Dimensions dimensions, float scale,
                               int32_t zeroPoint) {
    graph::Operand operand;
    operand.type = type;
    operand.dimensions = std::move(dimensions);
    if (graph::isQuantized(type)) {
      operand.scale = scale;
      operand.zeroPoint = zeroPoint;
    } else if (type == OperandType::kTensorInt32) {
      operand.scale = 0;
    }
    return operand;
  }
  uint32_t constant(graph::Operand operand, const std::vector<uint8_t>& bytes) {
    constexpr size_t kAlignment = 16;
    std::vector<uint8_t>& all = model_.constantBytes;
    all.resize((all.size() + kAlignment - 1) / kAlignment * kAlignment);
    operand.lifetime = graph::Lifetime::kConstantCopy;
    operand.location = {0, all.size(), bytes.size()};
    all.insert(all.end(), bytes.begin(), bytes.end());
    return add(std::move(operand));
  }
  // Real numbers from -2 to 2, integers from -20 to 20, any bytes.
  std::vector<uint8_t> values(const graph::Operand& operand) {
    const uint64_t count = *graph::elementCount(operand);
    std::vector<uint8_t> bytes(count * graph::elementSize(operand));
    for (uint64_t i = 0; i < count; ++i) {
      const auto random = static_cast<int32_t>(random_() % 4001) - 2000;
      const float real = static_cast<float>(random) / 1000;
      const auto half = static_cast<ops::Half>(real);
      const int32_t integer = random / 100;
      uint8_t* const to = bytes.data() + i * graph::elementSize(operand);
      switch (operand.type) {
        case OperandType::kTensorFloat32:
          std::memcpy(to, &real, sizeof real);
          break;
        case OperandType::kTensorFloat16:
          std::memcpy(to, &half, sizeof half);
          break;
        case OperandType::kTensorInt32:
          std::memcpy(to, &integer, sizeof integer);
          break;
        case OperandType::kTensorBool8:
          *to = random > 0 ? 1 : 0;
          break;
        default:
          *to = static_cast<uint8_t>(random);
      }
    }
    return bytes;
  }

  graph::Model model_;
  std::vector<std::vector<uint8_t>> inputs_;
  std::minstd_rand random_{7};
};

enum class LayerKind : uint8_t { kConvolution, kDepthwise, kTransposed };

// Layers of 5 or 6 channels over images of 7 x 9, with windows of 3 x 3.
std::optional<SampleModel> layerSample(LayerKind kind, std::string_view suffix) {
  const OperandType data = dataTypeOf(suffix);
  const bool isQuantized = graph::isQuantized(data);
  OperandType weights = data;
  if (suffix.ends_with("i8")) weights = OperandType::kTensorQuant8AsymmSigned;
  if (suffix.ends_with("u8")) weights = OperandType::kTensorQuant8Asymm;
  constexpr float kDataScale = 0.125f;
  constexpr float kWeightScale = 0.0625f;
  SampleBuilder builder;
  const uint32_t input = builder.input(data, {1, 7, 9, 5}, kDataScale);
  const bool isDepthwise = kind == LayerKind::kDepthwise;
  const uint32_t channels = isDepthwise ? 5 : 6;
  const uint32_t filter = builder.weights(
      weights, isDepthwise ? Dimensions{1, 3, 3, 5} : Dimensions{6, 3, 3, 5}, kWeightScale);
  const uint32_t bias =
      builder.weights(isQuantized ? OperandType::kTensorInt32 : data, {channels}, 0);
  const uint32_t same = builder.scalar(int32_t{1});
  const uint32_t one = builder.scalar(int32_t{1});
  const uint32_t none = builder.scalar(int32_t{0});
  const uint32_t output =
      builder.output(data, {1, 7, 9, channels}, kDataScale * kWeightScale * 200);
  if (kind == LayerKind::kConvolution)
    builder.operation(OperationType::kConv2d, {input, filter, bias, same, one, one, none}, output);
  else if (isDepthwise)
    builder.operation(OperationType::kDepthwiseConv2d,
                      {input, filter, bias, same, one, one, one, none}, output);
  else
    builder.operation(
        OperationType::kTransposeConv2d,
        {input, filter, bias, builder.list<int32_t>(OperandType::kTensorInt32, {1, 7, 9, 6}), same,
         one, one, none, builder.scalar(false)},
        output);
  SampleModel sample = builder.finish();
  if (!isQuantized) return sample;
  // The scale of a bias is that of data times that of weights.
  auto scaled = std::make_shared<graph::Model>(*sample.model);
  scaled->main().operands[bias].scale = kDataScale * kWeightScale;
  sample.model = std::move(scaled);
  return sample;
}

}  // namespace

std::optional<SampleModel> sampleModelOf(std::string_view shader) {
  const size_t dot = std::min(shader.find('.'), shader.size());
  const std::string_view name = shader.substr(0, dot);
  const std::string_view suffix = shader.substr(std::min(dot + 1, shader.size()));
  if (name == "convolution") return layerSample(LayerKind::kConvolution, suffix);
  if (name == "depthwise") return layerSample(LayerKind::kDepthwise, suffix);
  if (name == "transposed") return layerSample(LayerKind::kTransposed, suffix);
  const OperandType type = dataTypeOf(suffix);
  const Dimensions image = {1, 7, 9, 5};
  const Dimensions rows = {3, 77};
  SampleBuilder builder;
  const uint32_t none = builder.scalar(int32_t{0});
  const uint32_t one = builder.scalar(int32_t{1});
  if (name == "pool") {
    const uint32_t three = builder.scalar(int32_t{3});
    builder.operation(OperationType::kAveragePool2d,
                      {builder.input(type, image), one, one, one, three, three, none},
                      builder.output(type, image));
  } else if (name == "binary" || name == "table") {
    builder.operation(OperationType::kAdd,
                      {builder.input(type, rows), builder.input(type, {77}), none},
                      builder.output(type, rows));
  } else if (name == "unary") {
    builder.operation(OperationType::kTanh, {builder.input(type, rows)},
                      builder.output(type, rows));
  } else if (name == "compare") {
    builder.operation(OperationType::kLess, {builder.input(type, rows), builder.input(type, {77})},
                      builder.output(OperandType::kTensorBool8, rows));
  } else if (name == "arg_extreme") {
    builder.operation(OperationType::kArgmax, {builder.input(type, rows), one},
                      builder.output(OperandType::kTensorInt32, {3}));
  } else if (name == "cumsum") {
    builder.operation(
        OperationType::kCumsum,
        {builder.input(type, rows), one, builder.scalar(false), builder.scalar(false)},
        builder.output(type, rows));
  } else if (name == "select") {
    const uint32_t condition = builder.input(OperandType::kTensorBool8, rows);
    builder.operation(OperationType::kSelect,
                      {condition, builder.input(type, rows), builder.input(type, rows)},
                      builder.output(type, rows));
  } else if (name == "reduce" || name == "reduce_quantized") {
    builder.operation(
        OperationType::kMean,
        {builder.input(type, rows), builder.list<int32_t>(OperandType::kTensorInt32, {1}), none},
        builder.output(type, {3}));
  } else if (name == "softmax" || name == "softmax_quantized") {
    const int32_t lowest = type == OperandType::kTensorQuant8AsymmSigned ? -128 : 0;
    builder.operation(OperationType::kSoftmax, {builder.input(type, rows), builder.scalar(1.0f)},
                      builder.output(type, rows, 1.0f / 256, lowest));
  } else if (name == "quantize") {
    builder.operation(OperationType::kQuantize, {builder.input(type, rows)},
                      builder.output(OperandType::kTensorQuant8Asymm, rows, 0.015625f));
  } else if (name == "dequantize") {
    builder.operation(OperationType::kDequantize,
                      {builder.input(OperandType::kTensorQuant8Asymm, rows)},
                      builder.output(type, rows));
  } else if (name == "cast") {
    const std::string_view to = suffix.substr(suffix.find_first_of("fiu", 1));
    builder.operation(OperationType::kCast, {builder.input(type, rows)},
                      builder.output(dataTypeOf(to), rows));
  } else if (name == "normalize") {
    builder.operation(
        OperationType::kGroupNorm,
        {builder.input(type, {1, 7, 9, 6}), builder.input(type, {6}), builder.input(type, {6}),
         builder.scalar(type, 0.5f), builder.scalar(int32_t{2}), builder.scalar(int32_t{3})},
        builder.output(type, {1, 7, 9, 6}));
  } else if (name == "length_quantized") {
    const int32_t zero = type == OperandType::kTensorQuant8AsymmSigned ? 0 : 128;
    builder.operation(OperationType::kL2Normalization, {builder.input(type, rows)},
                      builder.output(type, rows, 1.0f / 128, zero));
  } else if (name == "response") {
    builder.operation(
        OperationType::kLocalResponseNormalization,
        {builder.input(type, image), builder.scalar(int32_t{2}), builder.scalar(type, 1.0f),
         builder.scalar(type, 0.5f), builder.scalar(type, 0.75f)},
        builder.output(type, image));
  } else if (name == "gather") {
    const uint32_t numbers = builder.list<int32_t>(OperandType::kTensorInt32, {5, 0, 8, 5});
    builder.operation(OperationType::kGather,
                      {builder.input(type, image), builder.scalar(int32_t{2}), numbers},
                      builder.output(type, {1, 7, 4, 5}));
  } else if (name == "update") {
    const uint32_t begins = builder.list<int32_t>(OperandType::kTensorInt32, {0, 3, 20, -1});
    builder.operation(OperationType::kDynamicUpdateSlice,
                      {builder.input(type, image), builder.input(type, {1, 2, 3, 4}), begins},
                      builder.output(type, image));
  } else if (name == "matmul") {
    builder.operation(OperationType::kBatchMatmul,
                      {builder.input(type, {2, 37, 19}), builder.input(type, {2, 19, 41}),
                       builder.scalar(false), builder.scalar(false)},
                      builder.output(type, {2, 37, 41}, 5.0f));
  } else if (name == "round_rows") {
    builder.operation(OperationType::kFullyConnected,
                      {builder.input(type, rows),
                       builder.weights(OperandType::kTensorQuant8AsymmSigned, {6, 77}, 0.0625f),
                       builder.weights(type, {6}, 0), none},
                      builder.output(type, {3, 6}));
  } else if (name == "resize") {
    const uint32_t width = builder.scalar(int32_t{18});
    const uint32_t height = builder.scalar(int32_t{14});
    builder.operation(OperationType::kResizeBilinear, {builder.input(type, image), width, height},
                      builder.output(type, {1, 14, 18, 5}));
  } else if (name == "copy") {
    builder.operation(OperationType::kTranspose,
                      {builder.input(type, image),
                       builder.list<int32_t>(OperandType::kTensorInt32, {0, 3, 1, 2})},
                      builder.output(type, {1, 5, 7, 9}));
  } else {
    return std::nullopt;
  }
  return builder.finish();
}

}  // namespace hearth::vulkan
