// SPDX-License-Identifier: Apache-2.0
// RELU, RELU1, RELU6, LOGISTIC, TANH and HARD_SWISH (input: data), ELU (data, alpha). Of the
// extension: GELU (data, BOOL: true for the approximation by tanh) and RELU_0_TO_1 (data).
#include <cmath>
#include <numbers>

#include "ops/activation.h"
#include "ops/elementwise.h"
#include "ops/registry.h"

namespace hearth::ops {
namespace {

constexpr TypeSet kActivationTensors = kFloatTensors | kQuant8Tensors | kQuant16Activations;

// NNAPI fixes the quantisation of results in [0, 1] and [-1, 1].
Status validateLogistic(const Signature& signature) {
  HEARTH_TRY(signature.counts(1, 1));
  HEARTH_TRY(validateElementwise(signature, kActivationTensors));
  if (signature.isInputOfType(0, OperandType::kTensorQuant8Asymm))
    return signature.outputQuantization(0, 1.0f / 256, 0);
  if (signature.isInputOfType(0, OperandType::kTensorQuant8AsymmSigned))
    return signature.outputQuantization(0, 1.0f / 256, -128);
  return {};
}

Status validateTanh(const Signature& signature) {
  HEARTH_TRY(signature.counts(1, 1));
  HEARTH_TRY(validateElementwise(signature, kActivationTensors));
  if (signature.isInputOfType(0, OperandType::kTensorQuant8Asymm))
    return signature.outputQuantization(0, 1.0f / 128, 128);
  if (signature.isInputOfType(0, OperandType::kTensorQuant8AsymmSigned))
    return signature.outputQuantization(0, 1.0f / 128, 0);
  return {};
}

template <FusedActivation activation>
Status executeRelu(OperationContext& context) {
  const ActivationRange range = activationRange(activation);
  computeReals(context, [&](float x) { return range.apply(x); });
  return {};
}

Status executeRelu0To1(OperationContext& context) {
  constexpr ActivationRange kRange = {0.0f, 1.0f};
  computeReals(context, [&](float x) { return kRange.apply(x); });
  return {};
}

Status executeLogistic(OperationContext& context) {
  computeReals(context, [](float x) { return 1.0f / (1.0f + std::exp(-x)); });
  return {};
}

Status executeTanh(OperationContext& context) {
  computeReals(context, [](float x) { return std::tanh(x); });
  return {};
}

Status executeHardSwish(OperationContext& context) {
  const ActivationRange range = activationRange(FusedActivation::kRelu6);
  computeReals(context, [&](float x) { return x * range.apply(x + 3.0f) / 6.0f; });
  return {};
}

Status validateElu(const Signature& signature) {
  HEARTH_TRY(signature.counts(2, 1));
  HEARTH_TRY(validateElementwise(signature, kActivationTensors));
  return signature.floatScalar(1, 0);
}

Status executeElu(OperationContext& context) {
  HEARTH_ASSIGN(const float alpha, floatScalar(context, 1));
  computeReals(context, [&](float x) { return x < 0.0f ? alpha * std::expm1(x) : x; });
  return {};
}

Status validateGelu(const Signature& signature) {
  HEARTH_TRY(signature.counts(2, 1));
  HEARTH_TRY(validateElementwise(signature, kActivationTensors));
  return signature.inputType(1, OperandType::kBool);
}

// x times the normal distribution's cumulative function, or an approximation of it by tanh.
Status executeGelu(OperationContext& context) {
  HEARTH_ASSIGN(const bool isApproximate, context.scalar<bool>(1));
  if (isApproximate) {
    constexpr float kFactor = 0.7978845608f;  // sqrt(2 / pi)
    computeReals(context, [](float x) {
      return 0.5f * x * (1.0f + std::tanh(kFactor * (x + 0.044715f * x * x * x)));
    });
  } else {
    constexpr float kInverseRoot = std::numbers::sqrt2_v<float> / 2;
    computeReals(context, [](float x) { return 0.5f * x * std::erfc(-x * kInverseRoot); });
  }
  return {};
}

}  // namespace

const OperationDefinition kEluOperation = {OperationType::kElu, validateElu, prepareElementwise,
                                           executeElu};
const OperationDefinition kGeluOperation = {OperationType::kGelu, validateGelu, prepareElementwise,
                                            executeGelu};
const OperationDefinition kHardSwishOperation = {OperationType::kHardSwish,
                                                 validateUnary<kActivationTensors>,
                                                 prepareElementwise, executeHardSwish};
const OperationDefinition kLogisticOperation = {OperationType::kLogistic, validateLogistic,
                                                prepareElementwise, executeLogistic};
const OperationDefinition kReluOperation = {OperationType::kRelu, validateUnary<kActivationTensors>,
                                            prepareElementwise,
                                            executeRelu<FusedActivation::kRelu>};
const OperationDefinition kRelu0To1Operation = {OperationType::kRelu0To1,
                                                validateUnary<kActivationTensors>,
                                                prepareElementwise, executeRelu0To1};
const OperationDefinition kRelu1Operation = {OperationType::kRelu1,
                                             validateUnary<kActivationTensors>, prepareElementwise,
                                             executeRelu<FusedActivation::kRelu1>};
const OperationDefinition kRelu6Operation = {OperationType::kRelu6,
                                             validateUnary<kActivationTensors>, prepareElementwise,
                                             executeRelu<FusedActivation::kRelu6>};
const OperationDefinition kTanhOperation = {OperationType::kTanh, validateTanh, prepareElementwise,
                                            executeTanh};

}  // namespace hearth::ops
