// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/lowering/convolution.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "drivers/cpu/kernels/amx_layer.h"
#include "drivers/cpu/kernels/f32_layer.h"
#include "drivers/cpu/kernels/qs8_layer.h"
#include "drivers/cpu/kernels/xnn_kernel.h"
#include "drivers/cpu/lowering/avx2_depthwise.h"
#include "drivers/cpu/lowering/avx2_layer.h"
#include "drivers/cpu/lowering/channel_split.h"
#include "drivers/cpu/lowering/convolution_input.h"
#include "drivers/cpu/lowering/declined.h"
#include "drivers/cpu/lowering/epilogue.h"
#include "drivers/cpu/lowering/f16w_layer.h"
#include "drivers/cpu/lowering/f32_depthwise.h"
#include "drivers/cpu/lowering/f32_narrow_convolution.h"
#include "drivers/cpu/lowering/hybrid_convolution.h"
#include "drivers/cpu/lowering/layer_arithmetic.h"
#include "drivers/cpu/lowering/packing_parts.h"
#include "drivers/cpu/lowering/qs16_layer.h"
#include "drivers/cpu/lowering/qs8_depthwise.h"
#include "drivers/cpu/lowering/qs8_one_channel.h"
#include "drivers/cpu/lowering/qu8_convolution.h"
#include "drivers/cpu/lowering/winograd_layer.h"
#include "drivers/cpu/microkernels/portable/im2col.h"
#include "drivers/cpu/weights/layer_packing.h"
#include "drivers/cpu/weights/xnnpack_panels.h"
#include "threads/parallel_ranges.h"
#include "threads/parallel_tasks.h"

