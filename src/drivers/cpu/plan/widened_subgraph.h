// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "graph/model.h"

namespace hearth::cpu {

// A subgraph whose operations on float16 tensors are operations on float32 ones, for which there
// are fast kernels. Each float16 tensor that they read or write has a second operand, its wide one,
// of the same shape and content in float32. Operations and the subgraph's own operands keep their
// numbers; wide operands come behind those. Results of each operation are rounded to float16, as
// kernels of float16 round them: then they do not depend on which operations are planned together,
// and a tensor has the same content in both forms. Immutable.
class WidenedSubgraph {
 public:
  // Null where no operation gains by it. Operations stay in float16 that have no faster kernel in
  // float32, those on constants alone, and those that only move numbers, unless they read or write
  // what others have in float32.
  static std::shared_ptr<const WidenedSubgraph> of(const graph::Subgraph& subgraph);

  // With all operands. Operations that are not widened read and write the subgraph's own.
  const graph::Subgraph& subgraph() const { return subgraph_; }
  bool isWide(uint32_t operand) const { return operand >= ownCount_; }
  // The float16 operand that a wide one belongs to; others are their own.
  uint32_t narrow(uint32_t operand) const {
    return isWide(operand) ? narrow_[operand - ownCount_] : operand;
  }
  // The other form of a tensor, whichever is given; UINT32_MAX if it has one form.
  uint32_t otherForm(uint32_t operand) const {
    return isWide(operand) ? narrow(operand) : wide_[operand];
  }
  // The operation that makes a wide operand of the other one.
  const graph::Operation& conversion(uint32_t wide) const { return conversions_[wide - ownCount_]; }

  // Whether what the operation makes of float16 numbers needs no rounding: it chooses or moves
  // them, or makes others that float16 has.
  static bool isExact(graph::OperationType type);
  // Whether the operation gives the same of rounded numbers as of others before they are rounded.
  static bool isClamp(graph::OperationType type);

 private:
  WidenedSubgraph(const graph::Subgraph& subgraph, const std::vector<bool>& isWidened);

  graph::Subgraph subgraph_;
  const uint32_t ownCount_;
  std::vector<uint32_t> wide_;    // by own operand: UINT32_MAX: none
  std::vector<uint32_t> narrow_;  // by wide operand
  std::vector<graph::Operation> conversions_;
};

}  // namespace hearth::cpu
