// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/lowering/batch_matmul.h"

#include <vector>

#include "drivers/cpu/kernels/xnn_kernel.h"
#include "drivers/cpu/lowering/attention_chain.h"
#include "drivers/cpu/lowering/declined.h"
#include "ops/batch_matmul.h"

namespace hearth::cpu {
namespace {

// The batch dimensions with ones in front, so that there are `rank` of them.
std::vector<size_t> extended(const graph::Dimensions& batches, size_t rank) {
  std::vector<size_t> dimensions(rank - batches.size(), 1);
  dimensions.insert(dimensions.end(), batches.begin(), batches.end());
  return dimensions;
}

}  // namespace

Result<bool> lowerBatchMatmul(PlanBuilder* builder) {
  HEARTH_ASSIGN(const ops::BatchMatmulParameters p, ops::parseBatchMatmul(builder->context()));
  const graph::Operation& operation = *builder->context().operation;
  if (builder->operand(operation.inputs[0]).type != graph::OperandType::kTensorFloat32)
    return builder->decline(kOnlyFloat32);
  if (p.isLeftTransposed) return builder->decline("its left matrices are transposed");
  HEARTH_ASSIGN(const bool isAttention, addAttentionChain(builder, p));
  if (isAttention) return true;
  const size_t rank = p.outputBatches.size();
  if (rank + 2 > XNN_MAX_TENSOR_DIMS)
    return builder->decline("it has more dimensions than XNNPACK takes");
  const std::vector<size_t> leftBatches = extended(p.leftBatches, rank);
  const std::vector<size_t> rightBatches = extended(p.rightBatches, rank);
  // XNNPACK repeats only the right matrices.
  for (size_t i = 0; i < rank; ++i)
    if (leftBatches[i] == 1 && rightBatches[i] != 1)
      return builder->decline("its left matrices are repeated");
  const ValueId left = builder->read(operation.inputs[0]);
  const ValueId right = builder->read(operation.inputs[1]);
  const ValueId product = builder->write(operation.outputs[0]);
  builder->add("xnnpack", {left, right}, {product}).create =
      [=]() -> Result<std::unique_ptr<Kernel>> {
    xnn_operator_t op = nullptr;
    const xnn_status status = xnn_create_batch_matrix_multiply_nc_f32(
        p.isRightTransposed ? XNN_FLAG_TRANSPOSE_B : 0, &op);
    XnnCalls calls;
    // The kernels for AMD's first Zen processors take the depth in groups of four, and tell what
    // lies beyond it by weights of zero.
    constexpr size_t kMostInGroup = 4;
    calls.needsZeroWorkspace = p.depth % kMostInGroup != 0;
    calls.reshape = [=](xnn_operator_t o, size_t* workspace, size_t* alignment,
                        pthreadpool_t pool) {
      return xnn_reshape_batch_matrix_multiply_nc_f32(o, rank, leftBatches.data(),
                                                      rightBatches.data(), p.rows, p.depth,
                                                      p.columns, workspace, alignment, pool);
    };
    calls.setup = [=](xnn_operator_t o, void* workspace, std::span<void* const> at) {
      return xnn_setup_batch_matrix_multiply_nc_f32(
          o, workspace, static_cast<const float*>(at[left]), static_cast<const float*>(at[right]),
          static_cast<float*>(at[product]));
    };
    return makeXnnKernel("batch_matrix_multiply_nc_f32", status, op, std::move(calls));
  };
  return true;
}

}  // namespace hearth::cpu
