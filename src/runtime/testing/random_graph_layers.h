// SPDX-License-Identifier: Apache-2.0
// Layers of random graphs: sums of products with constant weights or another tensor, and pooling.
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "runtime/testing/random_graph_builder.h"

namespace hearth::runtime::random_graph {

// Each add function adds a layer if there is an input for it.
class LayerMaker : protected GraphBuilder {
 protected:
  using GraphBuilder::GraphBuilder;

  // Weights for a layer over `input`, with the greatest sum of their absolute values.
  struct Weights {
    uint32_t filter = 0, bias = 0;
    double sum = 0;
    double greatestBias = 0;
  };
  Weights weightsFor(uint32_t input, const Dimensions& dimensions, size_t outputs,
                     size_t channelDim, bool isHybrid) {
    Weights weights;
    const OperandType inputType = type(input);
    Form form{inputType};
    const bool isPerChannel = (inputType == kInt8 || inputType == kInt16 || isHybrid) && chance(60);
    if (isPerChannel)
      form.type = OperandType::kTensorQuant8SymmPerChannel;
    else if (isHybrid)
      form = {kInt8, 0.01f, 0};
    else if (inputType == kInt8 || inputType == kInt16)
      form = {kInt8, 0.01f, 0};
    else if (inputType == kUint8)
      form = {kUint8, 0.01f, static_cast<int32_t>(number(100, 156))};
    const size_t count = countOf(dimensions);
    weights.filter = addConstant({form.type, form.scale, form.zeroPoint}, dimensions,
                                 randomContent(isPerChannel ? kInt8 : form.type, count));
    if (isPerChannel) {
      std::vector<float> scales(outputs);
      std::ranges::generate(scales, [&] { return real(0.004f, 0.012f); });
      operand(weights.filter).perChannel = {static_cast<uint32_t>(channelDim), scales};
    }
    const bool isQuantized = operand(input).scale > 0;
    Form biasForm{isQuantized ? kInt32 : inputType};
    if (isQuantized && !isPerChannel) biasForm.scale = operand(input).scale * form.scale;
    weights.bias = addConstant(biasForm, {static_cast<uint32_t>(outputs)},
                               randomContent(biasForm.type, outputs));
    weights.greatestBias = isQuantized ? 20.0 * operand(input).scale * 0.012 : 4;
    const ops::RealInput values(tensorOf(weights.filter));
    std::vector<double> sums(outputs);
    size_t inner = 1;
    for (size_t i = channelDim + 1; i < dimensions.size(); ++i) inner *= dimensions[i];
    for (size_t i = 0; i < values.size(); ++i)
      sums[i / inner % outputs] += std::abs(double{values[i]});
    weights.sum = *std::ranges::max_element(sums);
    return weights;
  }
  // The rule for sums of products with these weights. In a hybrid layer, an activation may be
  // quantised one step off when the input is off.
  Rule productRule(uint32_t input, const Weights& weights, bool isHybrid) {
    const Value& value = values_[input];
    Rule rule;
    rule.passedOn = value.error * weights.sum;
    if (isHybrid)
      rule.passedOn += (2 * (value.greatest + value.error) / 255 + value.error) * weights.sum;
    rule.accumulated = value.greatest * weights.sum + weights.greatestBias;
    return rule;
  }
  Form productForm(uint32_t input, const Weights& weights) {
    // Sums of random signs stay far below the sum of the absolute values.
    return formFor(type(input), 0.3 * values_[input].greatest * weights.sum + weights.greatestBias);
  }

