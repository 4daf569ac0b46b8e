// SPDX-License-Identifier: Apache-2.0
// Makes the operands of one subgraph that stand for no tensor of the file: constants, omitted
// arguments, intermediate values.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "base/result.h"
#include "frontends/tflite/translators/model_builder.h"
#include "graph/model.h"

namespace hearth::tflite {

// Operands are named by their indices in the subgraph under construction.
class OperandBuilder {
 public:
  ModelBuilder& model() { return model_; }
  const graph::Operand& operand(uint32_t index) const { return result_.operands[index]; }
  graph::Operand& operand(uint32_t index) { return result_.operands[index]; }

  // Makes the rank of an operand unknown if the file does not say it. A shape without dimensions is
  // that of a scalar, of a tensor of unknown rank, or, in older files, of either.
  void forgetUnsaidRank(uint32_t operand);
  // The rank of an operand is what its operation says, whatever the file leaves open.
  void settleRank(uint32_t operand) { unsaidRanks_.erase(operand); }
  // Whether the operand has no dimensions only because the file does not say its rank.
  bool isRankUnsaid(uint32_t operand) const { return unsaidRanks_.contains(operand); }

  Result<uint32_t> addOperand(graph::Operand operand);
  Result<uint32_t> temporaryLike(uint32_t operand);
  Result<uint32_t> omitted(graph::OperandType type);
  Result<uint32_t> scalar(int32_t value);
  Result<uint32_t> scalar(float value);
  Result<uint32_t> scalar(bool value);
  // A one-dimensional TENSOR_INT32.
  Result<uint32_t> intTensor(std::span<const int32_t> values);
  // A constant of any type; `like` gives type, dimensions and quantisation.
  Result<uint32_t> constantTensor(graph::Operand like, std::span<const uint8_t> bytes);
  // Another operand for the bytes of a constant, with another type or scale.
  Result<uint32_t> retypedConstant(uint32_t operand, graph::OperandType type, float scale);
  Result<uint32_t> subgraphOperand(int64_t subgraph);

  // The values of a constant INT32 or INT64 operand, or of an integer operand of 8 to 64 bits
  // without a scale. kUnsupported when it is not constant.
  Result<std::vector<int64_t>> constantInts(uint32_t operand);

 protected:
  explicit OperandBuilder(ModelBuilder& model) : model_(model) {}
  ~OperandBuilder() = default;

  ModelBuilder& model_;
  graph::Subgraph result_;
  std::set<uint32_t> unsaidRanks_;  // operands without dimensions, whose rank the file does not say

 private:
  Result<uint32_t> addScalar(graph::OperandType type, std::span<const uint8_t> bytes);

  std::map<std::pair<graph::OperandType, uint32_t>, uint32_t> scalars_;
  std::map<std::tuple<uint32_t, graph::OperandType, float>, uint32_t> retyped_;
};

}  // namespace hearth::tflite
