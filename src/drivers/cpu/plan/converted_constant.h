// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "ops/operation.h"

namespace hearth::cpu {

// The result of DEQUANTIZE or CAST of a constant. Layers that pack it convert the constant while
// packing, so that no float32 copy stays in memory.
class ConvertedConstant {
 public:
  // `context` is that of the operation, with known shapes. The model must outlive this.
  explicit ConvertedConstant(ops::OperationContext context) : context_(std::move(context)) {}

  // The operand that holds the constant.
  uint32_t source() const { return context_.operation->inputs[0]; }
  uint64_t elementCount() const { return context_.outputs[0].elementCount(); }
  // All elements in float32, with bytes behind them that XNNPACK may read. Thread-safe.
  std::vector<float> convert() const;
  // Writes elementCount() floats to `target`. Thread-safe.
  void convertTo(float* target) const;

 private:
  ops::OperationContext context_;
};

using ConvertedConstantRef = std::shared_ptr<const ConvertedConstant>;

}  // namespace hearth::cpu
