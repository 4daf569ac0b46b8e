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

// The options as a FlexBuffer with a map. kUnsupported when there are none.
Result<FlexAttributes> customOptions(OperatorView& view);

// A whole number from 1 on; kBadData for anything else.
Result<int32_t> countOption(const FlexAttributes& options, const char* name,
                            std::optional<int32_t> fallback = std::nullopt);
// kBadData when it is missing.
Result<float> floatOption(const FlexAttributes& options, const char* name);

Status readIntegerOptions(OperatorView& view, std::span<int32_t> values);
// The options as a structure that begins with these 32-bit integers. kBadData for fewer bytes.
template <size_t kCount>
Result<std::array<int32_t, kCount>> integerOptions(OperatorView& view) {
  std::array<int32_t, kCount> values{};
  HEARTH_TRY(readIntegerOptions(view, values));
  return values;
}

}  // namespace hearth::tflite
