// SPDX-License-Identifier: Apache-2.0
// FULLY_CONNECTED. Inputs: data, weights, bias (may be omitted), activation; beyond NNAPI, the
// block scales of TENSOR_INT4 weights.
#include "ops/fully_connected.h"

#include "ops/convolution.h"
#include "ops/registry.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

constexpr size_t kBlockScales = 4;

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(4, 5, 1));
  HEARTH_TRY(validateFilterTypes(signature, 0, kBlockScales));
  HEARTH_TRY(signature.inputType(3, OperandType::kInt32));
  HEARTH_TRY(signature.inputRank(0, 1, kMaximumRank));
  return signature.inputRank(1, 2, 2);
}

Status prepare(OperationContext& context) {
  HEARTH_ASSIGN(const FullyConnectedParameters p, parseFullyConnected(context));
  return context.setOutputDimensions(0, p.outputDimensions);
}

void executeHybrid(const OperationContext& context, const FullyConnectedParameters& p) {
  const std::vector<float> input =
      roundToDynamicSteps(context.inputs[0].as<float>(), p.batches, p.inputSize);
  const WeightRows weights(context, 1, kBlockScales);
  const std::vector<float> bias = realBias(context);
  const ActivationRange range = activationRange(p.activation);
  float* output = context.outputs[0].as<float>();
  std::vector<float> row(p.inputSize);
  for (size_t unit = 0; unit < p.units; ++unit) {
    weights.read(unit, row.data());
    for (size_t b = 0; b < p.batches; ++b) {
      const float sum = dotProduct(input.data() + b * p.inputSize, row.data(), p.inputSize);
      output[b * p.units + unit] = range.apply(bias.empty() ? sum : sum + bias[unit]);
    }
  }
}

Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const FullyConnectedParameters p, parseFullyConnected(context));
  if (isHybrid(context)) {
    executeHybrid(context, p);
    return {};
  }
  computeWithFilter(
      context, p.activation, [&]<typename T>(const T* input, const T* weights, const auto& store) {
        for (size_t b = 0; b < p.batches; ++b) {
          for (size_t unit = 0; unit < p.units; ++unit)
            store(b * p.units + unit, unit,
                  dotProduct(input + b * p.inputSize, weights + unit * p.inputSize, p.inputSize));
        }
      });
  return {};
}

}  // namespace

Result<FullyConnectedParameters> parseFullyConnected(const OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 2, 1));
  HEARTH_TRY(requireRank(context, 0, 1, kMaximumRank));
  HEARTH_TRY(requireRank(context, 1, 2, 2));
  const Tensor& input = context.inputs[0];
  FullyConnectedParameters p;
  HEARTH_ASSIGN(p.activation, parseActivation(context, 3));
  p.units = context.inputs[1].dimensions[0];
  p.inputSize = context.inputs[1].dimensions[1];
  const uint64_t elements = input.elementCount();
  if (p.units == 0 || p.inputSize == 0 || elements % p.inputSize != 0 ||
      elements / p.inputSize > UINT32_MAX)
    return fail(ErrorCode::kBadData, "The weights {} of {} do not fit its input {}.",
                graph::describeDimensions(context.inputs[1].dimensions), context.describe(),
                graph::describeDimensions(input.dimensions));
  p.batches = static_cast<uint32_t>(elements / p.inputSize);
  HEARTH_TRY(checkBias(context, p.units));
  HEARTH_TRY(checkBlockScales(context, 1, kBlockScales));
  const Dimensions& declared = context.outputs[0].operand->dimensions;
  const bool keepsDimensions = declared.size() == input.rank() && declared.size() != 2 &&
                               input.dimensions.back() == p.inputSize;
  if (keepsDimensions) {
    p.outputDimensions = input.dimensions;
    p.outputDimensions.back() = p.units;
  } else {
    p.outputDimensions = {p.batches, p.units};
  }
  return p;
}

const OperationDefinition kFullyConnectedOperation = {OperationType::kFullyConnected, validate,
                                                      prepare, execute};

}  // namespace hearth::ops
