// SPDX-License-Identifier: Apache-2.0
// Options and outputs of custom operations that are built in.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/result.h"
#include "frontends/tflite/translators/flex_attributes.h"
#include "frontends/tflite/translators/operator_view.h"

namespace hearth::tflite {

// Output `index` with these dimensions. TFLite computes the shapes of such outputs itself; files
// hold anything from the right ones to none at all. kBadData when it is no result of an operation.
Result<uint32_t> outputOfShape(OperatorView& view, size_t index, graph::Dimensions dimensions);

// A constant of these dimensions, which make as many elements as there are values.
Result<uint32_t> floatConstant(OperatorView& view, graph::Dimensions dimensions,
                               std::span<const float> values);
Result<uint32_t> intConstant(OperatorView& view, graph::Dimensions dimensions,
                             std::span<const int32_t> values);

// Input `index` as a TENSOR_FLOAT32 whose dimensions are all known; kUnsupported for any other.
Result<uint32_t> floatInput(OperatorView& view, size_t index);

// The version of the operation in the file.
int32_t operatorVersion(OperatorView& view);
// kUnsupported for a version outside [1, last].
Status requireVersion(int32_t version, int32_t last);

// The options as a FlexBuffer with a map. kUnsupported when there are none.
Result<FlexAttributes> customOptions(OperatorView& view);

// A whole number from 1 on; kBadData for anything else.
Result<int32_t> countOption(const FlexAttributes& options, const char* name,
                            std::optional<int32_t> fallback = std::nullopt);
// kBadData when it is missing.
Result<float> floatOption(const FlexAttributes& options, const char* name);

// A list of a height and a width, in this order, each `least` or more; kBadData for anything else.
Result<std::array<float, 2>> sidesOption(const FlexAttributes& options, const char* name,
                                         double least);

Status readIntegerOptions(OperatorView& view, std::span<int32_t> values);
// The options as a structure that begins with these 32-bit integers. kBadData for fewer bytes.
template <size_t kCount>
Result<std::array<int32_t, kCount>> integerOptions(OperatorView& view) {
  std::array<int32_t, kCount> values{};
  HEARTH_TRY(readIntegerOptions(view, values));
  return values;
}

}  // namespace hearth::tflite
