// SPDX-License-Identifier: Apache-2.0
// From operations of a model to dispatches of shaders.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "drivers/vulkan/context/gpu.h"
#include "drivers/vulkan/plan/plan.h"
#include "ops/activation.h"
#include "ops/operation.h"
#include "ops/padding.h"

namespace hearth::vulkan {

// One operation, with all shapes known, and the plan that it is added to.
class LoweringContext {
 public:
  LoweringContext(ops::OperationContext operation, const GpuFacts& facts, Plan* plan,
                  std::vector<TensorId> inputs, std::vector<TensorId> outputs)
      : operation_(std::move(operation)),
        facts_(facts),
        plan_(plan),
        inputs_(std::move(inputs)),
        outputs_(std::move(outputs)) {}

  const ops::OperationContext& operation() const { return operation_; }
  const GpuFacts& facts() const { return facts_; }
  const ops::Tensor& input(size_t index) const { return operation_.inputs[index]; }
  const ops::Tensor& output(size_t index) const { return operation_.outputs[index]; }
  // The tensors of the plan; kNoTensor where an argument is omitted or a scalar.
  TensorId inputTensor(size_t index) const { return inputs_[index]; }
  TensorId outputTensor(size_t index) const { return outputs_[index]; }

  // The ending of a shader's name for tensors of this type: "f32", "f16", "u8" or "i8".
  // kUnsupported for another type, or where the device cannot store it.
  Result<std::string> numberSuffix(ops::OperandType type) const;

  // The same for elements of so many bytes that are moved as they are: "bits8", "bits16", "bits32".
  Result<std::string> bitsSuffix(size_t elementBytes) const;

  // Adds a constant that the driver makes. `make` must not refer to this object; it may refer to
  // the model.
  TensorId addConstant(uint64_t bytes, std::function<Result<std::vector<uint8_t>>()> make);

  // Adds a tensor of the arena that only this operation uses.
  TensorId addTemporary(uint64_t bytes);

  // Adds a dispatch of as many groups as it says. kUnsupported for more than the device has.
  Status add(Dispatch dispatch);
  // The same with an invocation for each of `count` elements (rowElement() in types.glsl).
  Status addRow(Dispatch dispatch, uint64_t count);

  // The same with a work group for each of `rows` rows (rows.glsl).
  Status addRows(Dispatch dispatch, uint32_t rows);

  // A number that is 0 when an execution begins. A shader that finds its inputs wrong makes it
  // another one, and the execution fails.
  Result<TensorId> fault();

  // Lets output 0 have the memory of input 0, of as many bytes.
  void alias();

 private:
  ops::OperationContext operation_;
  const GpuFacts& facts_;
  Plan* plan_;
  std::vector<TensorId> inputs_;
  std::vector<TensorId> outputs_;
};

// Adds what computes an operation to its plan. kUnsupported, with a sentence that says what, for an
// operation that is left to other devices; the plan is then of no use.
using Lowering = Status (*)(LoweringContext& context);

// Null for an operation that this driver lacks.
Lowering findLowering(ops::OperationType type);

// By file. arg_extreme.cc
Status lowerArgExtreme(LoweringContext& context);
Status lowerCumsum(LoweringContext& context);

// casts.cc
Status lowerCast(LoweringContext& context);

// choices.cc
Status lowerComparison(LoweringContext& context);
Status lowerLogic(LoweringContext& context);
Status lowerSelect(LoweringContext& context);

// convolution.cc
Status lowerConvolution(LoweringContext& context);
Status lowerDepthwiseConvolution(LoweringContext& context);
Status lowerFullyConnected(LoweringContext& context);
Status lowerTransposedConvolution(LoweringContext& context);

// elementwise.cc
Status lowerBinary(LoweringContext& context);
Status lowerUnary(LoweringContext& context);

// lookups.cc
Status lowerGather(LoweringContext& context);
Status lowerEmbeddingLookup(LoweringContext& context);
Status lowerDynamicUpdateSlice(LoweringContext& context);

// matrices.cc
Status lowerBatchMatmul(LoweringContext& context);
Status lowerAttention(LoweringContext& context);

// moves.cc
Status lowerBroadcast(LoweringContext& context);
Status lowerChannelShuffle(LoweringContext& context);
Status lowerConcatenation(LoweringContext& context);
Status lowerPack(LoweringContext& context);
Status lowerPad(LoweringContext& context);
Status lowerReshape(LoweringContext& context);
Status lowerReverse(LoweringContext& context);
Status lowerSlice(LoweringContext& context);
Status lowerSplit(LoweringContext& context);
Status lowerTile(LoweringContext& context);
Status lowerTranspose(LoweringContext& context);

// normalization.cc
Status lowerL2Normalization(LoweringContext& context);
Status lowerRmsNorm(LoweringContext& context);
Status lowerGroupNorm(LoweringContext& context);
Status lowerInstanceNormalization(LoweringContext& context);
Status lowerLocalResponseNormalization(LoweringContext& context);

// pooling.cc
Status lowerPool(LoweringContext& context);

// quantization.cc
Status lowerQuantize(LoweringContext& context);
Status lowerDequantize(LoweringContext& context);

// reduction.cc
Status lowerReduction(LoweringContext& context);

// resize.cc
Status lowerResize(LoweringContext& context);

// space_moves.cc
Status lowerSpaceToBatch(LoweringContext& context);
Status lowerSpaceToDepth(LoweringContext& context);

// softmax.cc
Status lowerSoftmax(LoweringContext& context);

// The limits of a fused activation as the parameters of shaders have them: the bits of float32
// numbers, or stored numbers of the operand's quantised type.
std::array<uint32_t, 2> activationLimits(ops::FusedActivation activation,
                                         const graph::Operand& output);

// Appends the strides of images as the parameters of shaders have them: from batch to batch, row to
// row, column to column and channel to channel, in elements.
void appendStrides(const ops::ImageLayout& layout, std::vector<uint32_t>* parameters);

// A parameter of a shader.
inline uint32_t bitsOf(float value) {
  return std::bit_cast<uint32_t>(value);
}
inline uint32_t bitsOf(int32_t value) {
  return static_cast<uint32_t>(value);
}

}  // namespace hearth::vulkan
