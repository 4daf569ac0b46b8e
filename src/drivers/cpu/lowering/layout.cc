// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/lowering/layout.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "drivers/cpu/kernels/copy_kernel.h"
#include "drivers/cpu/kernels/function_kernel.h"
#include "drivers/cpu/kernels/nchw_to_nhwc_kernel.h"
#include "drivers/cpu/kernels/xnn_kernel.h"
#include "drivers/cpu/lowering/declined.h"
#include "drivers/cpu/lowering/unary_lookup_table.h"
#include "ops/concatenation.h"
#include "ops/float_folds.h"
#include "threads/parallel_ranges.h"

namespace hearth::cpu {
namespace {

using graph::Dimensions;
using graph::OperandType;

uint64_t product(const Dimensions& dimensions, size_t begin, size_t end) {
  uint64_t result = 1;
  for (size_t i = begin; i < end; ++i) result *= dimensions[i];
  return result;
}

const Dimensions& dimensionsOf(PlanBuilder* builder, uint32_t operand) {
  return builder->tensor(operand).dimensions;
}

bool isSameQuantization(const graph::Operand& a, const graph::Operand& b) {
  return a.type == b.type && a.scale == b.scale && a.zeroPoint == b.zeroPoint;
}

// A copy of 8-bit numbers, looked up in a table if it is to another scale.
struct ByteCopy {
  BlockCopy block;
  std::optional<std::array<uint8_t, 256>> table;
};

void copyRows(const ByteCopy& copy, const KernelRun& run, uint64_t begin, uint64_t end) {
  const BlockCopy& block = copy.block;
  for (uint64_t row = begin; row < end; ++row) {
    const uint8_t* const from =
        run.at<const uint8_t>(block.source) + block.sourceOffset + row * block.sourceStride;
    uint8_t* const to = run.at<uint8_t>(block.destination) + block.destinationOffset +
                        row * block.destinationStride;
    if (copy.table)
      lookUp(*reinterpret_cast<const uint8_t(*)[256]>(copy.table->data()), from, to, block.bytes);
    else
      std::copy_n(from, block.bytes, to);
  }
}

Result<std::unique_ptr<Kernel>> makeByteCopyKernel(std::vector<ByteCopy> copies) {
  return makeFunctionKernel([copies = std::move(copies)](const KernelRun& run) -> Status {
    for (const ByteCopy& copy : copies)
      threads::forRanges(run.pool, copy.block.rows, threads::grainOf(2 * copy.block.bytes),
                         [&](uint64_t begin, uint64_t end) { copyRows(copy, run, begin, end); });
    return {};
  });
}

}  // namespace

void addReshape(PlanBuilder* builder, uint32_t input, uint32_t output) {
  if (builder->alias(output, input)) return;
  BlockCopy copy;
  copy.source = builder->read(input);
  copy.destination = builder->write(output);
  copy.bytes = tensorBytes(builder->tensor(output));
  Node& node = builder->add("own", {copy.source}, {copy.destination});
  // What a loop hands on from round to round stays where it is.
  node.inPlaceInputs = {0};
  node.create = [copy] {
    return makeCopyKernel({copy});
  };
}

Result<bool> addConcatenation(PlanBuilder* builder, const std::vector<uint32_t>& inputs,
                              uint32_t output, uint32_t axis) {
  const graph::Operand& operandOut = builder->operand(output);
  const size_t element = graph::elementSize(operandOut.type);
  if (element == 0) return false;
  const bool areBytes = operandOut.type == OperandType::kTensorQuant8Asymm ||
                        operandOut.type == OperandType::kTensorQuant8AsymmSigned;
  bool areSame = true;
  for (uint32_t input : inputs)
    areSame = areSame && isSameQuantization(builder->operand(input), operandOut);
  if (!areSame && !areBytes)
    return builder->decline("an input has another type or scale than its output");
  const Dimensions& shape = dimensionsOf(builder, output);
  const uint64_t rows = product(shape, 0, axis);
  const uint64_t stride = product(shape, axis, shape.size()) * element;
  std::vector<BlockCopy> copies;
  std::vector<ValueId> sources;
  const ValueId destination = builder->write(output);
  uint64_t offset = 0;
  for (uint32_t input : inputs) {
    const Dimensions& part = dimensionsOf(builder, input);
    BlockCopy copy;
    copy.source = builder->read(input);
    copy.destination = destination;
    copy.destinationOffset = offset;
    copy.bytes = copy.sourceStride = product(part, axis, part.size()) * element;
    copy.destinationStride = stride;
    copy.rows = rows;
    offset += copy.bytes;
    copies.push_back(copy);
    sources.push_back(copy.source);
  }
  Node& node = builder->add("own", sources, {destination});
  if (areSame) {
    node.create = [copies] {
      return makeCopyKernel(copies);
    };
    return true;
  }
  std::vector<ByteCopy> byteCopies;
  for (size_t i = 0; i < copies.size(); ++i) {
    const graph::Operand& from = builder->operand(inputs[i]);
    ByteCopy copy{copies[i], std::nullopt};
    if (!isSameQuantization(from, operandOut)) copy.table = ops::requantizedBytes(from, operandOut);
    byteCopies.push_back(copy);
  }
  node.create = [byteCopies] {
    return makeByteCopyKernel(byteCopies);
  };
  return true;
}

Result<bool> addSplit(PlanBuilder* builder, uint32_t input, const std::vector<uint32_t>& outputs,
                      uint32_t axis) {
  const graph::Operand& operandIn = builder->operand(input);
  const size_t element = graph::elementSize(operandIn.type);
  if (element == 0) return false;
  for (uint32_t output : outputs)
    if (!isSameQuantization(builder->operand(output), operandIn))
      return builder->decline(kOtherScale);
  const Dimensions& shape = dimensionsOf(builder, input);
  const uint64_t stride = product(shape, axis, shape.size()) * element;
  const ValueId source = builder->read(input);
  std::vector<BlockCopy> copies;
  std::vector<ValueId> destinations;
  uint64_t offset = 0;
  for (uint32_t output : outputs) {
    const Dimensions& part = dimensionsOf(builder, output);
    BlockCopy copy;
    copy.source = source;
    copy.destination = builder->write(output);
    copy.sourceOffset = offset;
    copy.bytes = copy.destinationStride = product(part, axis, part.size()) * element;
    copy.sourceStride = stride;
    copy.rows = product(shape, 0, axis);
    offset += copy.bytes;
    copies.push_back(copy);
    destinations.push_back(copy.destination);
  }
  builder->add("own", {source}, destinations).create = [copies] {
    return makeCopyKernel(copies);
  };
  return true;
}

namespace {

// Rows of this many bytes or more are copied as fast by memcpy() as by loops for their length.
constexpr uint64_t kLongRow = 64;
// Copying less takes no longer than finding out again in each run what is to be copied.
constexpr uint64_t kShortSlice = 4096;

// The offset, the length, the number and the distance of the slice's rows; source and destination
// are not set.
std::optional<BlockCopy> rowsOf(const Dimensions& dimensions,
                                const std::vector<ops::SliceRange>& ranges, size_t element) {
  BlockCopy copy;
  copy.bytes = element;
  uint64_t step = element;  // bytes between neighbours along the dimension
  for (size_t i = dimensions.size(); i-- > 0;) {
    const ops::SliceRange& range = ranges[i];
    if (range.size == 0) return std::nullopt;
    const auto size = static_cast<uint64_t>(range.size);
    copy.sourceOffset += static_cast<uint64_t>(range.begin) * step;
    if (size > 1 && copy.rows == 1 && copy.bytes == step && range.stride == 1) {
      copy.bytes *= size;
    } else if (size > 1) {
      if (range.stride < 1) return std::nullopt;
      const uint64_t distance = static_cast<uint64_t>(range.stride) * step;
      if (copy.rows == 1)
        copy.sourceStride = distance;
      else if (distance != copy.sourceStride * copy.rows)
        return std::nullopt;
      copy.rows *= size;
    }
    step *= dimensions[i];
  }
  copy.destinationStride = copy.bytes;
  return copy;
}

}  // namespace

Result<bool> addSlice(PlanBuilder* builder, uint32_t input, uint32_t output,
                      const std::vector<ops::SliceRange>& ranges) {
  const size_t element = graph::elementSize(builder->operand(input).type);
  if (element == 0) return false;
  std::optional<BlockCopy> copy = rowsOf(dimensionsOf(builder, input), ranges, element);
  if (!copy || (copy->rows > 1 && copy->bytes < kLongRow && copy->rows * copy->bytes > kShortSlice))
    return false;
  copy->source = builder->read(input);
  copy->destination = builder->write(output);
  builder->add("own", {copy->source}, {copy->destination}).create = [copy = *copy] {
    return makeCopyKernel({copy});
  };
  return true;
}

Result<bool> addTranspose(PlanBuilder* builder, uint32_t input, uint32_t output,
                          const std::vector<size_t>& permutation) {
  const size_t element = graph::elementSize(builder->operand(input).type);
  if (element != 1 && element != 2 && element != 4 && element != 8) return false;
  const Dimensions& dimensions = dimensionsOf(builder, input);
  if (dimensions.empty() || dimensions.size() > XNN_MAX_TENSOR_DIMS ||
      product(dimensions, 0, dimensions.size()) == 0)
    return false;
  const bool isPlanesToPixels = element == 1 && dimensions.size() == 4 && dimensions[1] == 3 &&
                                permutation == std::vector<size_t>{0, 2, 3, 1};
  if (isPlanesToPixels) {
    NchwToNhwc transposition;
    transposition.source = builder->read(input);
    transposition.destination = builder->write(output);
    transposition.batch = dimensions[0];
    transposition.pixels = uint64_t{dimensions[2]} * dimensions[3];
    builder->add("own", {transposition.source}, {transposition.destination}).create =
        [transposition] {
          return makeNchwToNhwcKernel(transposition);
        };
    return true;
  }
  // Where rows become columns, XNNPACK's kernel for bytes is no faster than moving single elements.
  const size_t last = permutation.back();
  constexpr uint32_t kFewBytes = 16;
  if (element == 1 && last + 1 != dimensions.size() && dimensions[last] >= kFewBytes &&
      dimensions.back() >= kFewBytes)
    return false;
  const std::vector<size_t> shape(dimensions.begin(), dimensions.end());
  const ValueId source = builder->read(input);
  const ValueId destination = builder->write(output);
  builder->add("xnnpack", {source}, {destination}).create =
      [=]() -> Result<std::unique_ptr<Kernel>> {
    xnn_operator_t op = nullptr;
    const auto create = element == 1   ? xnn_create_transpose_nd_x8
                        : element == 2 ? xnn_create_transpose_nd_x16
                        : element == 4 ? xnn_create_transpose_nd_x32
                                       : xnn_create_transpose_nd_x64;
    const auto reshape = element == 1   ? xnn_reshape_transpose_nd_x8
                         : element == 2 ? xnn_reshape_transpose_nd_x16
                         : element == 4 ? xnn_reshape_transpose_nd_x32
                                        : xnn_reshape_transpose_nd_x64;
    const auto setup = element == 1   ? xnn_setup_transpose_nd_x8
                       : element == 2 ? xnn_setup_transpose_nd_x16
                       : element == 4 ? xnn_setup_transpose_nd_x32
                                      : xnn_setup_transpose_nd_x64;
    const xnn_status status = create(0, &op);
    XnnCalls calls;
    calls.reshape = [=](xnn_operator_t o, size_t*, size_t*, pthreadpool_t pool) {
      return reshape(o, shape.size(), shape.data(), permutation.data(), pool);
    };
    calls.setup = [=](xnn_operator_t o, void*, std::span<void* const> at) {
      return setup(o, at[source], at[destination]);
    };
    return makeXnnKernel("transpose_nd", status, op, std::move(calls));
  };
  return true;
}

namespace {

struct Mean {
  std::vector<size_t> shape;
  std::vector<int64_t> axes;  // neighbours
  ValueId source = 0, destination = 0;
};

void addMeanNode(PlanBuilder* builder, const Mean& mean) {
  builder->add("xnnpack", {mean.source}, {mean.destination}).create =
      [mean]() -> Result<std::unique_ptr<Kernel>> {
    xnn_operator_t op = nullptr;
    constexpr xnn_quantization_params kNone = {0, 1.0f};
    // The execution graph keeps or drops dimensions: the bytes are the same.
    const xnn_status status = xnn_create_reduce_nd(xnn_reduce_mean, xnn_datatype_fp32, &kNone,
                                                   &kNone, XNN_FLAG_KEEP_DIMS, &op);
    XnnCalls calls;
    calls.reshape = [mean](xnn_operator_t o, size_t* workspace, size_t* alignment,
                           pthreadpool_t pool) {
      const xnn_status reshaped =
          xnn_reshape_reduce_nd(o, mean.axes.size(), mean.axes.data(), mean.shape.size(),
                                mean.shape.data(), workspace, alignment, pool);
      // XNNPACK asks for a workspace, but given one it calls a conversion that does not exist.
      *workspace = 0;
      return reshaped;
    };
    calls.setup = [mean](xnn_operator_t o, void* workspace, std::span<void* const> at) {
      return xnn_setup_reduce_nd(o, workspace, at[mean.source], at[mean.destination]);
    };
    return makeXnnKernel("reduce_nd", status, op, std::move(calls));
  };
}

}  // namespace

Result<bool> addMean(PlanBuilder* builder, uint32_t input, uint32_t output,
                     const std::vector<uint32_t>& axes) {
  if (builder->operand(input).type != OperandType::kTensorFloat32 || axes.empty()) return false;
  const Dimensions& dimensions = dimensionsOf(builder, input);
  if (dimensions.size() > XNN_MAX_TENSOR_DIMS || product(dimensions, 0, dimensions.size()) == 0)
    return false;
  Mean mean;
  mean.shape.assign(dimensions.begin(), dimensions.end());
  mean.source = builder->read(input);
  // XNNPACK computes sums over several groups of neighbouring axes wrongly, so each group becomes a
  // mean of its own, the last one first.
  std::vector<std::vector<int64_t>> groups;
  for (const uint32_t axis : axes) {
    if (groups.empty() || groups.back().back() + 1 != axis) groups.emplace_back();
    groups.back().push_back(axis);
  }
  // Means of rows: XNNPACK calls a function for each row.
  if (groups.size() == 1 && axes.back() + 1 == dimensions.size() && ops::hasFloatFolds())
    return false;
  for (; !groups.empty(); groups.pop_back()) {
    mean.axes = groups.back();
    std::vector<size_t> shape = mean.shape;
    uint64_t count = 1;
    for (const int64_t axis : mean.axes) shape[static_cast<size_t>(axis)] = 1;
    for (const size_t size : shape) count *= size;
    mean.destination =
        groups.size() == 1 ? builder->write(output) : builder->temporary(count * sizeof(float));
    addMeanNode(builder, mean);
    mean.shape = std::move(shape);
    mean.source = mean.destination;
  }
  return true;
}

Result<bool> addResizeBilinear(PlanBuilder* builder, uint32_t input, uint32_t output,
                               bool alignCorners, bool halfPixelCenters) {
  const graph::Operand& operandIn = builder->operand(input);
  if (!isSameQuantization(operandIn, builder->operand(output)))
    return builder->decline(kOtherScale);
  const OperandType type = operandIn.type;
  if (type != OperandType::kTensorFloat32 && type != OperandType::kTensorQuant8Asymm &&
      type != OperandType::kTensorQuant8AsymmSigned)
    return builder->decline(kOnlyFloat32Or8Bits);
  const Dimensions in = dimensionsOf(builder, input);
  const Dimensions out = dimensionsOf(builder, output);
  if (in.size() != 4 || product(in, 0, 4) == 0 || product(out, 0, 4) == 0) return false;
  uint32_t flags = 0;
  if (alignCorners)
    flags = XNN_FLAG_ALIGN_CORNERS;
  else if (!halfPixelCenters)
    flags = XNN_FLAG_TENSORFLOW_LEGACY_MODE;
  const ValueId source = builder->read(input);
  const ValueId destination = builder->write(output);
  builder->add("xnnpack", {source}, {destination}).create =
      [=]() -> Result<std::unique_ptr<Kernel>> {
    xnn_operator_t op = nullptr;
    const auto create = type == OperandType::kTensorFloat32 ? xnn_create_resize_bilinear2d_nhwc_f32
                        : type == OperandType::kTensorQuant8Asymm
                            ? xnn_create_resize_bilinear2d_nhwc_u8
                            : xnn_create_resize_bilinear2d_nhwc_s8;
    const xnn_status status = create(out[1], out[2], flags, &op);
    XnnCalls calls;
    calls.reshape = [=](xnn_operator_t o, size_t* workspace, size_t* alignment,
                        pthreadpool_t pool) {
      const auto reshape =
          type == OperandType::kTensorFloat32       ? xnn_reshape_resize_bilinear2d_nhwc_f32
          : type == OperandType::kTensorQuant8Asymm ? xnn_reshape_resize_bilinear2d_nhwc_u8
                                                    : xnn_reshape_resize_bilinear2d_nhwc_s8;
      return reshape(o, in[0], in[1], in[2], in[3], in[3], in[3], workspace, alignment, pool);
    };
    calls.setup = [=](xnn_operator_t o, void* workspace, std::span<void* const> at) {
      void* from = at[source];
      void* to = at[destination];
      switch (type) {
        case OperandType::kTensorFloat32:
          return xnn_setup_resize_bilinear2d_nhwc_f32(o, workspace, static_cast<const float*>(from),
                                                      static_cast<float*>(to));
        case OperandType::kTensorQuant8Asymm:
          return xnn_setup_resize_bilinear2d_nhwc_u8(
              o, workspace, static_cast<const uint8_t*>(from), static_cast<uint8_t*>(to));
        default:
          return xnn_setup_resize_bilinear2d_nhwc_s8(o, workspace, static_cast<const int8_t*>(from),
                                                     static_cast<int8_t*>(to));
      }
    };
    return makeXnnKernel("resize_bilinear2d_nhwc", status, op, std::move(calls));
  };
  return true;
}

Result<bool> addZeroPad(PlanBuilder* builder, uint32_t input, uint32_t output,
                        const std::vector<uint32_t>& before, const std::vector<uint32_t>& after) {
  const graph::Operand& operandIn = builder->operand(input);
  if (!isSameQuantization(operandIn, builder->operand(output))) return false;
  const Dimensions& dimensions = dimensionsOf(builder, input);
  if (dimensions.size() != 4 || product(dimensions, 0, 4) == 0) return false;
  if (before[0] != 0 || after[0] != 0 || before[3] != 0 || after[3] != 0) return false;
  if (graph::elementSize(operandIn.type) == 0) return false;
  PlanBuilder::PaddedView view;
  view.source = input;
  view.top = before[1];
  view.bottom = after[1];
  view.left = before[2];
  view.right = after[2];
  view.fillByte = graph::elementSize(operandIn.type) == 1
                      ? static_cast<uint8_t>(operandIn.zeroPoint)
                      : uint8_t{0};
  builder->setPaddedView(output, view);
  // Convolutions read through the view; for other readers the first read() adds the padding node.
  bool isLeftToConsumers = !builder->isGraphOutput(output);
  for (uint32_t consumer : builder->consumers(output)) {
    const graph::Operation& operation = builder->operation(consumer);
    const bool isConvolution = operation.type == graph::OperationType::kConv2d ||
                               operation.type == graph::OperationType::kDepthwiseConv2d;
    if (!isConvolution || operation.inputs[0] != output || builder->isReferenceOnly(consumer))
      isLeftToConsumers = false;
  }
  if (!isLeftToConsumers) builder->read(output);
  return true;
}

}  // namespace hearth::cpu