namespace hearth::cpu {
namespace {

using graph::OperandType;

// Everything that a creation call reads. The call runs once for each execution context.
struct Creation : LayerPacking, LayerArithmetic {
  Convolution geometry;
  OperandType type = OperandType::kTensorFloat32;
  bool isPerChannel = false;
  const void* kernel = nullptr;
  ConvertedConstantRef convertedKernel;  // in place of `kernel`
  const void* bias = nullptr;
  std::shared_ptr<const float> kernelScales;  // padded: XNNPACK reads past the last one
  std::span<const uint8_t> released;          // what packing may release of `kernel`
  bool guardOneRowTail = false;
  ValueId source = 0, destination = 0;
  std::optional<ValueId> addend, slopes;  // of an epilogue, which a kernel of ours computes
};

xnn_status createFrom(const Creation& c, const void* kernel, xnn_operator_t* op) {
  const Convolution& g = c.geometry;
  const uint32_t flags = g.isDepthwise ? XNN_FLAG_DEPTHWISE_CONVOLUTION : 0;
  const size_t inputStride = g.groups * g.groupInputChannels;
  const size_t outputStride = g.groups * g.groupOutputChannels;
  xnn_weights_cache_t cache = c.weights->provider();
  switch (c.type) {
    case OperandType::kTensorFloat32:
      return xnn_create_convolution2d_nhwc_f32(
          g.top, g.right, g.bottom, g.left, g.kernelHeight, g.kernelWidth, g.strideHeight,
          g.strideWidth, g.dilationHeight, g.dilationWidth, g.groups, g.groupInputChannels,
          g.groupOutputChannels, inputStride, outputStride, static_cast<const float*>(kernel),
          static_cast<const float*>(c.bias), c.floats.lowest, c.floats.highest, flags, nullptr,
          cache, op);
    case OperandType::kTensorQuant8Asymm:
      return xnn_create_convolution2d_nhwc_qu8(
          g.top, g.right, g.bottom, g.left, g.kernelHeight, g.kernelWidth, g.strideHeight,
          g.strideWidth, g.dilationHeight, g.dilationWidth, g.groups, g.groupInputChannels,
          g.groupOutputChannels, inputStride, outputStride, static_cast<uint8_t>(c.inputZero),
          c.inputScale, static_cast<uint8_t>(c.kernelZero), c.kernelScale,
          static_cast<const uint8_t*>(kernel), static_cast<const int32_t*>(c.bias),
          static_cast<uint8_t>(c.outputZero), c.outputScale, static_cast<uint8_t>(c.steps.lowest),
          static_cast<uint8_t>(c.steps.highest), flags, nullptr, cache, op);
    default:
      if (c.isPerChannel)
        return xnn_create_convolution2d_nhwc_qs8_qc8w(
            g.top, g.right, g.bottom, g.left, g.kernelHeight, g.kernelWidth, g.strideHeight,
            g.strideWidth, g.dilationHeight, g.dilationWidth, g.groups, g.groupInputChannels,
            g.groupOutputChannels, inputStride, outputStride, static_cast<int8_t>(c.inputZero),
            c.inputScale, c.kernelScales.get(), static_cast<const int8_t*>(kernel),
            static_cast<const int32_t*>(c.bias), static_cast<int8_t>(c.outputZero), c.outputScale,
            static_cast<int8_t>(c.steps.lowest), static_cast<int8_t>(c.steps.highest), flags,
            nullptr, cache, op);
      return xnn_create_convolution2d_nhwc_qs8(
          g.top, g.right, g.bottom, g.left, g.kernelHeight, g.kernelWidth, g.strideHeight,
          g.strideWidth, g.dilationHeight, g.dilationWidth, g.groups, g.groupInputChannels,
          g.groupOutputChannels, inputStride, outputStride, static_cast<int8_t>(c.inputZero),
          c.inputScale, c.kernelScale, static_cast<const int8_t*>(kernel),
          static_cast<const int32_t*>(c.bias), static_cast<int8_t>(c.outputZero), c.outputScale,
          static_cast<int8_t>(c.steps.lowest), static_cast<int8_t>(c.steps.highest), flags, nullptr,
          cache, op);
  }
}

xnn_status createOperator(const Creation& c, xnn_operator_t* op) {
  const char* const kind = c.geometry.isDepthwise ? "DEPTHWISE_CONV_2D" : "CONV_2D";
  const auto make = [&](const void* kernel) {
    return createFrom(c, kernel, op);
  };
  if (c.convertedKernel != nullptr)
    return c.weights->createConverted(
        c.place, kind, c.packed.get(), [&] { return c.convertedKernel->convert(); }, make);
  const Convolution& g = c.geometry;
  if (g.groups != 1 || g.isDepthwise)
    return c.weights->create(c.place, kind, c.packed.get(), [&] { return make(c.kernel); });
  const size_t channelBytes =
      g.kernelHeight * g.kernelWidth * g.groupInputChannels * graph::elementSize(c.type);
  return createInParts(
      c, kind, g.groupOutputChannels, channelBytes, c.released,
      [&](ChannelRange channels, xnn_operator_t* partOp) {
        Creation part = creationOfPart(c, channels);
        part.geometry.groupOutputChannels = channels.count;
        return createFrom(
            part, static_cast<const uint8_t*>(c.kernel) + channels.first * channelBytes, partOp);
      },
      [&] { return make(c.kernel); });
}

// `g` has the sizes of the images, which for gathered windows are not those of the creation.
xnn_status reshapeOperator(const Creation& c, const Convolution& g, xnn_operator_t op,
                           size_t* workspace, size_t* alignment, pthreadpool_t pool) {
  size_t height = 0;
  size_t width = 0;
  xnn_status status;
  switch (c.type) {
    case OperandType::kTensorFloat32:
      status = xnn_reshape_convolution2d_nhwc_f32(op, g.batch, g.inputHeight, g.inputWidth,
                                                  workspace, alignment, &height, &width, pool);
      break;
    case OperandType::kTensorQuant8Asymm:
      status = xnn_reshape_convolution2d_nhwc_qu8(op, g.batch, g.inputHeight, g.inputWidth,
                                                  workspace, alignment, &height, &width, pool);
      break;
    default:
      status =
          c.isPerChannel
              ? xnn_reshape_convolution2d_nhwc_qs8_qc8w(op, g.batch, g.inputHeight, g.inputWidth,
                                                        workspace, alignment, &height, &width, pool)
              : xnn_reshape_convolution2d_nhwc_qs8(op, g.batch, g.inputHeight, g.inputWidth,
                                                   workspace, alignment, &height, &width, pool);
  }
  return statusOfReshape(status, height, width, g.outputHeight, g.outputWidth);
}

xnn_status setupOperator(const Creation& c, xnn_operator_t op, void* workspace,
                         std::span<void* const> at) {
  const void* in = at[c.source];
  void* out = at[c.destination];
  switch (c.type) {
    case OperandType::kTensorFloat32:
      return xnn_setup_convolution2d_nhwc_f32(op, workspace, static_cast<const float*>(in),
                                              static_cast<float*>(out));
    case OperandType::kTensorQuant8Asymm:
      return xnn_setup_convolution2d_nhwc_qu8(op, workspace, static_cast<const uint8_t*>(in),
                                              static_cast<uint8_t*>(out));
    default:
      return c.isPerChannel
                 ? xnn_setup_convolution2d_nhwc_qs8_qc8w(
                       op, workspace, static_cast<const int8_t*>(in), static_cast<int8_t*>(out))
                 : xnn_setup_convolution2d_nhwc_qs8(op, workspace, static_cast<const int8_t*>(in),
                                                    static_cast<int8_t*>(out));
  }
}

// Whether each window can be gathered into one row, which makes a convolution over single pixels:
// XNNPACK has fewer steps, but more memory is written and read.
bool canGatherWindows(OperandType type, const Convolution& g) {
  // With more bytes, one place of a window is work enough for XNNPACK.
  constexpr size_t kMostChannelBytes = 64;
  constexpr uint64_t kMostBytes = uint64_t{64} << 20;
  const uint64_t places = uint64_t{g.kernelHeight} * g.kernelWidth;
  const uint64_t channelBytes = g.groupInputChannels * graph::elementSize(type);
  return !g.isDepthwise && g.groups == 1 && places > 1 && channelBytes <= kMostChannelBytes &&
         g.batch * g.outputHeight * g.outputWidth * places * channelBytes <= kMostBytes;
}

// Whether gathered windows are the first choice. For int8 XNNPACK rounds the channels of each place
// of a window up to its step, up to 64: with few channels most products are of zeros. float32 has
// no such steps.
bool wantsWindows(OperandType type, const Convolution& g) {
  constexpr size_t kMostChannels = 16;
  return type == OperandType::kTensorQuant8AsymmSigned && g.groupInputChannels <= kMostChannels &&
         canGatherWindows(type, g);
}

// The convolution over single pixels that are gathered windows.
Convolution overWindows(Convolution g) {
  g.groupInputChannels *= size_t{g.kernelHeight} * g.kernelWidth;
  g.inputHeight = g.outputHeight;
  g.inputWidth = g.outputWidth;
  g.top = g.bottom = g.left = g.right = 0;
  g.kernelHeight = g.kernelWidth = 1;
  g.strideHeight = g.strideWidth = 1;
  g.dilationHeight = g.dilationWidth = 1;
  return g;
}

// Gathers the windows in scratch memory, and runs a convolution over them. It does so in blocks,
// which stay in the second-level cache between the two; all windows of a picture would take
// megabytes, which each process has for itself.
class WindowedKernel final : public Kernel {
 public:
  // `product` computes as many windows as `blockWindows` says when it is reshaped. Its source and
  // destination are those of `creation`, which it finds at the block's addresses.
  WindowedKernel(const Im2col& windows, const Creation& creation,
                 std::shared_ptr<size_t> blockWindows, std::unique_ptr<Kernel> product)
      : windows_(windows),
        source_(creation.source),
        destination_(creation.destination),
        outputBytes_(creation.geometry.groupOutputChannels * graph::elementSize(creation.type)),
        blockWindows_(std::move(blockWindows)),
        product_(std::move(product)) {}

