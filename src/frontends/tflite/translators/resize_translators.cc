// SPDX-License-Identifier: Apache-2.0
// Resizing of images, and moving blocks of space to other dimensions and back.
#include <limits>

#include "frontends/tflite/translators/translators.h"

namespace hearth::tflite {
namespace {

using graph::OperationType;
using schema::BuiltinOperator;

struct Size {
  uint32_t height;
  uint32_t width;
};

// Constants become NNAPI's scalars, sizes known only at run time one tensor for each side.
Result<Size> readSize(OperatorView& view) {
  HEARTH_ASSIGN(const uint32_t sizes, view.intTensorInput(1));
  Size size;
  if (!view.operand(sizes).isConstant()) {
    constexpr int32_t kOne[] = {1};
    HEARTH_ASSIGN(const uint32_t one, view.builder().intTensor(kOne));
    for (int32_t i = 0; i < 2; ++i) {
      HEARTH_ASSIGN(const uint32_t side, view.builder().temporaryLike(sizes));
      view.builder().operand(side).dimensions = {1};
      HEARTH_ASSIGN(const uint32_t begin, view.builder().intTensor({&i, 1}));
      HEARTH_TRY(view.emit(OperationType::kSlice, {sizes, begin, one}, {side}));
      (i == 0 ? size.height : size.width) = side;
    }
    return size;
  }
  HEARTH_ASSIGN(const std::vector<int64_t> values, view.constantInts(1));
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
  if (values.size() != 2 || values[0] <= 0 || values[1] <= 0 || values[0] > kMax ||
      values[1] > kMax)
    return fail(ErrorCode::kBadData, "Its size must be two positive numbers.");
  HEARTH_ASSIGN(size.height, view.scalar(static_cast<int32_t>(values[0])));
  HEARTH_ASSIGN(size.width, view.scalar(static_cast<int32_t>(values[1])));
  return size;
}

template <typename Options>
Status translateResize(OperatorView& view, OperationType type) {
  const auto& options = view.options<Options>();
  HEARTH_ASSIGN(const uint32_t input, view.input(0));
  HEARTH_ASSIGN(const Size size, readSize(view));
  HEARTH_ASSIGN(const uint32_t layout, view.scalar(false));
  std::vector<uint32_t> arguments = {input, size.width, size.height, layout};
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

// One of the two columns of the crops as a list with an element for each dimension of the data.
Result<uint32_t> cropColumn(OperatorView& view, uint32_t crops, int32_t column, uint32_t rank) {
  const int32_t spatial = static_cast<int32_t>(rank) - 2;
  const int32_t begins[] = {0, column};
  const int32_t sizes[] = {spatial, 1};
  const int32_t around[] = {1, 1};
  HEARTH_ASSIGN(const uint32_t begin, view.builder().intTensor(begins));
  HEARTH_ASSIGN(const uint32_t size, view.builder().intTensor(sizes));
  HEARTH_ASSIGN(const uint32_t shape, view.builder().intTensor({&spatial, 1}));
  graph::Operand paddingOperand;
  paddingOperand.type = graph::OperandType::kTensorInt32;
  paddingOperand.dimensions = {1, 2};
  HEARTH_ASSIGN(
      const uint32_t padding,
      view.builder().constantTensor(std::move(paddingOperand),
                                    {reinterpret_cast<const uint8_t*>(around), sizeof(around)}));
  uint32_t steps[3];
  const graph::Dimensions shapes[] = {
      {static_cast<uint32_t>(spatial), 1}, {static_cast<uint32_t>(spatial)}, {rank}};
  for (size_t i = 0; i < 3; ++i) {
    graph::Operand step;
    step.type = graph::OperandType::kTensorInt32;
    step.dimensions = shapes[i];
    HEARTH_ASSIGN(steps[i], view.builder().addOperand(std::move(step)));
  }
  HEARTH_TRY(view.emit(OperationType::kSlice, {crops, begin, size}, {steps[0]}));
  HEARTH_TRY(view.emit(OperationType::kReshape, {steps[0], shape}, {steps[1]}));
  HEARTH_TRY(view.emit(OperationType::kPad, {steps[1], padding}, {steps[2]}));
  return steps[2];
}

// With a shape, blocks or crops that are known only at run time, a STRIDED_SLICE crops from the
// first column of the crops to the shape less the second.
Status translateOpenBatchToSpace(OperatorView& view, uint32_t input, uint32_t blocks,
                                 uint32_t crops) {
  HEARTH_ASSIGN(const uint32_t target, view.output(0));
  const auto rank = static_cast<uint32_t>(view.operand(input).dimensions.size());
  if (rank < 3)
    return fail(ErrorCode::kUnsupported, "Its input {} must have a rank from 3 on.",
                graph::describe(view.operand(input)));
  HEARTH_ASSIGN(const uint32_t middle, view.builder().temporaryLike(target));
  view.builder().operand(middle).dimensions.assign(rank, 0);
  HEARTH_TRY(view.emit(OperationType::kBatchToSpaceNd, {input, blocks}, {middle}));
  HEARTH_ASSIGN(const uint32_t begin, cropColumn(view, crops, 0, rank));
  HEARTH_ASSIGN(const uint32_t removed, cropColumn(view, crops, 1, rank));
  HEARTH_ASSIGN(const uint32_t shape, view.builder().temporaryLike(removed));
  HEARTH_ASSIGN(const uint32_t end, view.builder().temporaryLike(removed));
  HEARTH_ASSIGN(const uint32_t zero, view.scalar(int32_t{0}));
  HEARTH_ASSIGN(const uint32_t strides, view.builder().intTensor(std::vector<int32_t>(rank, 1)));
  HEARTH_TRY(view.emit(OperationType::kShape, {middle}, {shape}));
  HEARTH_TRY(view.emit(OperationType::kSub, {shape, removed, zero}, {end}));
  return view.emit(OperationType::kStridedSlice, {middle, begin, end, strides, zero, zero, zero},
                   {target});
}

// NNAPI's BATCH_TO_SPACE_ND cannot crop, so a SLICE follows it.
Status translateBatchToSpace(OperatorView& view, OperationType type) {
  HEARTH_ASSIGN(const uint32_t input, view.input(0));
  HEARTH_ASSIGN(const uint32_t blocks, view.intTensorInput(1));
  HEARTH_ASSIGN(const uint32_t cropOperand, view.intTensorInput(2));
  if (!view.operand(cropOperand).isConstant() || view.builder().model().hasOpenShapes())
    return translateOpenBatchToSpace(view, input, blocks, cropOperand);
  HEARTH_ASSIGN(const std::vector<int64_t> crops, view.constantInts(2));
  bool crop = false;
  for (const int64_t value : crops) crop = crop || value != 0;
  if (!crop) return view.emit(type, {input, blocks});

  HEARTH_ASSIGN(const std::vector<int64_t> sizes, view.constantInts(1));
  const graph::Operand source = view.operand(input);
  if (source.dimensions.size() < sizes.size() + 1 || crops.size() != 2 * sizes.size())
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

}  // namespace

std::span<const TranslatorEntry> resizeTranslators() {
  static constexpr TranslatorEntry kTranslators[] = {
      {BuiltinOperator::RESIZE_BILINEAR, translateResize<schema::ResizeBilinearOptions>,
       OperationType::kResizeBilinear},
      {BuiltinOperator::RESIZE_NEAREST_NEIGHBOR,
       translateResize<schema::ResizeNearestNeighborOptions>,
       OperationType::kResizeNearestNeighbor},
      {BuiltinOperator::DEPTH_TO_SPACE, translateDepthSpace<schema::DepthToSpaceOptions>,
       OperationType::kDepthToSpace},
      {BuiltinOperator::SPACE_TO_DEPTH, translateDepthSpace<schema::SpaceToDepthOptions>,
       OperationType::kSpaceToDepth},
      {BuiltinOperator::SPACE_TO_BATCH_ND, translateSpaceToBatch, OperationType::kSpaceToBatchNd},
      {BuiltinOperator::BATCH_TO_SPACE_ND, translateBatchToSpace, OperationType::kBatchToSpaceNd},
  };
  return kTranslators;
}

}  // namespace hearth::tflite
