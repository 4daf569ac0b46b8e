// SPDX-License-Identifier: Apache-2.0
// Resizing of images, and moving blocks of space to other dimensions and back.
#include <limits>

#include "frontends/tflite/translators/translators.h"

namespace hearth::tflite {
namespace {

using graph::OperationType;
using schema::BuiltinOperator;

template <typename Options>
Status translateResize(OperatorView& view, OperationType type) {
  const auto& options = view.options<Options>();
  HEARTH_ASSIGN(const uint32_t input, view.input(0));
  HEARTH_ASSIGN(const std::vector<int64_t> size, view.constantInts(1));
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
  if (size.size() != 2 || size[0] <= 0 || size[1] <= 0 || size[0] > kMax || size[1] > kMax)
    return fail(ErrorCode::kBadData, "Its size must be two positive numbers.");
  HEARTH_ASSIGN(const uint32_t width, view.scalar(static_cast<int32_t>(size[1])));
  HEARTH_ASSIGN(const uint32_t height, view.scalar(static_cast<int32_t>(size[0])));
  HEARTH_ASSIGN(const uint32_t layout, view.scalar(false));
  std::vector<uint32_t> arguments = {input, width, height, layout};
  if (options.align_corners() || options.half_pixel_centers()) {
    HEARTH_ASSIGN(const uint32_t alignCorners, view.scalar(options.align_corners()));
    HEARTH_ASSIGN(const uint32_t halfPixel, view.scalar(options.half_pixel_centers()));
    arguments.insert(arguments.end(), {alignCorners, halfPixel});
  }
  return view.emit(type, std::move(arguments));
}

template <typename Options>
Status translateDepthSpace(OperatorView& view, OperationType type) {
  HEARTH_ASSIGN(const uint32_t input, view.input(0));
  HEARTH_ASSIGN(const uint32_t block, view.scalar(view.options<Options>().block_size()));
  return view.emit(type, {input, block});
}

Status translateSpaceToBatch(OperatorView& view, OperationType type) {
  HEARTH_ASSIGN(const uint32_t input, view.input(0));
  HEARTH_ASSIGN(const uint32_t blocks, view.intTensorInput(1));
  HEARTH_ASSIGN(const uint32_t paddings, view.intTensorInput(2));
  return view.emit(type, {input, blocks, paddings});
}

Result<int32_t> checked(int64_t value) {
  if (value < 0 || value > std::numeric_limits<int32_t>::max())
    return fail(ErrorCode::kBadData, "Its blocks and crops give a size of {}.", value);
  return static_cast<int32_t>(value);
}

// NNAPI's BATCH_TO_SPACE_ND cannot crop, so a SLICE follows it.
Status translateBatchToSpace(OperatorView& view, OperationType type) {
  HEARTH_ASSIGN(const uint32_t input, view.input(0));
  HEARTH_ASSIGN(const uint32_t blocks, view.intTensorInput(1));
  HEARTH_ASSIGN(const std::vector<int64_t> crops, view.constantInts(2));
  bool crop = false;
  for (const int64_t value : crops) crop = crop || value != 0;
  if (!crop) return view.emit(type, {input, blocks});

  HEARTH_ASSIGN(const std::vector<int64_t> sizes, view.constantInts(1));
  const graph::Operand source = view.operand(input);
  if (!graph::isFullySpecified(source) || source.dimensions.size() < sizes.size() + 1 ||
      crops.size() != 2 * sizes.size())
    return fail(ErrorCode::kUnsupported,
                "It has {} blocks and {} crops for {}, which is not supported.", sizes.size(),
                crops.size(), graph::describe(source));
  HEARTH_ASSIGN(const uint32_t target, view.output(0));
  graph::Operand whole = view.operand(target);
  whole.name.clear();
  whole.dimensions = source.dimensions;
  std::vector<int32_t> begin(source.dimensions.size(), 0);
  std::vector<int32_t> size(source.dimensions.size(), -1);
  int64_t batch = source.dimensions[0];
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] <= 0 || batch % sizes[i] != 0)
      return fail(ErrorCode::kBadData, "Its block size {} does not divide the batch {}.", sizes[i],
                  batch);
    batch /= sizes[i];
    int64_t grown;
    if (__builtin_mul_overflow(static_cast<int64_t>(source.dimensions[i + 1]), sizes[i], &grown))
      return fail(ErrorCode::kBadData, "Its block size is {}.", sizes[i]);
    HEARTH_ASSIGN(const int32_t full, checked(grown));
    HEARTH_ASSIGN(begin[i + 1], checked(crops[2 * i]));
    HEARTH_ASSIGN(const int32_t end, checked(crops[2 * i + 1]));
    HEARTH_ASSIGN(size[i + 1], checked(int64_t{full} - begin[i + 1] - end));
    whole.dimensions[i + 1] = static_cast<uint32_t>(full);
  }
  whole.dimensions[0] = static_cast<uint32_t>(batch);
  HEARTH_ASSIGN(const uint32_t middle, view.builder().addOperand(std::move(whole)));
  HEARTH_ASSIGN(const uint32_t beginOperand, view.builder().intTensor(begin));
  HEARTH_ASSIGN(const uint32_t sizeOperand, view.builder().intTensor(size));
  HEARTH_TRY(view.emit(type, {input, blocks}, {middle}));
  return view.emit(OperationType::kSlice, {middle, beginOperand, sizeOperand}, {target});
}

constexpr TranslatorEntry kTranslators[] = {
    {BuiltinOperator::RESIZE_BILINEAR, translateResize<schema::ResizeBilinearOptions>,
     OperationType::kResizeBilinear},
    {BuiltinOperator::RESIZE_NEAREST_NEIGHBOR,
     translateResize<schema::ResizeNearestNeighborOptions>, OperationType::kResizeNearestNeighbor},
    {BuiltinOperator::DEPTH_TO_SPACE, translateDepthSpace<schema::DepthToSpaceOptions>,
     OperationType::kDepthToSpace},
    {BuiltinOperator::SPACE_TO_DEPTH, translateDepthSpace<schema::SpaceToDepthOptions>,
     OperationType::kSpaceToDepth},
    {BuiltinOperator::SPACE_TO_BATCH_ND, translateSpaceToBatch, OperationType::kSpaceToBatchNd},
    {BuiltinOperator::BATCH_TO_SPACE_ND, translateBatchToSpace, OperationType::kBatchToSpaceNd},
};

}  // namespace

std::span<const TranslatorEntry> resizeTranslators() {
  return kTranslators;
}

}  // namespace hearth::tflite