  void addConvolution() {
    const auto input =
        pick([&](uint32_t i) { return isReal(type(i)) && isTelling(i) && shape(i).size() == 4; });
    if (!input) return;
    const uint32_t channels = shape(*input)[3];
    const bool isDepthwise = chance(35);
    const bool isHybrid = type(*input) == kFloat && !isDepthwise && chance(25);
    const uint32_t multiplier = number(1, 2);
    const uint32_t outputs = isDepthwise ? channels * multiplier : number(1, 14);
    const uint32_t height = number(1, 3);
    const uint32_t width = number(1, 3);
    const Dimensions dimensions = isDepthwise ? Dimensions{1, height, width, outputs}
                                              : Dimensions{outputs, height, width, channels};
    const Weights weights = weightsFor(*input, dimensions, outputs, isDepthwise ? 3 : 0, isHybrid);
    std::vector<uint32_t> inputs = {*input, weights.filter, weights.bias};
    inputs.push_back(scalar(static_cast<int32_t>(number(1, 2))));  // padding
    inputs.push_back(scalar(static_cast<int32_t>(number(1, 2))));  // strides
    inputs.push_back(scalar(static_cast<int32_t>(number(1, 2))));
    if (isDepthwise) inputs.push_back(scalar(static_cast<int32_t>(multiplier)));
    inputs.push_back(scalar(static_cast<int32_t>(number(0, 3))));
    addResult(isDepthwise ? OperationType::kDepthwiseConv2d : OperationType::kConv2d, inputs,
              productForm(*input, weights), productRule(*input, weights, isHybrid));
  }

  void addVolume() {
    const uint32_t channels = number(1, 5);
    const uint32_t volume =
        addInput(chance(70) ? kFloat : kHalf,
                 {number(1, 2), number(1, 3), number(2, 5), number(2, 5), channels});
    const bool isTransposed = chance(50);
    const uint32_t outputs = number(1, 20);
    Dimensions dimensions = {number(1, 2), number(1, 3), number(1, 3), channels, outputs};
    if (isTransposed) std::swap(dimensions[3], dimensions[4]);
    const Weights weights = weightsFor(volume, dimensions, outputs, isTransposed ? 3 : 4, false);
    const bool isSame = chance(50);
    std::vector<uint32_t> inputs = {volume, weights.filter, weights.bias,
                                    scalar(isSame ? int32_t{1} : int32_t{2})};
    std::vector<int32_t> result = {static_cast<int32_t>(shape(volume)[0])};
    std::vector<int32_t> steps;
    for (int i = 0; i < 6; ++i) steps.push_back(static_cast<int32_t>(number(1, 2)));
    for (size_t i = 0; i < 3; ++i) {
      const auto size = static_cast<int32_t>(shape(volume)[i + 1]);
      const int32_t reach = steps[i + 3] * (static_cast<int32_t>(dimensions[i]) - 1) + 1;
      result.push_back(isSame ? size * steps[i] : (size - 1) * steps[i] + reach);
    }
    result.push_back(static_cast<int32_t>(outputs));
    for (const int32_t step : steps) inputs.push_back(scalar(step));
    inputs.push_back(scalar(static_cast<int32_t>(number(0, 3))));
    if (isTransposed) inputs.push_back(ints(result));
    addResult(isTransposed ? OperationType::kConv3dTranspose : OperationType::kConv3d, inputs,
              productForm(volume, weights), productRule(volume, weights, false));
  }

  void addFullyConnected() {
    const auto input = pick([&](uint32_t i) {
      return isReal(type(i)) && isTelling(i) && shape(i).size() >= 2 && shape(i).back() > 1;
    });
    if (!input) return;
    const uint32_t inputs = shape(*input).back();
    const uint32_t outputs = number(1, 20);
    const bool isHybrid = type(*input) == kFloat && chance(35);
    const Weights weights = weightsFor(*input, {outputs, inputs}, outputs, 0, isHybrid);
    addResult(OperationType::kFullyConnected,
              {*input, weights.filter, weights.bias, scalar(static_cast<int32_t>(number(0, 3)))},
              productForm(*input, weights), productRule(*input, weights, isHybrid));
  }