  Result<size_t> reshape(threads::ThreadPool* pool) override {
    constexpr size_t kAlignment = 64;
    *blockWindows_ = windowsPerBlock(threads::threadsOf(pool));
    HEARTH_ASSIGN(const size_t bytes, product_->reshape(pool));
    productBytes_ = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return productBytes_ + *blockWindows_ * windows_.windowBytes() + kReadSlack;
  }

  Status setup(std::span<void* const> addresses, void* workspace) override {
    workspace_ = static_cast<uint8_t*>(workspace);
    addresses_.assign(addresses.begin(), addresses.end());
    input_ = static_cast<const uint8_t*>(addresses[source_]);
    output_ = static_cast<uint8_t*>(addresses[destination_]);
    addresses_[source_] = workspace_ + productBytes_;
    return {};
  }

  Status run(threads::ThreadPool* pool) override {
    const size_t count = windows_.windowCount();
    for (size_t first = 0; first < count; first += *blockWindows_)
      HEARTH_TRY(runBlock(std::min(first, count - *blockWindows_), pool));
    return {};
  }

 private:
  static constexpr size_t kBlockBytesPerThread = size_t{256} << 10;
  // Kernels compute up to so many rows at a time.
  static constexpr size_t kRowsAtATime = 16;

  // Blocks are of equal size: the last one begins where it has room and computes some of the rows
  // before it again.
  size_t windowsPerBlock(size_t threads) const {
    const size_t count = windows_.windowCount();
    const size_t most =
        std::max(kRowsAtATime, threads * kBlockBytesPerThread / windows_.windowBytes());
    const size_t blocks = (count + most - 1) / most;
    const size_t even = (count + blocks - 1) / blocks;
    return std::min(count, (even + kRowsAtATime - 1) / kRowsAtATime * kRowsAtATime);
  }

