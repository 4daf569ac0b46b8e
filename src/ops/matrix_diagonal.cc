// SPDX-License-Identifier: Apache-2.0
// MATRIX_DIAG and MATRIX_SET_DIAG of the extension. MATRIX_DIAG: the rows of the data [..., n]
// become the diagonals of [..., n, n]; all other elements are 0. MATRIX_SET_DIAG: the data [...,
// rows, columns] with the diagonals replaced by the second input, [..., min(rows, columns)].
#include <algorithm>
#include <cstring>

#include "ops/operation.h"
#include "ops/registry.h"
#include "ops/tensor_types.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

Status validateDiag(const Signature& signature) {
  HEARTH_TRY(signature.counts(1, 1));
  HEARTH_TRY(signature.inputTensor(0, kMovableTensors, 1, kMaximumRank));
  return signature.outputLike(0, 0);
}

Status validateSetDiag(const Signature& signature) {
  HEARTH_TRY(signature.counts(2, 1));
  HEARTH_TRY(signature.inputTensor(0, kMovableTensors, 2, kMaximumRank));
  HEARTH_TRY(signature.inputTypeLike(1, 0));
  HEARTH_TRY(signature.sameQuantization(0, 1));
  return signature.outputLike(0, 0);
}

Status prepareDiag(OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 1, 1));
  HEARTH_TRY(requireRank(context, 0, 1, kMaximumRank));
  Dimensions dimensions = context.inputs[0].dimensions;
  dimensions.push_back(dimensions.back());
  return context.setOutputDimensions(0, std::move(dimensions));
}

Status prepareSetDiag(OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 2, 1));
  HEARTH_TRY(requireRank(context, 0, 2, kMaximumRank));
  const Dimensions& data = context.inputs[0].dimensions;
  Dimensions expected(data.begin(), data.end() - 1);
  expected.back() = std::min(expected.back(), data.back());
  HEARTH_TRY(requireShape(context, 1, expected));
  return context.setOutputDimensions(0, data);
}

// Copies rows of `diagonals` to the diagonals of the output's matrices.
void writeDiagonals(const Tensor& diagonals, const Tensor& output) {
  const size_t size = graph::elementSize(output.type());
  const size_t rows = output.dimensions[output.rank() - 2];
  const size_t columns = output.dimensions[output.rank() - 1];
  const size_t length = std::min(rows, columns);
  if (output.elementCount() == 0) return;
  const uint64_t matrices = output.elementCount() / (rows * columns);
  const auto* from = diagonals.as<uint8_t>();
  for (uint64_t m = 0; m < matrices; ++m) {
    uint8_t* matrix = output.as<uint8_t>() + m * rows * columns * size;
    for (size_t i = 0; i < length; ++i, from += size)
      std::memcpy(matrix + i * (columns + 1) * size, from, size);
  }
}

Status executeDiag(OperationContext& context) {
  const Tensor& output = context.outputs[0];
  const size_t size = graph::elementSize(output.type());
  const uint64_t count = output.elementCount();
  // The stored form of 0 in a quantised type.
  const auto zero = static_cast<uint64_t>(static_cast<int64_t>(output.operand->zeroPoint));
  if (size == 1) {
    if (count > 0) std::memset(output.data, static_cast<int>(zero & 0xff), count);
  } else if (size == 2) {
    std::fill_n(output.as<uint16_t>(), count, static_cast<uint16_t>(zero));
  } else if (count > 0) {
    std::memset(output.data, 0, count * size);
  }
  writeDiagonals(context.inputs[0], output);
  return {};
}

Status executeSetDiag(OperationContext& context) {
  const Tensor& output = context.outputs[0];
  const uint64_t bytes = output.elementCount() * graph::elementSize(output.type());
  if (bytes > 0) std::memmove(output.data, context.inputs[0].data, bytes);
  writeDiagonals(context.inputs[1], output);
  return {};
}

}  // namespace

const OperationDefinition kMatrixDiagOperation = {OperationType::kMatrixDiag, validateDiag,
                                                  prepareDiag, executeDiag};
const OperationDefinition kMatrixSetDiagOperation = {OperationType::kMatrixSetDiag, validateSetDiag,
                                                     prepareSetDiag, executeSetDiag};

}  // namespace hearth::ops
