// SPDX-License-Identifier: Apache-2.0
// SPACE_TO_BATCH_ND and its inverse BATCH_TO_SPACE_ND.
#include "ops/space_to_batch.h"

#include <algorithm>
#include <array>

#include "ops/output_shape.h"
#include "ops/registry.h"
#include "ops/strided_copy.h"
#include "ops/tensor_types.h"
#include "ops/validation.h"
#include "threads/parallel_ranges.h"

namespace hearth::ops {
namespace {

// Sizes and strides in the order batch, height, width, channel, whatever the layout.
struct View {
  std::array<int64_t, 4> size;
  std::array<int64_t, 4> stride;
};

View viewOf(const Dimensions& dimensions, bool isNchw) {
  const std::vector<int64_t> strides = rowMajorStrides(dimensions);
  if (dimensions.size() == 3)
    return {{dimensions[0], dimensions[1], 1, dimensions[2]},
            {strides[0], strides[1], strides[1], strides[2]}};
  const std::array<size_t, 4> order =
      isNchw ? std::array<size_t, 4>{0, 2, 3, 1} : std::array<size_t, 4>{0, 1, 2, 3};
  View view;
  for (size_t i = 0; i < 4; ++i) {
    view.size[i] = dimensions[order[i]];
    view.stride[i] = strides[order[i]];
  }
  return view;
}

Status validate(const Signature& signature) {
  const size_t fixed = signature.type() == OperationType::kSpaceToBatchNd ? 3 : 2;
  HEARTH_TRY(signature.counts(fixed, fixed + 1, 1));
  HEARTH_TRY(signature.inputTensor(0, kMovableTensors, 3, 4));
  HEARTH_TRY(signature.inputTensor(1, kIndexTensors, 1, 1));
  if (fixed == 3) {
    HEARTH_TRY(signature.inputTensor(2, kIndexTensors, 2, 2));
  }
  HEARTH_TRY(signature.optionalInputType(fixed, OperandType::kBool));
  return signature.outputLike(0, 0);
}

// The output positions whose input position `i * block + phase - padding` lies in [0, size).
std::pair<int64_t, int64_t> coveredRange(int64_t outputs, int64_t size, int64_t block,
                                         int64_t phase, int64_t padding) {
  const auto firstAtLeast = [&](int64_t position) {
    const int64_t distance = position + padding - phase;
    return distance <= 0 ? int64_t{0} : (distance + block - 1) / block;
  };
  return {std::min(outputs, firstAtLeast(0)), std::min(outputs, firstAtLeast(size))};
}

// Copies lines of pixels. Each is read once, in the input's order.
void copyLines(const SpaceToBatchParameters& parameters, const View& from, const View& to,
               size_t element, const uint8_t* source, uint8_t* target, threads::ThreadPool* pool) {
  const int64_t height = from.size[1];
  const size_t bytes = static_cast<size_t>(from.size[3]) * element;
  const auto step = static_cast<int64_t>(element);
  const auto [blockHeight, blockWidth] = parameters.block;
  const auto copyLine = [&](int64_t batch, int64_t y) {
    const int64_t row = y + parameters.before[0];
    for (int64_t s = 0; s < blockWidth; ++s) {
      const auto [begin, end] =
          coveredRange(to.size[2], from.size[2], blockWidth, s, parameters.before[1]);
      const int64_t image = (row % blockHeight * blockWidth + s) * from.size[0] + batch;
      const int64_t x = begin * blockWidth + s - parameters.before[1];
      const uint8_t* read =
          source + (batch * from.stride[0] + y * from.stride[1] + x * from.stride[2]) * step;
      uint8_t* write =
          target +
          (image * to.stride[0] + row / blockHeight * to.stride[1] + begin * to.stride[2]) * step;
      copyPieces(bytes, static_cast<uint64_t>(end - begin), read,
                 static_cast<uint64_t>(blockWidth * from.stride[2] * step), write, bytes);
    }
  };
  const auto lineBytes = static_cast<uint64_t>(from.stride[1]) * element;
  threads::forRanges(pool, static_cast<uint64_t>(from.size[0] * height),
                     threads::grainOf(lineBytes), [&](uint64_t begin, uint64_t end) {
                       for (auto line = static_cast<int64_t>(begin);
                            line < static_cast<int64_t>(end); ++line)
                         copyLine(line / height, line % height);
                     });
}

Status executeSpaceToBatch(OperationContext& context) {
  HEARTH_ASSIGN(const SpaceToBatchParameters parameters, parseSpaceToBatch(context));
  const Tensor& input = context.inputs[0];
  const Tensor& output = context.outputs[0];
  if (output.elementCount() == 0) return {};
  const View from = viewOf(input.dimensions, parameters.isNchw);
  const View to = viewOf(parameters.dimensions, parameters.isNchw);
  const size_t element = graph::elementSize(input.type());
  if (output.elementCount() != input.elementCount()) {
    const int64_t zero = graph::isQuantized(input.type()) ? input.operand->zeroPoint : 0;
    fillElements(element, &zero, output.data, output.elementCount());
  }
  const auto [blockHeight, blockWidth] = parameters.block;
  if (from.stride[3] == 1) {
    copyLines(parameters, from, to, element, input.as<uint8_t>(), output.as<uint8_t>(),
              context.threadPool);
    return {};
  }
  for (int64_t r = 0; r < blockHeight; ++r) {
    const auto [yBegin, yEnd] =
        coveredRange(to.size[1], from.size[1], blockHeight, r, parameters.before[0]);
    for (int64_t s = 0; s < blockWidth; ++s) {
      const auto [xBegin, xEnd] =
          coveredRange(to.size[2], from.size[2], blockWidth, s, parameters.before[1]);
      if (yBegin >= yEnd || xBegin >= xEnd) continue;
      const int64_t start = (yBegin * blockHeight + r - parameters.before[0]) * from.stride[1] +
                            (xBegin * blockWidth + s - parameters.before[1]) * from.stride[2];
      const int64_t target = (r * blockWidth + s) * from.size[0] * to.stride[0] +
                             yBegin * to.stride[1] + xBegin * to.stride[2];
      copyStrided(element,
                  {{from.size[0], from.stride[0], to.stride[0]},
                   {yEnd - yBegin, from.stride[1] * blockHeight, to.stride[1]},
                   {xEnd - xBegin, from.stride[2] * blockWidth, to.stride[2]},
                   {from.size[3], from.stride[3], to.stride[3]}},
                  input.as<uint8_t>() + static_cast<size_t>(start) * element,
                  output.as<uint8_t>() + static_cast<size_t>(target) * element, context.threadPool);
    }
  }
  return {};
}

Status executeBatchToSpace(OperationContext& context) {
  HEARTH_ASSIGN(const SpaceToBatchParameters parameters, parseSpaceToBatch(context));
  const Tensor& input = context.inputs[0];
  const View from = viewOf(input.dimensions, parameters.isNchw);
  const View to = viewOf(parameters.dimensions, parameters.isNchw);
  const int64_t blockHeight = parameters.block[0];
  const int64_t blockWidth = parameters.block[1];
  copyStrided(graph::elementSize(input.type()),
              {{blockHeight, from.stride[0] * blockWidth * to.size[0], to.stride[1]},
               {blockWidth, from.stride[0] * to.size[0], to.stride[2]},
               {to.size[0], from.stride[0], to.stride[0]},
               {from.size[1], from.stride[1], to.stride[1] * blockHeight},
               {from.size[2], from.stride[2], to.stride[2] * blockWidth},
               {from.size[3], from.stride[3], to.stride[3]}},
              input.data, context.outputs[0].data);
  return {};
}

Status readBlock(const OperationContext& context, size_t count,
                 SpaceToBatchParameters* parameters) {
  HEARTH_ASSIGN(const std::vector<int64_t> sizes, context.intVector(1));
  if (sizes.size() != count)
    return fail(ErrorCode::kBadData, "{} has {} block sizes, it must have {}.", context.describe(),
                sizes.size(), count);
  for (size_t i = 0; i < count; ++i) {
    if (sizes[i] < 1 || sizes[i] > INT32_MAX)
      return fail(ErrorCode::kBadData, "Block size {} of {} is {}, it must be at least 1.", i,
                  context.describe(), sizes[i]);
    parameters->block[i] = static_cast<uint32_t>(sizes[i]);
  }
  return {};
}

Status readPaddings(const OperationContext& context, size_t count,
                    SpaceToBatchParameters* parameters) {
  HEARTH_ASSIGN(const std::vector<int64_t> values, context.intVector(2));
  if (values.size() != 2 * count)
    return fail(ErrorCode::kBadData, "{} has {} paddings, it must have {}.", context.describe(),
                values.size(), 2 * count);
  for (size_t i = 0; i < count; ++i) {
    HEARTH_ASSIGN(parameters->before[i], toDimension(context, values[2 * i]));
    HEARTH_ASSIGN(parameters->after[i], toDimension(context, values[2 * i + 1]));
  }
  return {};
}

}  // namespace

Result<SpaceToBatchParameters> parseSpaceToBatch(const OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 2, 1));
  const bool toBatch = context.operation->type == OperationType::kSpaceToBatchNd;
  const Dimensions& input = context.inputs[0].dimensions;
  if (input.size() != 3 && input.size() != 4)
    return fail(ErrorCode::kBadData, "The input of {} has rank {}, it must be 4 (or 3).",
                context.describe(), input.size());
  SpaceToBatchParameters parameters;
  const size_t spatial = input.size() - 2;
  HEARTH_TRY(readBlock(context, spatial, &parameters));
  if (toBatch) HEARTH_TRY(readPaddings(context, spatial, &parameters));
  HEARTH_ASSIGN(const bool isNchw, context.scalar<bool>(toBatch ? 3 : 2, false));
  parameters.isNchw = isNchw && input.size() == 4;
  parameters.dimensions = input;
  const int64_t area = int64_t{parameters.block[0]} * parameters.block[1];
  if (toBatch) {
    int64_t batches;
    if (__builtin_mul_overflow(area, int64_t{input[0]}, &batches)) batches = -1;
    HEARTH_ASSIGN(parameters.dimensions[0], toDimension(context, batches));
  } else {
    if (input[0] % area != 0)
      return fail(ErrorCode::kBadData, "{} cannot divide {} batches by {}.", context.describe(),
                  input[0], area);
    parameters.dimensions[0] = static_cast<uint32_t>(input[0] / area);
  }
  for (size_t i = 0; i < spatial; ++i) {
    const size_t d = (parameters.isNchw ? 2 : 1) + i;
    const int64_t padded = int64_t{input[d]} + parameters.before[i] + parameters.after[i];
    if (toBatch && padded % parameters.block[i] != 0)
      return fail(ErrorCode::kBadData, "{} cannot divide the padded dimension {} of size {} by {}.",
                  context.describe(), d, padded, parameters.block[i]);
    HEARTH_ASSIGN(parameters.dimensions[d],
                  toDimension(context, toBatch ? padded / parameters.block[i]
                                               : padded * parameters.block[i]));
  }
  return parameters;
}

const OperationDefinition kSpaceToBatchNdOperation = {OperationType::kSpaceToBatchNd, validate,
                                                      prepareParsedShape<parseSpaceToBatch>,
                                                      executeSpaceToBatch};
const OperationDefinition kBatchToSpaceNdOperation = {OperationType::kBatchToSpaceNd, validate,
                                                      prepareParsedShape<parseSpaceToBatch>,
                                                      executeBatchToSpace};

}  // namespace hearth::ops
