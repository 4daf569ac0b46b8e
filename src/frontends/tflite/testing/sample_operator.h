// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "ops/custom_operator.h"

namespace hearth::tflite {

// The operator of the sample "custom". It reads everything that the file passes to it.
class SampleOperator final : public ops::CustomOperator, public ops::CustomNode {
 public:
  std::string_view name() const override { return "Sample"; }
  int32_t version() const override { return 1; }
  Result<std::shared_ptr<const ops::CustomNode>> makeNode(
      const ops::CustomCall& call) const override {
    read(call.options);
    return std::shared_ptr<const ops::CustomNode>(std::shared_ptr<void>(), this);
  }
  Result<ops::CustomOutputs> describeOutputs(const ops::CustomCall& call) const override {
    ops::CustomOutputs said;
    said.needsValues = call.options.size() % 2 == 1;
    for (const ops::Tensor& input : call.inputs)
      if (input.data != nullptr) read({input.as<const uint8_t>(), input.operand->location.length});
    if (said.needsValues) return said;
    for (const ops::Tensor& output : call.outputs) {
      said.outputs.push_back(*output.operand);
      if (!call.inputs.empty()) said.outputs.back().dimensions = call.inputs[0].dimensions;
    }
    return said;
  }
  Status compute(const ops::CustomCall&) const override { return {}; }

 private:
  static void read(std::span<const uint8_t> bytes) {
    volatile uint8_t sum = 0;
    for (const uint8_t byte : bytes) sum = static_cast<uint8_t>(sum + byte);
  }
};

// Registers the operator unless it is registered already.
inline void registerSampleOperator() {
  static_cast<void>(ops::registerCustomOperator(std::make_unique<SampleOperator>()));
}

}  // namespace hearth::tflite
