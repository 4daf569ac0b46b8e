// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite/translators/custom_options.h"

#include <cmath>
#include <limits>
#include <utility>

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
  return output;
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
