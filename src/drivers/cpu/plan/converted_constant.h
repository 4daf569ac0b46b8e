// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "ops/operation.h"

namespace hearth::cpu {

// The result of DEQUANTIZE or CAST of a constant, which layers that pack it take from where the
// constant lies: there is no float32 copy of it beyond the moment of packing.
class ConvertedConstant {
 public:
  // `context` is that of the operation, with known shapes. The model must outlive this.
  explicit ConvertedConstant(ops::OperationContext context) : context_(std::move(context)) {}

  // The operand that holds the constant.
  uint32_t source() const { return context_.operation->inputs[0]; }
  uint64_t elementCount() const { return context_.outputs[0].elementCount(); }
  // All of it in float32, with bytes behind it that XNNPACK may read. Thread-safe.
  std::vector<float> convert() const;
  void convertTo(float* target) const;

 private:
  ops::OperationContext context_;
};

using ConvertedConstantRef = std::shared_ptr<const ConvertedConstant>;

}  // namespace hearth::cpu