  void addPooling() {
    const auto input =
        pick([&](uint32_t i) { return isReal(type(i)) && isTelling(i) && shape(i).size() == 4; });
    if (!input) return;
    std::vector<uint32_t> inputs = {*input};
    if (chance(20)) {  // the whole image, without padding
      const Dimensions dimensions = shape(*input);
      for (const uint32_t value : {2u, 1u, 1u, dimensions[2], dimensions[1]})
        inputs.push_back(scalar(static_cast<int32_t>(value)));
    } else {
      inputs.push_back(scalar(static_cast<int32_t>(number(1, 2))));
      for (int i = 0; i < 4; ++i) inputs.push_back(scalar(static_cast<int32_t>(number(1, 3))));
    }
    inputs.push_back(scalar(static_cast<int32_t>(number(0, 3))));
    addResult(chance(50) ? OperationType::kAveragePool2d : OperationType::kMaxPool2d, inputs,
              formOf(*input), {values_[*input].error});
  }

  // The weights are so small that no error grows from step to step.
  void addLstm() {
    const auto input =
        pick([&](uint32_t i) { return type(i) == kFloat && isExact(i) && shape(i).size() == 3; });
    if (!input) return;
    const bool isTimeMajor = chance(50);
    const uint32_t batch = shape(*input)[isTimeMajor ? 1 : 0];
    const uint32_t features = shape(*input)[2];
    const uint32_t units = number(1, 4);
    const auto weights = [&](const Dimensions& dimensions, float most) {
      const size_t count = countOf(dimensions);
      std::vector<uint8_t> bytes(count * sizeof(float));
      for (size_t i = 0; i < count; ++i) put(&bytes, i, real(-most, most));
      return addConstant({kFloat}, dimensions, std::move(bytes));
    };
    const auto omitted = [&] {
      graph::Operand none;
      none.type = kFloat;
      none.lifetime = Lifetime::kNoValue;
      return add(std::move(none), {});
    };
    const bool hasInputGate = chance(60);
    std::vector<uint32_t> inputs = {*input};
    const auto addGates = [&](const Dimensions& dimensions, float most) {
      for (int gate = 0; gate < 4; ++gate)
        inputs.push_back(gate == 0 && !hasInputGate ? omitted() : weights(dimensions, most));
    };
    addGates({units, features}, 0.5f);
    addGates({units, units}, 0.2f);
    const bool hasPeepholes = chance(30);
    for (int gate = 0; gate < 3; ++gate)
      inputs.push_back(hasPeepholes && (gate > 0 || hasInputGate) ? weights({units}, 0.2f)
                                                                  : omitted());
    addGates({units}, 0.5f);
    inputs.push_back(omitted());  // projection
    inputs.push_back(omitted());
    inputs.push_back(weights({batch, units}, 0.5f));  // states
    inputs.push_back(weights({batch, units}, 0.5f));
    inputs.push_back(scalar(int32_t{4}));  // tanh
    inputs.push_back(scalar(chance(50) ? 0.0f : 2.0f));
    inputs.push_back(scalar(0.0f));
    inputs.push_back(scalar(isTimeMajor));
    for (int gate = 0; gate < 4; ++gate) inputs.push_back(omitted());  // normalisation
    addResult(OperationType::kUnidirectionalSequenceLstm, inputs, {kFloat},
              {0, false, values_[*input].greatest * features + 4});
  }

  void addMatmul() {
    const auto left =
        pick([&](uint32_t i) { return isReal(type(i)) && isTelling(i) && shape(i).size() >= 2; });
    if (!left) return;
    const bool isTransposed = chance(50);
    const uint32_t depth = shape(*left).back();
    const uint32_t columns = number(1, 9);
    Dimensions dimensions = shape(*left);
    dimensions[dimensions.size() - 2] = isTransposed ? columns : depth;
    dimensions.back() = isTransposed ? depth : columns;
    const uint32_t right = addInput(type(*left), dimensions);
    const Value& a = values_[*left];
    const Value& b = values_[right];
    Rule rule;
    rule.passedOn = a.error * b.greatest * depth;
    rule.accumulated = a.greatest * b.greatest * depth;
    addResult(OperationType::kBatchMatmul, {*left, right, scalar(false), scalar(isTransposed)},
              formFor(type(*left), 0.5 * rule.accumulated), rule);
  }
};

}  // namespace hearth::runtime::random_graph
