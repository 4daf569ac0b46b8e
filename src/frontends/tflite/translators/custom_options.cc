// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite/translators/custom_options.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace hearth::tflite {

Result<uint32_t> outputOfShape(OperatorView& view, size_t index, graph::Dimensions dimensions) {
  if (index >= view.outputCount())
    return fail(ErrorCode::kBadData, "It has {} outputs, it must have {} or more.",
                view.outputCount(), index + 1);
  HEARTH_ASSIGN(const uint32_t output, view.output(index));
  graph::Operand& operand = view.builder().operand(output);
  if (operand.lifetime != graph::Lifetime::kTemporary)
    return fail(ErrorCode::kBadData, "It writes {}, which is an input, a constant or a variable.",
                graph::describe(operand));
  operand.isRankZeroTensor = dimensions.empty();
  operand.dimensions = std::move(dimensions);
  view.builder().settleRank(output);
  return output;
}

namespace {

template <typename T>
Result<uint32_t> constantOf(OperatorView& view, graph::OperandType type,
                            graph::Dimensions dimensions, std::span<const T> values) {
  graph::Operand like;
  like.type = type;
  like.dimensions = std::move(dimensions);
  return view.builder().constantTensor(
      std::move(like), {reinterpret_cast<const uint8_t*>(values.data()), values.size_bytes()});
}

}  // namespace

Result<uint32_t> floatConstant(OperatorView& view, graph::Dimensions dimensions,
                               std::span<const float> values) {
  return constantOf(view, graph::OperandType::kTensorFloat32, std::move(dimensions), values);
}

Result<uint32_t> intConstant(OperatorView& view, graph::Dimensions dimensions,
                             std::span<const int32_t> values) {
  return constantOf(view, graph::OperandType::kTensorInt32, std::move(dimensions), values);
}

Result<uint32_t> floatInput(OperatorView& view, size_t index) {
  HEARTH_ASSIGN(const uint32_t input, view.input(index));
  const graph::Operand& operand = view.operand(input);
  if (operand.type != graph::OperandType::kTensorFloat32 || !graph::isFullySpecified(operand))
    return fail(ErrorCode::kUnsupported, "Its input {} is {}, it must be float32 of known shape.",
                index, graph::describe(operand));
  return input;
}

int32_t operatorVersion(OperatorView& view) {
  return view.builder().model().file().operatorCode(view.source().opcode_index())->version();
}

Status requireVersion(int32_t version, int32_t last) {
  if (version >= 1 && version <= last) return {};
  return fail(ErrorCode::kUnsupported, "Its version {} is unknown.", version);
}

Result<FlexAttributes> customOptions(OperatorView& view) {
  const auto* bytes = view.source().custom_options();
  if (bytes == nullptr || bytes->size() == 0)
    return fail(ErrorCode::kUnsupported, "It has no options beside its inputs.");
  return FlexAttributes::parse({bytes->data(), bytes->size()});
}

Result<int32_t> countOption(const FlexAttributes& options, const char* name,
                            std::optional<int32_t> fallback) {
  const std::optional<double> value = options.number(name);
  if (!value && fallback) return *fallback;
  if (!value) return fail(ErrorCode::kBadData, "Its options lack the number \"{}\".", name);
  if (!(*value >= 1 && *value <= std::numeric_limits<int32_t>::max()) ||
      *value != std::floor(*value))
    return fail(ErrorCode::kBadData, "Its option \"{}\" is {}, it must be a number from 1 on.",
                name, *value);
  return static_cast<int32_t>(*value);
}

Result<float> floatOption(const FlexAttributes& options, const char* name) {
  const std::optional<double> value = options.number(name);
  if (!value) return fail(ErrorCode::kBadData, "Its options lack the number \"{}\".", name);
  return static_cast<float>(*value);
}

Result<std::array<float, 2>> sidesOption(const FlexAttributes& options, const char* name,
                                         double least) {
  const std::vector<double> values = options.numbers(name).value_or(std::vector<double>());
  if (values.size() != 2 || !std::ranges::all_of(values, [&](double side) {
        return side >= least && side <= std::numeric_limits<int32_t>::max();
      }))
    return fail(ErrorCode::kBadData,
                "Its option \"{}\" must be a height and a width, each {} or more.", name, least);
  return std::array{static_cast<float>(values[0]), static_cast<float>(values[1])};
}

Status readIntegerOptions(OperatorView& view, std::span<int32_t> values) {
  const auto* bytes = view.source().custom_options();
  const size_t size = bytes == nullptr ? 0 : bytes->size();
  if (size < values.size_bytes())
    return fail(ErrorCode::kBadData, "Its options have {} bytes, they must have {} or more.", size,
                values.size_bytes());
  for (size_t i = 0; i < values.size(); ++i) {
    uint32_t value = 0;
    for (size_t byte = 0; byte < sizeof value; ++byte)
      value |= uint32_t{bytes->data()[i * sizeof value + byte]} << (8 * byte);
    values[i] = static_cast<int32_t>(value);
  }
  return {};
}

}  // namespace hearth::tflite
