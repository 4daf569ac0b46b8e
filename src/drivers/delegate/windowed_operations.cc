// SPDX-License-Identifier: Apache-2.0
// Operations that move a window over images, layers with weights, and resizing.
#include <array>

#include "drivers/delegate/operation_writer.h"
#include "ops/conv_2d.h"
#include "ops/fully_connected.h"
#include "ops/padding.h"
#include "ops/pool_2d.h"
#include "ops/resize.h"
#include "ops/transpose_conv_2d.h"
#include "tflite_abi/builtin_params.h"

namespace hearth::drivers::delegate {
namespace {

using ops::OperandType;
using ops::OperationType;
using tflite_abi::Builtin;

// Values of the structures' paddings.
constexpr int32_t kSame = 1;
constexpr int32_t kValid = 2;

// What SAME means for an image of `size` pixels.
std::array<int32_t, 2> samePadding(uint32_t size, int32_t filter, int32_t stride,
                                   int32_t dilation) {
  const int64_t outputs = (int64_t{size} + stride - 1) / stride;
  const int64_t covered = (outputs - 1) * stride + int64_t{dilation} * (filter - 1) + 1;
  const auto total = static_cast<int32_t>(std::max<int64_t>(covered - size, 0));
  return {total / 2, total - total / 2};
}

// The padding in TensorFlow Lite's terms; nothing if it has none for it. `image` is what the window
// slides over.
std::optional<int32_t> implicitPadding(const ops::Window2d& window, const ops::ImageShape& image) {
  const auto [top, bottom] =
      samePadding(image.height, window.filterHeight, window.strideHeight, window.dilationHeight);
  const auto [left, right] =
      samePadding(image.width, window.filterWidth, window.strideWidth, window.dilationWidth);
  if (window.isSamePadding || window.padding == ops::Padding2d{top, bottom, left, right})
    return kSame;
  if (window.padding == ops::Padding2d{}) return kValid;
  return std::nullopt;
}

Status refuseLayout(const OperationWriter& writer, bool isChannelsFirst) {
  if (!isChannelsFirst) return {};
  return fail(ErrorCode::kUnsupported, "TensorFlow Lite has no {} with channels first.",
              writer.context().describe());
}

// The image with zeros around it, where TensorFlow Lite's convolution has no such padding.
Result<int32_t> paddedImage(OperationWriter& writer, const ops::WindowParameters& p) {
  HEARTH_ASSIGN(const int32_t image, writer.input(0));
  const ops::Padding2d& padding = p.window.padding;
  const int32_t amounts[] = {0, 0, padding.top, padding.bottom, padding.left, padding.right, 0, 0};
  std::vector<int32_t> dims = writer.tensors().at(image).dims;
  dims[1] += padding.top + padding.bottom;
  dims[2] += padding.left + padding.right;
  const int32_t padded = writer.tensors().temporaryLike(image, std::move(dims));
  HEARTH_TRY(writer.emit(Builtin::kPad, {image, writer.tensors().matrix(amounts, 2)}, {padded}));
  return padded;
}

// Input, filter and bias of a layer. An integer bias gets the scales that TensorFlow Lite's have.
struct Layer {
  int32_t input = 0, filter = 0, bias = -1;
};

Result<Layer> layerOf(OperationWriter& writer, size_t bias = 2) {
  Layer layer;
  HEARTH_ASSIGN(layer.input, writer.input(0));
  HEARTH_ASSIGN(layer.filter, writer.input(1));
  HEARTH_ASSIGN(layer.bias, writer.inputOrNone(bias));
  if (layer.bias < 0) return layer;
  const WrittenTensor& input = writer.tensors().at(layer.input);
  const WrittenTensor& filter = writer.tensors().at(layer.filter);
  WrittenTensor& added = writer.tensors().at(layer.bias);
  if (added.type == kTfLiteFloat32 || input.scales.size() != 1) return layer;
  added.scales.clear();
  for (const float scale : filter.scales) added.scales.push_back(input.scales[0] * scale);
  added.zeroPoints.assign(added.scales.size(), 0);
  added.channelDimension = 0;
  return layer;
}

bool isHybrid(const OperationWriter& writer) {
  return writer.inputTensor(0).type() == OperandType::kTensorFloat32 &&
         graph::elementSize(writer.inputTensor(1).type()) == 1;
}

Status writeConv2d(OperationWriter& writer, const ops::Conv2dParameters& p, bool isDepthwise) {
  HEARTH_TRY(refuseLayout(writer, p.isNchw));
  HEARTH_ASSIGN(Layer layer, layerOf(writer));
  std::optional<int32_t> padding = implicitPadding(p.window, p.input);
  if (!padding) {
    HEARTH_ASSIGN(layer.input, paddedImage(writer, p));
    padding = kValid;
  }
  HEARTH_ASSIGN(const int32_t output, writer.output());
  const ops::Window2d& w = p.window;
  const auto activation = static_cast<int32_t>(p.activation);
  std::optional<int32_t> version;
  constexpr int32_t kHybridVersion = 2;
  constexpr int32_t kHybridDepthwiseVersion = 4;
  constexpr int32_t kGroupedVersion = 6;
  if (isHybrid(writer)) version = isDepthwise ? kHybridDepthwiseVersion : kHybridVersion;
  if (isDepthwise)
    return writer.emit(
        Builtin::kDepthwiseConv2d, {layer.input, layer.filter, layer.bias}, {output},
        tflite_abi::DepthwiseConvParams{*padding, w.strideWidth, w.strideHeight,
                                        static_cast<int32_t>(p.groupOutputChannels), activation,
                                        w.dilationWidth, w.dilationHeight},
        version);
  if (p.groups > 1) version = kGroupedVersion;
  return writer.emit(Builtin::kConv2d, {layer.input, layer.filter, layer.bias}, {output},
                     tflite_abi::ConvParams{*padding, w.strideWidth, w.strideHeight, activation,
                                            w.dilationWidth, w.dilationHeight},
                     version);
}

Status writePlainConv2d(OperationWriter& writer) {
  HEARTH_ASSIGN(const ops::Conv2dParameters p, ops::parseConv2d(writer.context()));
  return writeConv2d(writer, p, false);
}

Status writeGroupedConv2d(OperationWriter& writer) {
  HEARTH_ASSIGN(const ops::Conv2dParameters p, ops::parseGroupedConv2d(writer.context()));
  return writeConv2d(writer, p, false);
}

Status writeDepthwiseConv2d(OperationWriter& writer) {
  HEARTH_ASSIGN(const ops::Conv2dParameters p, ops::parseDepthwiseConv2d(writer.context()));
  return writeConv2d(writer, p, true);
}

Status writeTransposeConv2d(OperationWriter& writer) {
  HEARTH_ASSIGN(const ops::TransposeConv2dParameters p,
                ops::parseTransposeConv2d(writer.context()));
  HEARTH_TRY(refuseLayout(writer, p.isNchw));
  const std::optional<int32_t> padding = implicitPadding(p.window, p.output);
  if (!padding)
    return fail(
        ErrorCode::kUnsupported,
        "TensorFlow Lite has no TRANSPOSE_CONV_2D with other paddings than SAME and VALID.");
  HEARTH_ASSIGN(const Layer layer, layerOf(writer));
  HEARTH_ASSIGN(const int32_t output, writer.output());
  const int32_t shape = writer.tensors().integers(writer.tensors().at(output).dims);
  std::vector<int32_t> inputs = {shape, layer.filter, layer.input};
  if (layer.bias >= 0) inputs.push_back(layer.bias);
  constexpr int32_t kBiasVersion = 3;
  constexpr int32_t kActivationVersion = 4;
  std::optional<int32_t> version;
  if (layer.bias >= 0) version = kBiasVersion;
  if (p.activation != ops::FusedActivation::kNone) version = kActivationVersion;
  return writer.emit(
      Builtin::kTransposeConv, std::move(inputs), {output},
      tflite_abi::TransposeConvParamsV4{{*padding, p.window.strideWidth, p.window.strideHeight},
                                        static_cast<int32_t>(p.activation)},
      version);
}

template <Builtin kCode>
Status writePool2d(OperationWriter& writer) {
  HEARTH_ASSIGN(const ops::Pool2dParameters p, ops::parsePool2d(writer.context()));
  HEARTH_TRY(refuseLayout(writer, p.isNchw));
  const std::optional<int32_t> padding = implicitPadding(p.window, p.input);
  if (!padding)
    return fail(ErrorCode::kUnsupported,
                "TensorFlow Lite's pools have no other paddings than SAME and VALID.");
  HEARTH_ASSIGN(const int32_t input, writer.input(0));
  HEARTH_ASSIGN(const int32_t output, writer.output());
  return writer.emit(kCode, {input}, {output},
                     tflite_abi::PoolParams{*padding, p.window.strideWidth, p.window.strideHeight,
                                            p.window.filterWidth, p.window.filterHeight,
                                            static_cast<int32_t>(p.activation)});
}

Status writeFullyConnected(OperationWriter& writer) {
  HEARTH_ASSIGN(const ops::FullyConnectedParameters p, ops::parseFullyConnected(writer.context()));
  HEARTH_ASSIGN(const Layer layer, layerOf(writer));
  HEARTH_ASSIGN(const int32_t output, writer.output());
  constexpr size_t kPlainRank = 2;
  const bool keepsDimensions = p.outputDimensions.size() != kPlainRank;
  constexpr int32_t kHybridVersion = 3;
  constexpr int32_t kKeepingVersion = 5;
  std::optional<int32_t> version;
  if (isHybrid(writer)) version = kHybridVersion;
  if (keepsDimensions) version = kKeepingVersion;
  return writer.emit(Builtin::kFullyConnected, {layer.input, layer.filter, layer.bias}, {output},
                     tflite_abi::FullyConnectedParams{static_cast<int32_t>(p.activation), 0,
                                                      keepsDimensions, false},
                     version);
}

template <Builtin kCode>
Status writeResize(OperationWriter& writer) {
  HEARTH_ASSIGN(const ops::ResizeParameters p, ops::parseResize(writer.context()));
  HEARTH_TRY(refuseLayout(writer, p.isNchw));
  HEARTH_ASSIGN(const int32_t input, writer.input(0));
  HEARTH_ASSIGN(const int32_t output, writer.output());
  const int32_t size[] = {static_cast<int32_t>(p.outputHeight),
                          static_cast<int32_t>(p.outputWidth)};
  constexpr int32_t kCentresVersion = 3;
  std::optional<int32_t> version;
  if (p.halfPixelCenters) version = kCentresVersion;
  return writer.emit(kCode, {input, writer.tensors().integers(size)}, {output},
                     tflite_abi::ResizeParams{p.alignCorners, p.halfPixelCenters}, version);
}

constexpr OperationEntry kWindowedOperations[] = {
    {OperationType::kConv2d, writePlainConv2d},
    {OperationType::kGroupedConv2d, writeGroupedConv2d},
    {OperationType::kDepthwiseConv2d, writeDepthwiseConv2d},
    {OperationType::kTransposeConv2d, writeTransposeConv2d},
    {OperationType::kAveragePool2d, writePool2d<Builtin::kAveragePool2d>},
    {OperationType::kMaxPool2d, writePool2d<Builtin::kMaxPool2d>},
    {OperationType::kL2Pool2d, writePool2d<Builtin::kL2Pool2d>},
    {OperationType::kFullyConnected, writeFullyConnected},
    {OperationType::kResizeBilinear, writeResize<Builtin::kResizeBilinear>},
    {OperationType::kResizeNearestNeighbor, writeResize<Builtin::kResizeNearestNeighbor>},
};

}  // namespace

std::span<const OperationEntry> windowedOperations() {
  return kWindowedOperations;
}

}  // namespace hearth::drivers::delegate
