// SPDX-License-Identifier: Apache-2.0
// Custom operations, such as those into which tools of vendors compile a part of a model.
#include "drivers/delegate/operation_writer.h"
#include "ops/custom_operator.h"

namespace hearth::drivers::delegate {
namespace {

using ops::OperationType;
using tflite_abi::Builtin;

// The elements of a constant list of bytes.
std::span<const uint8_t> elementsOf(const ops::Tensor& tensor) {
  if (!tensor.isPresent) return {};
  return {tensor.as<const uint8_t>(), tensor.elementCount()};
}

Status writeCustom(OperationWriter& writer) {
  const std::span<const uint8_t> name = elementsOf(writer.inputTensor(ops::kCustomName));
  const std::span<const uint8_t> options = elementsOf(writer.inputTensor(ops::kCustomOptions));
  HEARTH_ASSIGN(const int32_t version, writer.scalar<int32_t>(ops::kCustomCodeVersion, 1));
  std::vector<int32_t> inputs, outputs;
  for (size_t i = ops::kCustomFirstArgument; i < writer.inputCount(); ++i) {
    HEARTH_ASSIGN(const int32_t input, writer.inputOrNone(i));
    inputs.push_back(input);
  }
  for (size_t i = 0; i < writer.outputCount(); ++i) {
    HEARTH_ASSIGN(const int32_t output, writer.output(i));
    outputs.push_back(output);
  }
  HEARTH_TRY(writer.emit(Builtin::kCustom, std::move(inputs), std::move(outputs)));
  WrittenNode& node = writer.node();
  node.version = version;
  node.customName.assign(name.begin(), name.end());
  node.customOptions.assign(options.begin(), options.end());
  return {};
}

}  // namespace

std::span<const OperationEntry> customOperations() {
  static constexpr OperationEntry kEntries[] = {{OperationType::kCustom, writeCustom}};
  return kEntries;
}

}  // namespace hearth::drivers::delegate
