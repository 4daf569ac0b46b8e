// SPDX-License-Identifier: Apache-2.0
// Moves between the space of images and their channels or batches.
#include <algorithm>
#include <array>
#include <utility>

#include "drivers/vulkan/lowering/copies.h"
#include "drivers/vulkan/lowering/lowering.h"
#include "ops/padding.h"
#include "ops/space_to_batch.h"
#include "ops/space_to_depth.h"

namespace hearth::vulkan {
namespace {

// More parts of a padded image than this are left to other devices: each is a copy of its own.
constexpr uint32_t kMostParts = 64;

int64_t stepOf(size_t elements) {
  return static_cast<int64_t>(elements);
}

// The positions along one side of a small image whose element, at one place of each block, lies
// inside the large one.
struct Inside {
  int64_t first = 0;
  int64_t count = 0;

  Inside(int64_t block, int64_t place, int64_t before, int64_t size, int64_t positions) {
    const int64_t outside = std::max<int64_t>(before - place, 0);
    first = (outside + block - 1) / block;
    const int64_t end = std::min((size + before - place + block - 1) / block, positions);
    count = std::max<int64_t>(end - first, 0);
  }
};

// SPACE_TO_BATCH_ND of a padded image: zeros, and one copy for each place of a block.
Status addPaddedParts(LoweringContext& context, const ops::SpaceToBatchParameters& p,
                      const ops::ImageShape& large, const ops::ImageShape& small) {
  if (p.block[0] * uint64_t{p.block[1]} > kMostParts)
    return fail(ErrorCode::kUnsupported,
                "{} has blocks of {} x {} of a padded image, too many for "
                "the GPU driver.",
                context.operation().describe(), p.block[0], p.block[1]);
  const graph::Operand& operand = *context.input(0).operand;
  const size_t bytes = graph::elementSize(operand);
  const uint8_t zero =
      graph::isQuantized(operand.type) && bytes == 1 ? static_cast<uint8_t>(operand.zeroPoint) : 0;
  HEARTH_TRY(addFill(context, std::vector<uint8_t>(bytes, zero)));
  const ops::ImageLayout from(large, p.isNchw);
  const ops::ImageLayout to(small, p.isNchw);
  for (uint32_t dy = 0; dy < p.block[0]; ++dy)
    for (uint32_t dx = 0; dx < p.block[1]; ++dx) {
      const Inside rows(p.block[0], dy, p.before[0], large.height, small.height);
      const Inside columns(p.block[1], dx, p.before[1], large.width, small.width);
      if (rows.count == 0 || columns.count == 0) continue;
      Copy copy{context.inputTensor(0), context.outputTensor(0)};
      copy.loops = {{large.batches, stepOf(from.batchStride), stepOf(to.batchStride)},
                    {static_cast<uint32_t>(rows.count), p.block[0] * stepOf(from.rowStride),
                     stepOf(to.rowStride)},
                    {static_cast<uint32_t>(columns.count), p.block[1] * stepOf(from.columnStride),
                     stepOf(to.columnStride)},
                    {large.channels, stepOf(from.channelStride), stepOf(to.channelStride)}};
      const int64_t row = rows.first * p.block[0] + dy - p.before[0];
      const int64_t column = columns.first * p.block[1] + dx - p.before[1];
      copy.inputFirst = row * stepOf(from.rowStride) + column * stepOf(from.columnStride);
      const size_t part = size_t{dy} * p.block[1] + dx;
      copy.outputFirst = stepOf(part * large.batches * to.batchStride) +
                         rows.first * stepOf(to.rowStride) +
                         columns.first * stepOf(to.columnStride);
      HEARTH_TRY(addCopy(context, bytes, std::move(copy)));
    }
  return {};
}

}  // namespace

// Blocks of the large image are channels of the small one, at the place of the block.
Status lowerSpaceToDepth(LoweringContext& context) {
  HEARTH_ASSIGN(const ops::SpaceToDepthParameters p, ops::parseSpaceToDepth(context.operation()));
  const bool isToDepth = context.operation().operation->type == ops::OperationType::kSpaceToDepth;
  const auto input = ops::ImageShape::of(context.input(0).dimensions, p.isNchw);
  const auto output = ops::ImageShape::of(p.dimensions, p.isNchw);
  const ops::ImageShape& small = isToDepth ? output : input;
  const ops::ImageLayout space(isToDepth ? input : output, p.isNchw);
  const ops::ImageLayout depth(small, p.isNchw);
  const uint32_t channels = (isToDepth ? input : output).channels;
  Copy copy{context.inputTensor(0), context.outputTensor(0)};
  const auto add = [&](uint32_t size, size_t spaceStep, size_t depthStep) {
    const auto first = static_cast<int64_t>(isToDepth ? spaceStep : depthStep);
    const auto second = static_cast<int64_t>(isToDepth ? depthStep : spaceStep);
    copy.loops.push_back({size, first, second});
  };
  add(small.batches, space.batchStride, depth.batchStride);
  add(small.height, p.blockSize * space.rowStride, depth.rowStride);
  add(p.blockSize, space.rowStride, size_t{p.blockSize} * channels * depth.channelStride);
  add(small.width, p.blockSize * space.columnStride, depth.columnStride);
  add(p.blockSize, space.columnStride, channels * depth.channelStride);
  add(channels, space.channelStride, depth.channelStride);
  return addCopy(context, graph::elementSize(*context.input(0).operand), std::move(copy));
}

// The places of a block are batches of the small image, in their order.
Status lowerSpaceToBatch(LoweringContext& context) {
  HEARTH_ASSIGN(const ops::SpaceToBatchParameters p, ops::parseSpaceToBatch(context.operation()));
  if (context.input(0).rank() != 4)
    return fail(ErrorCode::kUnsupported, "The GPU driver has no {} of {} dimensions.",
                graph::nameOf(context.operation().operation->type), context.input(0).rank());
  const bool isToBatch = context.operation().operation->type == ops::OperationType::kSpaceToBatchNd;
  const auto input = ops::ImageShape::of(context.input(0).dimensions, p.isNchw);
  const auto output = ops::ImageShape::of(p.dimensions, p.isNchw);
  const ops::ImageShape& large = isToBatch ? input : output;
  const ops::ImageShape& small = isToBatch ? output : input;
  const bool isPadded = p.before != std::array<uint32_t, 2>{} || p.after != p.before;
  if (isToBatch && isPadded) return addPaddedParts(context, p, large, small);
  const ops::ImageLayout space(large, p.isNchw);
  const ops::ImageLayout parts(small, p.isNchw);
  Copy copy{context.inputTensor(0), context.outputTensor(0)};
  const auto add = [&](uint32_t size, size_t spaceStep, size_t partStep) {
    copy.loops.push_back(
        {size, stepOf(isToBatch ? spaceStep : partStep), stepOf(isToBatch ? partStep : spaceStep)});
  };
  const size_t column = large.batches * parts.batchStride;  // from one place of a block to the next
  add(large.batches, space.batchStride, parts.batchStride);
  add(small.height, p.block[0] * space.rowStride, parts.rowStride);
  add(p.block[0], space.rowStride, p.block[1] * column);
  add(small.width, p.block[1] * space.columnStride, parts.columnStride);
  add(p.block[1], space.columnStride, column);
  add(large.channels, space.channelStride, parts.channelStride);
  return addCopy(context, graph::elementSize(*context.input(0).operand), std::move(copy));
}

}  // namespace hearth::vulkan
