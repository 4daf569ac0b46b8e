// SPDX-License-Identifier: Apache-2.0
// Random numbers. Their place in the sequence of given seeds is a hidden state, so that a second
// run does not draw the first one's numbers again.
#include <array>
#include <utility>
#include <vector>

#include "frontends/tflite/translators/translators.h"

namespace hearth::tflite {
namespace {

using graph::OperandType;
using graph::OperationType;
using schema::BuiltinOperator;

Result<uint32_t> longTensor(OperatorView& view, std::span<const int64_t> values) {
  graph::Operand like;
  like.type = OperandType::kTensorInt64;
  like.dimensions = {static_cast<uint32_t>(values.size())};
  return view.builder().constantTensor(
      std::move(like), {reinterpret_cast<const uint8_t*>(values.data()), values.size_bytes()});
}

graph::Operand positionOperand() {
  graph::Operand operand;
  operand.type = OperandType::kTensorInt64;
  operand.dimensions = {1};
  return operand;
}

// Without seeds each run draws new ones, and no position is to be kept.
Result<SubgraphBuilder::HiddenState> position(OperatorView& view, bool hasSeeds) {
  if (hasSeeds) return view.builder().addHiddenState(positionOperand());
  constexpr std::array<int64_t, 1> kStart = {0};
  HEARTH_ASSIGN(const uint32_t before, longTensor(view, kStart));
  HEARTH_ASSIGN(const uint32_t after, view.builder().addOperand(positionOperand()));
  return SubgraphBuilder::HiddenState{before, after};
}

template <size_t kInputs>
Status translateRandom(OperatorView& view, OperationType type) {
  const auto& options = view.options<schema::RandomOptions>();
  std::vector<uint32_t> inputs;
  for (size_t i = 0; i < kInputs; ++i) {
    HEARTH_ASSIGN(const uint32_t input, view.input(i));
    inputs.push_back(input);
  }
  // TFLite keeps 32 bits of each.
  const std::array<int64_t, 2> values = {static_cast<int32_t>(options.seed()),
                                         static_cast<int32_t>(options.seed2())};
  HEARTH_ASSIGN(const uint32_t seeds, longTensor(view, values));
  HEARTH_ASSIGN(const SubgraphBuilder::HiddenState state,
                position(view, values[0] != 0 || values[1] != 0));
  inputs.insert(inputs.end(), {seeds, state.before});
  HEARTH_ASSIGN(const uint32_t output, view.output(0));
  return view.emit(type, std::move(inputs), {output, state.after});
}

}  // namespace

std::span<const TranslatorEntry> randomTranslators() {
  static constexpr TranslatorEntry kTranslators[] = {
      {BuiltinOperator::RANDOM_UNIFORM, translateRandom<1>, OperationType::kRandomUniform},
      {BuiltinOperator::RANDOM_STANDARD_NORMAL, translateRandom<1>,
       OperationType::kRandomStandardNormal},
      {BuiltinOperator::MULTINOMIAL, translateRandom<2>, OperationType::kMultinomial},
  };
  return kTranslators;
}

}  // namespace hearth::tflite
