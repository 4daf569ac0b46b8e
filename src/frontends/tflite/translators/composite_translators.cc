// SPDX-License-Identifier: Apache-2.0
// STABLEHLO_COMPOSITE is a converter's name for a group of operations, which the file also has as a
// subgraph (the decomposition). A known composite becomes one operation, any other its parts.
#include <cmath>
#include <limits>
#include <string_view>

#include "frontends/tflite/translators/flex_attributes.h"
#include "frontends/tflite/translators/translators.h"

namespace hearth::tflite {
namespace {

using graph::OperandType;
using graph::OperationType;
using schema::BuiltinOperator;

bool isFloatTensor(OperatorView& view, uint32_t operand) {
  return view.operand(operand).type == OperandType::kTensorFloat32;
}

bool hasElements(OperatorView& view, uint32_t operand, uint64_t count) {
  const graph::Operand& source = view.operand(operand);
  if (!graph::isFullySpecified(source)) return false;
  const auto elements = graph::elementCount(source);
  return elements && *elements == count;
}

// The functions below emit nothing and return false when an argument does not suit the operation.

Result<bool> translateRmsNorm(OperatorView& view, const FlexAttributes& attributes) {
  const std::optional<double> epsilon = attributes.number("epsilon");
  if (!epsilon || view.inputCount() < 1 || view.inputCount() > 2) return false;
  HEARTH_ASSIGN(const uint32_t input, view.input(0));
  HEARTH_ASSIGN(const uint32_t scale, view.inputOr(1, OperandType::kTensorFloat32));
  const graph::Dimensions& shape = view.operand(input).dimensions;
  if (!isFloatTensor(view, input) || !isFloatTensor(view, scale) || shape.empty() ||
      (view.hasInput(1) && !hasElements(view, scale, shape.back())))
    return false;
  HEARTH_ASSIGN(const uint32_t epsilonOperand, view.scalar(static_cast<float>(*epsilon)));
  HEARTH_TRY(view.emit(OperationType::kRmsNorm, {input, scale, epsilonOperand}));
  return true;
}

// Converters also call layer normalisation by this name, with one group. With more than two
// dimensions that is something else.
Result<bool> translateGroupNorm(OperatorView& view, const FlexAttributes& attributes) {
  const std::optional<double> epsilon = attributes.number("epsilon");
  const std::optional<double> groups = attributes.number("num_groups");
  const std::optional<double> axis = attributes.number("channel_axis");
  if (!epsilon || !groups || !axis || view.inputCount() != 3) return false;
  HEARTH_ASSIGN(const uint32_t input, view.input(0));
  HEARTH_ASSIGN(const uint32_t scale, view.inputOr(1, OperandType::kTensorFloat32));
  HEARTH_ASSIGN(const uint32_t offset, view.inputOr(2, OperandType::kTensorFloat32));
  const graph::Dimensions& shape = view.operand(input).dimensions;
  const double rank = static_cast<double>(shape.size());
  const double channelAxis = *axis < 0 ? *axis + rank : *axis;
  if (!isFloatTensor(view, input) || !isFloatTensor(view, scale) || !isFloatTensor(view, offset) ||
      !(channelAxis >= 1 && channelAxis < rank) || !(*groups >= 1 && *groups <= 1e9) ||
      (*groups == 1 && shape.size() > 2))
    return false;
  const uint64_t channels = shape[static_cast<size_t>(channelAxis)];
  if ((view.hasInput(1) && !hasElements(view, scale, channels)) ||
      (view.hasInput(2) && !hasElements(view, offset, channels)))
    return false;
  HEARTH_ASSIGN(const uint32_t epsilonOperand, view.scalar(static_cast<float>(*epsilon)));
  HEARTH_ASSIGN(const uint32_t groupsOperand, view.scalar(static_cast<int32_t>(*groups)));
  HEARTH_ASSIGN(const uint32_t axisOperand, view.scalar(static_cast<int32_t>(channelAxis)));
  HEARTH_TRY(view.emit(OperationType::kGroupNorm,
                       {input, scale, offset, epsilonOperand, groupsOperand, axisOperand}));
  return true;
}

// The converter's decomposition is wrong when heads share keys, so this form matters for results.
Result<bool> translateAttention(OperatorView& view, const FlexAttributes& attributes) {
  if (view.inputCount() < 3 || view.inputCount() > 4) return false;
  std::vector<uint32_t> arguments;
  for (size_t i = 0; i < 3; ++i) {
    HEARTH_ASSIGN(const uint32_t input, view.input(i));
    if (!isFloatTensor(view, input) || view.operand(input).dimensions.size() != 4) return false;
    arguments.push_back(input);
  }
  HEARTH_ASSIGN(const uint32_t mask, view.inputOr(3, OperandType::kTensorFloat32));
  if (!isFloatTensor(view, mask)) return false;
  const uint32_t size = view.operand(arguments[0]).dimensions[3];
  std::optional<double> scale = attributes.number("scale");
  if (!scale && size != 0) scale = 1.0 / std::sqrt(static_cast<double>(size));
  if (!scale) return false;
  HEARTH_ASSIGN(const uint32_t scaleOperand, view.scalar(static_cast<float>(*scale)));
  HEARTH_ASSIGN(const uint32_t limit,
                view.scalar(static_cast<float>(attributes.number("logit_cap").value_or(0.0))));
  arguments.insert(arguments.end(), {mask, scaleOperand, limit});
  HEARTH_TRY(view.emit(OperationType::kScaledDotProductAttention, std::move(arguments)));
  return true;
}

struct KnownComposite {
  std::string_view name;
  Result<bool> (*translate)(OperatorView& view, const FlexAttributes& attributes);
};

constexpr KnownComposite kKnownComposites[] = {
    {"odml.group_norm", translateGroupNorm},
    {"odml.rms_norm", translateRmsNorm},
    {"odml.scaled_dot_product_attention", translateAttention},
};

Status inlineDecomposition(OperatorView& view, int32_t subgraph) {
  std::vector<uint32_t> inputs;
  for (size_t i = 0; i < view.inputCount(); ++i) {
    HEARTH_ASSIGN(const uint32_t input, view.input(i));
    inputs.push_back(input);
  }
  std::vector<int64_t> outputs;
  for (size_t i = 0; i < view.outputCount(); ++i) outputs.push_back(view.outputTensor(i));
  return view.builder().inlineSubgraph(subgraph, inputs, outputs);
}

Status translateComposite(OperatorView& view, OperationType) {
  const auto* options = view.source().builtin_options_2_as_StableHLOCompositeOptions();
  if (options == nullptr)
    return fail(ErrorCode::kBadData, "It has no options, which name its decomposition.");
  const std::string_view name =
      options->name() == nullptr ? std::string_view() : options->name()->string_view();
  for (const KnownComposite& known : kKnownComposites) {
    if (known.name != name || view.outputCount() != 1) continue;
    const auto* bytes = options->composite_attributes();
    HEARTH_ASSIGN(
        const FlexAttributes attributes,
        FlexAttributes::parse(bytes == nullptr ? std::span<const uint8_t>()
                                               : std::span(bytes->data(), bytes->size())));
    HEARTH_ASSIGN(const bool isDone, known.translate(view, attributes));
    if (isDone) return {};
  }
  return inlineDecomposition(view, options->decomposition_subgraph_index());
}

}  // namespace

std::span<const TranslatorEntry> compositeTranslators() {
  static constexpr TranslatorEntry kTranslators[] = {
      {BuiltinOperator::STABLEHLO_COMPOSITE, translateComposite, OperationType::kRmsNorm},
  };
  return kTranslators;
}

}  // namespace hearth::tflite
