// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "ops/operation.h"

namespace hearth::cpu {

// The result of an operation on constants, such as DEQUANTIZE or CAST. Layers that pack it compute
// it while packing, so that no copy stays in memory.
class ConvertedConstant {
 public:
  // `context` is that of the operation, with known shapes and one output, whose elements are whole
  // bytes. `inputs` are those of its inputs that are results themselves, null for the others, which
  // have data. The model must outlive this.
  ConvertedConstant(ops::OperationContext context,
                    std::vector<std::shared_ptr<const ConvertedConstant>> inputs)
      : context_(std::move(context)), inputs_(std::move(inputs)) {}

  const graph::Operation& operation() const { return *context_.operation; }
  // The operand that holds the constant, where the operation is a DEQUANTIZE or CAST of one.
  std::optional<uint32_t> source() const;
  uint64_t byteCount() const;
  // All elements, with bytes behind them that XNNPACK may read. Thread-safe.
  std::vector<uint8_t> convert() const;
  // Writes byteCount() bytes to `target`, which is aligned to the elements. Thread-safe. Error:
  // that of the operation. Conversions and permutations have none.
  Status writeTo(uint8_t* target) const;

 private:
  ops::OperationContext context_;
  std::vector<std::shared_ptr<const ConvertedConstant>> inputs_;
};

using ConvertedConstantRef = std::shared_ptr<const ConvertedConstant>;

}  // namespace hearth::cpu