  Status runBlock(size_t first, threads::ThreadPool* pool) {
    const size_t bytes = windows_.windowBytes();
    uint8_t* const gathered = workspace_ + productBytes_;
    threads::forRanges(
        pool, *blockWindows_, threads::grainOf(bytes), [&](uint64_t begin, uint64_t end) {
          windows_.gather(input_, first + begin, first + end, gathered + begin * bytes);
        });
    addresses_[destination_] = output_ + first * outputBytes_;
    HEARTH_TRY(product_->setup(addresses_, workspace_));
    return product_->run(pool);
  }

  const Im2col windows_;
  const ValueId source_;
  const ValueId destination_;
  const size_t outputBytes_;  // of one window
  const std::shared_ptr<size_t> blockWindows_;
  const std::unique_ptr<Kernel> product_;
  size_t productBytes_ = 0;
  uint8_t* workspace_ = nullptr;
  std::vector<void*> addresses_;
  const uint8_t* input_ = nullptr;
  uint8_t* output_ = nullptr;
};

// `windows`, if there are any, is how many the kernel computes at a time, known when it is
// reshaped.
Result<std::unique_ptr<Kernel>> createKernel(
    const std::shared_ptr<const Creation>& shared,
    const std::shared_ptr<const size_t>& windows = nullptr) {
  xnn_operator_t op = nullptr;
  const xnn_status status = createOperator(*shared, &op);
  XnnCalls calls;
  calls.reshape = [shared, windows](xnn_operator_t o, size_t* workspace, size_t* alignment,
                                    pthreadpool_t pool) {
    Convolution g = shared->geometry;
    if (windows != nullptr) {
      g.batch = g.inputHeight = g.outputHeight = 1;
      g.inputWidth = g.outputWidth = *windows;
    }
    return reshapeOperator(*shared, g, o, workspace, alignment, pool);
  };
  calls.setup = [shared](xnn_operator_t o, void* workspace, std::span<void* const> at) {
    return setupOperator(*shared, o, workspace, at);
  };
  const Convolution& g = shared->geometry;
  if (!g.isDepthwise) {
    calls.hint.columns = g.groupOutputChannels;
    calls.hint.packedBytesPerColumn =
        shared->weights->bytesOf(shared->place).size() / (g.groups * g.groupOutputChannels);
    calls.hint.guardOneRowTail = shared->guardOneRowTail;
  }
  return makeXnnKernel("convolution2d_nhwc", status, op, std::move(calls));
}

// Makes the kernel of the same float32 convolution on a product of ours.
Result<std::unique_ptr<Kernel>> createFloatLayer(const Creation& c) {
  HEARTH_TRY(packByXnnpack("convolution2d_nhwc",
                           [&](xnn_operator_t* op) { return createOperator(c, op); }));
  const Convolution& g = c.geometry;
  F32Layer layer;
  layer.geometry = g;
  layer.product.taps = size_t{g.kernelHeight} * g.kernelWidth;
  layer.product.channels = g.groupInputChannels;
  layer.product.columns = g.groupOutputChannels;
  layer.product.outputStride = g.groups * g.groupOutputChannels;
  layer.product.lowest = c.floats.lowest;
  layer.product.highest = c.floats.highest;
  layer.source = c.source;
  layer.destination = c.destination;
  layer.addend = c.addend;
  layer.slopes = c.slopes;
  return makeF32LayerKernel(layer, c.weights->bytesOf(c.place));
}

// The layer for a product whose weights XNNPACK packs in groups of `group` inputs.
template <typename Layer>
Layer int8LayerOf(const Creation& c, const Convolution& geometry, size_t group) {
  const size_t inputs =
      size_t{geometry.kernelHeight} * geometry.kernelWidth * geometry.groupInputChannels;
  Layer layer;
  layer.geometry = geometry;
  layer.product.inputs = (inputs + group - 1) / group * group;
  layer.product.columns = geometry.groupOutputChannels;
  layer.product.outputZero = c.outputZero;
  layer.product.lowest = c.steps.lowest;
  layer.product.highest = c.steps.highest;
  layer.inputZero = c.inputZero;
  layer.source = c.source;
  layer.destination = c.destination;
  return layer;
}

// The same for int8. `geometry` is that of the layer even where `c` packs for gathered windows: our
// kernel gathers them itself.
Result<std::unique_ptr<Kernel>> createInt8Layer(const Creation& c, const Convolution& geometry) {
  HEARTH_TRY(packByXnnpack("convolution2d_nhwc",
                           [&](xnn_operator_t* op) { return createOperator(c, op); }));
  if (hasAmxGemm())
    return makeAmxLayerKernel(int8LayerOf<AmxLayer>(c, geometry, kAmxGroup),
                              c.weights->bytesOf(c.place));
  Qs8Layer layer = int8LayerOf<Qs8Layer>(c, geometry, kQs8Group);
  layer.product.outputStride = geometry.groupOutputChannels;
  return makeQs8LayerKernel(layer, c.weights->bytesOf(c.place));
}

// The data of a kernel that packs at `place`; `isWindowed`: over gathered windows. A kernel of ours
// computes `epilogue`, too.
Result<std::shared_ptr<const Creation>> creationOf(
    PlanBuilder* builder, const Convolution& convolution, WeightPlace place, bool isWindowed,
    const KernelTraits& traits, const std::optional<Epilogue>& epilogue = std::nullopt) {
  const Convolution g = isWindowed ? overWindows(convolution) : convolution;
  const graph::Operand& input = builder->operand(g.input);
  const graph::Operand& filter = builder->operand(g.filter);
  const graph::Operand& output = builder->operand(g.output);
  Creation c;
  c.geometry = g;
  c.type = input.type;
  c.isPerChannel = filter.type == OperandType::kTensorQuant8SymmPerChannel;
  c.place = place;
  // XNNPACK may pack groups of one channel as a depthwise layer, at each start.
  const bool isOfOneChannel = g.groups > 1 && g.groupInputChannels == 1 &&
                              builder->constants().converted(g.filter) != nullptr;
  if (g.isDepthwise || isOfOneChannel) {
    HEARTH_ASSIGN(c.kernel, builder->constants().rawData(g.filter));
    if (g.bias != UINT32_MAX) {
      HEARTH_ASSIGN(c.bias, builder->constants().rawData(g.bias));
    }
  } else {
    c.kernel = builder->constants().weightData(g.filter, c.place);
    c.convertedKernel = builder->constants().converted(g.filter);
    if (g.bias != UINT32_MAX) {
      HEARTH_ASSIGN(c.bias, builder->constants().biasData(g.bias, c.place));
    }
    c.released = builder->constants().releasable(g.filter);
  }
  c.packed = convolutionPacking(builder, g);
  const LayerScales scales = LayerScales::of(input, filter, output);
  if (c.isPerChannel) c.kernelScales = scales.from(0, filter.perChannel.scales.size());
  static_cast<LayerArithmetic&>(c) =
      LayerArithmetic::of(input, filter, output, scales, g.activation);
  c.weights = builder->weights();
  c.guardOneRowTail = traits.guardInt8OneRowTail && mayEndInOneRow(g, false);
  c.source = builder->read(g.input);
  if (epilogue) {
    if (epilogue->addend) c.addend = builder->read(*epilogue->addend);
    if (epilogue->slopes) c.slopes = builder->read(*epilogue->slopes);
    c.floats = epilogue->range;
  }
  c.destination = builder->write(epilogue ? epilogue->output : g.output);
  return std::make_shared<const Creation>(std::move(c));
}

using CreateKernel = std::function<Result<std::unique_ptr<Kernel>>()>;

// Creates a kernel on XNNPACK, which gathers `windows` first if there are any.
CreateKernel onXnnpack(const std::shared_ptr<const Creation>& creation,
                       const std::optional<Im2col>& windows) {
  if (!windows)
    return [creation] {
      return createKernel(creation);
    };
  return [creation, windows = *windows]() -> Result<std::unique_ptr<Kernel>> {
    const auto blockWindows = std::make_shared<size_t>(0);
    HEARTH_ASSIGN(std::unique_ptr<Kernel> product, createKernel(creation, blockWindows));
    return std::make_unique<WindowedKernel>(windows, *creation, blockWindows, std::move(product));
  };
}

// Size of the table of pointers that XNNPACK's kernel fills before it runs.
size_t pointerTableBytes(const Convolution& g) {
  return g.outputHeight * g.outputWidth * g.kernelHeight * g.kernelWidth * sizeof(void*);
}
constexpr size_t kMostTableBytes = size_t{1} << 20;

}  // namespace

bool mayEndInOneRow(const Convolution& g, bool isHybrid) {
  const bool hasTail = endsInOneRow(g.outputHeight * g.outputWidth);
  if (isHybrid) return hasTail;
  const bool isIndirect = g.kernelHeight * g.kernelWidth > 1 ||
                          g.strideHeight * g.strideWidth > 1 ||
                          g.top + g.bottom + g.left + g.right > 0;
  return hasTail && isIndirect && g.groupInputChannels > 64;
}

// Offers the layer to the kernels, the fastest first: each add…() takes it or returns false, and
// says where it is declared what it takes. XNNPACK's kernel comes last.
Result<bool> addConvolution(PlanBuilder* builder, const Convolution& convolution) {
  Convolution g = convolution;
  const graph::Operand& input = builder->operand(g.input);
  const bool isHybrid = !typesFit(builder, g.input, g.filter, g.bias, g.output);
  KernelTraits traits;
  if (!g.isDepthwise && (isHybrid || input.type == OperandType::kTensorQuant8AsymmSigned)) {
    HEARTH_ASSIGN(traits, builder->traits());
  }
  if (traits.avoidInt8OneRowTail && mayEndInOneRow(g, isHybrid))
    return builder->decline(kWrongOnThisCpu);
  if (input.type == OperandType::kTensorQuant16Symm) return addQs16Layer(builder, g, "CONV_2D");
  if (input.type == OperandType::kTensorFloat16) return builder->decline(kHalf);
  if (isHybrid) return addHybridConvolution(builder, g);
  const graph::Operand& output = builder->operand(g.output);
  if (!LayerScales::areLow(input, builder->operand(g.filter), output))
    return builder->decline(kHighScales);
  if (!activationFits(g.activation, output)) return builder->decline(kOneValue);
  HEARTH_ASSIGN(const bool isOwn, addQu8Convolution(builder, convolution));
  if (isOwn) return true;
  HEARTH_ASSIGN(const bool isOwnDepthwise, addQs8Depthwise(builder, convolution));
  if (isOwnDepthwise) return true;
  HEARTH_ASSIGN(const bool isOneChannel, addQs8OneChannel(builder, convolution));
  if (isOneChannel) return true;
  HEARTH_ASSIGN(const bool isAvx2Depthwise, addAvx2Depthwise(builder, convolution));
  if (isAvx2Depthwise) return true;
  HEARTH_ASSIGN(const bool isFloatDepthwise, addF32Depthwise(builder, convolution));
  if (isFloatDepthwise) return true;

  if (const auto view = builder->paddedView(g.input)) applyPaddedView(*view, &g);
  HEARTH_ASSIGN(const bool isNarrow, addF32Narrow(builder, g));
  if (isNarrow) return true;
  HEARTH_ASSIGN(const bool isHalf, addF16wLayer(builder, g, "CONV_2D"));
  if (isHalf) return true;
  HEARTH_ASSIGN(const bool isAfterWinograd, addWinogradLayer(builder, g));
  if (isAfterWinograd) return true;
  HEARTH_ASSIGN(const bool isOnAvx2, addAvx2Layer(builder, g, "CONV_2D"));
  if (isOnAvx2) return true;
  const auto placeOf = [&](bool isOfWindows) {
    return WeightPlace::of(builder->currentOperation(),
                           isOfWindows ? PackedLayout::kXnnpackWindows : PackedLayout::kXnnpack);
  };
  const bool isWindowed = wantsWindows(input.type, g);
  const Im2col gather(g, graph::elementSize(input.type),
                      input.type == OperandType::kTensorFloat32
                          ? uint8_t{0}
                          : static_cast<uint8_t>(input.zeroPoint));
  const auto windows = [&](bool isUsed) {
    return isUsed ? std::optional(gather) : std::nullopt;
  };
  const bool hasOwnFloat =
      input.type == OperandType::kTensorFloat32 && isF32Layer(g) && hasF32Gemm();
  std::optional<Epilogue> epilogue;
  if (hasOwnFloat && !isFasterOnXnnpack(g)) {
    HEARTH_ASSIGN(epilogue, findEpilogue(builder, g.activation));
  }
  HEARTH_ASSIGN(const std::shared_ptr<const Creation> first,
                creationOf(builder, g, placeOf(isWindowed), isWindowed, traits, epilogue));
  if (traits.guardInt8OneRowTail && mayEndInOneRow(g, false))
    builder->reserveWriteSlack(first->destination, g.groups * g.groupOutputChannels);
  CreateKernel create = onXnnpack(first, windows(isWindowed));
  CreateKernel createOther;
  const bool hasOwnInt8 = input.type == OperandType::kTensorQuant8AsymmSigned &&
                          ((isQs8Layer(first->geometry, kAmxGroup) && hasAmxGemm()) ||
                           (isQs8Layer(first->geometry) && hasQs8Gemm()));
  bool isOwnFirst = false;
  if (hasOwnFloat || hasOwnInt8) {
    // Both kernels read the same packed weights.
    createOther = [first, g, hasOwnFloat] {
      return hasOwnFloat ? createFloatLayer(*first) : createInt8Layer(*first, g);
    };
    isOwnFirst = !hasOwnFloat || !isFasterOnXnnpack(g);
    if (isOwnFirst) std::swap(create, createOther);
    // Measuring XNNPACK's kernel would take the memory of its table; choosing it would slow down
    // later starts, which fill the table.
    if (isOwnFirst && pointerTableBytes(g) > kMostTableBytes) createOther = nullptr;
  } else if (canGatherWindows(input.type, g)) {
    HEARTH_ASSIGN(const std::shared_ptr<const Creation> other,
                  creationOf(builder, g, placeOf(!isWindowed), !isWindowed, traits));
    createOther = onXnnpack(other, windows(!isWindowed));
  }
  Node& node = builder->add(isOwnFirst ? "own" : "xnnpack", {first->source}, {first->destination});
  if (epilogue) {
    for (const uint32_t operation : epilogue->operations) builder->takeOver(operation);
    if (first->addend) {
      node.inputs.push_back(*first->addend);
      // The inputs of the convolution are read after the first sums are written.
      if (!builder->shareMemory(first->source, *first->addend)) node.inPlaceInputs = {1};
    }
    if (first->slopes) node.inputs.push_back(*first->slopes);
    createOther = nullptr;
  }
  builder->constants().releaseAfterPacking(&node, g.filter);
  node.create = std::move(create);
  node.createOther = std::move(createOther);
  return true;
}

}  // namespace hearth::cpu
