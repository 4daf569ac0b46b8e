// SPDX-License-Identifier: Apache-2.0
#include "ipc/private_constants.h"

#include <cstddef>
#include <cstdint>

namespace hearth::ipc {
namespace {

constexpr uint64_t kMostBytes = uint64_t{64} << 20;
constexpr size_t kAlignment = 16;

// Quantised numbers and floats of tensors; a wrong one gives a wrong result and nothing worse.
bool isOnlyComputedWith(graph::OperandType type) {
  switch (type) {
    case graph::OperandType::kTensorFloat32:
    case graph::OperandType::kTensorFloat16:
    case graph::OperandType::kTensorQuant8Asymm:
    case graph::OperandType::kTensorQuant8AsymmSigned:
    case graph::OperandType::kTensorQuant8Symm:
    case graph::OperandType::kTensorQuant8SymmPerChannel:
    case graph::OperandType::kTensorQuant16Symm:
    case graph::OperandType::kTensorQuant16Asymm:
    case graph::OperandType::kTensorInt4:
      return true;
    default:
      return false;
  }
}

}  // namespace

Status makeConstantsPrivate(graph::Model* model) {
  for (graph::Subgraph& subgraph : model->subgraphs)
    for (graph::Operand& operand : subgraph.operands) {
      if (operand.lifetime != graph::Lifetime::kConstantReference ||
          isOnlyComputedWith(operand.type))
        continue;
      const uint8_t* const data = model->constantData(operand);
      std::vector<uint8_t>& bytes = model->constantBytes;
      const size_t offset = (bytes.size() + kAlignment - 1) / kAlignment * kAlignment;
      if (operand.location.length > kMostBytes || offset > kMostBytes - operand.location.length)
        return fail(ErrorCode::kUnsupported,
                    "The constants of a model that a shared host copies have more than {} bytes.",
                    kMostBytes);
      bytes.resize(offset);
      bytes.insert(bytes.end(), data, data + operand.location.length);
      operand.lifetime = graph::Lifetime::kConstantCopy;
      operand.location = {0, offset, operand.location.length};
    }
  return {};
}

}  // namespace hearth::ipc
