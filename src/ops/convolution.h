// SPDX-License-Identifier: Apache-2.0
// What operations with input, filter and bias (inputs 0, 1, 2) share: their types, and arithmetic
// in real numbers and in integers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "ops/activation.h"
#include "ops/dynamic_quantization.h"
#include "ops/operation.h"
#include "ops/quantization.h"
#include "ops/real_values.h"
#include "ops/validation.h"
#include "ops/weight_rows.h"
#include "ops/window_parameters.h"

namespace hearth::ops {

// Checks the types of inputs 0 to 2 and output 0. Beyond NNAPI: the bias may be omitted, an 8-bit
// filter may be TENSOR_QUANT8_SYMM, a float32 input goes with any 8-bit filter and with TENSOR_INT4
// (float32 bias and output), and TENSOR_QUANT16_SYMM goes with symmetric 8-bit filters (bias INT32
// or INT64). A filter with a scale for each channel must have them along dimension `channelDim`;
// one of TENSOR_INT4 has scales as validateWeightScales() says.
Status validateFilterTypes(const Signature& signature, uint32_t channelDim,
                           size_t blockScales = kNoBlockScales);

// The same, and also checks the parameters of a convolution over images: integers from input
// `first` on, a bool at `layout`, and optional integers after it.
Status validateConvolution(const Signature& signature, uint32_t channelDim, size_t first,
                           size_t layout);

// The indices of some arguments of a convolution over images.
struct WindowArguments {
  bool isImplicit;  // the padding is a code
  size_t padding;
  size_t strides;
  size_t dilations;  // 0: there is no such argument
  size_t activation;
  size_t layout;
};

// For prepare: reads and checks the arguments that all convolutions over images have, but for the
// padding and the output.
Status parseConvolutionWindow(const OperationContext& context, const WindowArguments& arguments,
                              WindowParameters* p);

// The bias has `channels` elements and a scale that fits; passes when it is omitted.
Status checkBias(const OperationContext& context, uint64_t channels);

// The bias as real numbers; empty when it is omitted. An integer bias is in steps of input scale
// times filter scale.
std::vector<float> realBias(const OperationContext& context);

// Elements of an 8-bit tensor minus their zero point, -255 to 255.
std::vector<int16_t> centredValues(const Tensor& tensor);

// From accumulators of inputs 0 and 1 to output 0.
Requantization makeRequantization(const OperationContext& context, FusedActivation activation);

// Sum of products. Integer sums wrap; float sums have lanes, so that long rows stay exact enough.
inline float dotProduct(const float* a, const float* b, size_t count) {
  constexpr size_t kLanes = 8;
  float lanes[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += a[i + lane] * b[i + lane];
  }
  float sum = 0.0f;
  for (; i < count; ++i) sum += a[i] * b[i];
  for (float lane : lanes) sum += lane;
  return sum;
}

inline int32_t dotProduct(const int16_t* a, const int16_t* b, size_t count) {
  uint32_t sum = 0;
  for (size_t i = 0; i < count; ++i) sum += static_cast<uint32_t>(int32_t{a[i]} * int32_t{b[i]});
  return static_cast<int32_t>(sum);
}

inline int32_t dotProduct(const int32_t* a, const int32_t* b, size_t count) {
  uint32_t sum = 0;
  for (size_t i = 0; i < count; ++i)
    sum += static_cast<uint32_t>(a[i]) * static_cast<uint32_t>(b[i]);
  return static_cast<int32_t>(sum);
}

// An accumulator for elements of type T that wraps instead of overflowing.
template <typename T>
struct Accumulator;
template <>
struct Accumulator<float> {
  using Type = float;
};
template <>
struct Accumulator<int16_t> {
  using Type = uint32_t;
};

// Calls kernel(input, filter, store) with elements of one type T: float for real arithmetic, or
// int16_t, zero points subtracted. The kernel calls store(outputIndex, outputChannel, sum) for each
// output element; store adds the bias, applies the activation and requantises. `kernel` is generic
// over T and store.
template <typename Kernel>
void computeWithFilter(OperationContext& context, FusedActivation activation,
                       const Kernel& kernel) {
  const Tensor& input = context.inputs[0];
  const Tensor& filter = context.inputs[1];
  const Tensor& output = context.outputs[0];
  if (kQuant8Tensors.contains(output.type())) {
    const std::vector<int16_t> inputValues = centredValues(input);
    const std::vector<int16_t> filterValues = centredValues(filter);
    const Requantization requantization = makeRequantization(context, activation);
    const int32_t* bias = context.hasInput(2) ? context.inputs[2].as<int32_t>() : nullptr;
    uint8_t* bytes = output.as<uint8_t>();  // a cast keeps the bits of negative values
    kernel(inputValues.data(), filterValues.data(), [&](size_t index, size_t channel, auto sum) {
      uint32_t accumulator = static_cast<uint32_t>(sum);
      if (bias != nullptr) accumulator += static_cast<uint32_t>(bias[channel]);
      bytes[index] =
          static_cast<uint8_t>(requantization.apply(static_cast<int32_t>(accumulator), channel));
    });
    return;
  }
  const RealInput inputValues(input);
  const RealInput filterValues(filter);
  std::vector<float> rounded;
  const float* activations = inputValues.data();
  if (isHybrid(context) && inputValues.size() != 0) {
    const size_t batches = input.dimensions[0];
    rounded = roundToDynamicSteps(activations, batches, inputValues.size() / batches);
    activations = rounded.data();
  }
  const std::vector<float> bias = realBias(context);
  RealOutput values(output);
  const ActivationRange range = activationRange(activation);
  kernel(activations, filterValues.data(), [&](size_t index, size_t channel, float sum) {
    values[index] = range.apply(bias.empty() ? sum : sum + bias[channel]);
  });
  values.store();
}

}  // namespace hearth::ops
