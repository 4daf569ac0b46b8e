// SPDX-License-Identifier: Apache-2.0
// Pools. Inputs: the data; the implicit padding code or left, right, top, bottom; stride width and
// height; filter width and height; activation; layout.
#include "ops/pool_2d.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

#include "base/vector_dispatch.h"
#include "ops/quantization.h"
#include "ops/real_values.h"
#include "ops/registry.h"
#include "ops/validation.h"
#include "threads/parallel_ranges.h"

namespace hearth::ops {
namespace {

struct Arguments {
  bool isImplicit;
  size_t strides;
  size_t filter;
  size_t activation;
  size_t layout;
};

constexpr Arguments kImplicitArguments = {true, 2, 4, 6, 7};
constexpr Arguments kExplicitArguments = {false, 5, 7, 9, 10};

const Arguments& argumentsOf(size_t count) {
  return count <= 8 ? kImplicitArguments : kExplicitArguments;
}

Status validateTypes(const Signature& signature, TypeSet types) {
  const Arguments& arguments = argumentsOf(signature.inputCount());
  HEARTH_TRY(signature.counts(arguments.layout, arguments.layout + 1, 1));
  HEARTH_TRY(signature.inputType(0, types));
  HEARTH_TRY(signature.outputTypeLike(0, 0));
  HEARTH_TRY(signature.outputQuantizationLike(0, 0));
  for (size_t i = 1; i < arguments.layout; ++i)
    HEARTH_TRY(signature.inputType(i, OperandType::kInt32));
  HEARTH_TRY(signature.optionalInputType(arguments.layout, OperandType::kBool));
  HEARTH_TRY(signature.inputRank(0, 4, 4));
  return signature.outputRank(0, 4, 4);
}

Status validatePool(const Signature& signature) {
  return validateTypes(signature, kFloatTensors | kQuant8Tensors | OperandType::kTensorQuant16Symm);
}

Status validateL2Pool(const Signature& signature) {
  return validateTypes(signature, kFloatTensors);
}

Status prepare(OperationContext& context) {
  HEARTH_ASSIGN(const Pool2dParameters p, parsePool2d(context));
  return context.setOutputDimensions(0, p.output.dimensions(p.isNchw));
}

// What each kind of pool does with the elements of one window.
struct Average {
  double sum = 0.0;
  size_t count = 0;
  void add(float value) {
    sum += value;
    ++count;
  }
  float result() const { return static_cast<float>(sum / static_cast<double>(count)); }
};

struct Maximum {
  float highest = -std::numeric_limits<float>::infinity();
  void add(float value) {
    if (value > highest || std::isnan(value)) highest = value;
  }
  float result() const { return highest; }
};

struct RootMeanSquare {
  Average average;
  void add(float value) { average.add(value * value); }
  float result() const { return std::sqrt(average.result()); }
};

// A window of an image whose channels are neighbours in memory.
struct PixelWindow {
  const float* first = nullptr;  // the first pixel
  size_t rows = 0, columns = 0;
  size_t rowStride = 0, columnStride = 0;
};

// Number of channels whose sums are kept in registers at a time.
constexpr size_t kFloatLanes = 16;
typedef float Floats __attribute__((vector_size(kFloatLanes * sizeof(float))));

template <bool isSquared>
HEARTH_INLINE inline void addPixel(const float* values, Floats* sums) {
  Floats pixel;
  std::memcpy(&pixel, values, sizeof(pixel));
  *sums += isSquared ? pixel * pixel : pixel;
}

// The sum over a window for one channel.
template <bool isSquared>
double sumOf(const PixelWindow& w, size_t channel) {
  double sum = 0.0;
  for (size_t y = 0; y < w.rows; ++y) {
    for (size_t x = 0; x < w.columns; ++x) {
      const float value = w.first[y * w.rowStride + x * w.columnStride + channel];
      sum += static_cast<double>(isSquared ? value * value : value);
    }
  }
  return sum;
}

// The sums over a window for as many neighbouring channels as two vectors hold.
template <bool isSquared>
HEARTH_INLINE inline void addWindow(const PixelWindow& w, size_t channel, Floats* sums) {
  for (size_t y = 0; y < w.rows; ++y) {
    for (size_t x = 0; x < w.columns; ++x) {
      const float* pixel = w.first + y * w.rowStride + x * w.columnStride + channel;
      addPixel<isSquared>(pixel, &sums[0]);
      addPixel<isSquared>(pixel + kFloatLanes, &sums[1]);
    }
  }
}

// The means, or the roots of the mean squares, of windows whose results are neighbours in memory.
template <bool isSquared>
void poolFloats(std::span<const PixelWindow> windows, size_t channels, ActivationRange range,
                float* target) {
  base::onWidestVectors([=]() HEARTH_INLINE {
    // Sums of at most this many elements are exact enough in single precision.
    constexpr size_t kFew = 256;
    constexpr size_t kStep = 2 * kFloatLanes;
    float* pixel = target;
    for (const PixelWindow& w : windows) {
      const size_t count = w.rows * w.columns;
      const float factor = 1.0f / static_cast<float>(count);
      size_t c = 0;
      for (; count <= kFew && c + kStep <= channels; c += kStep) {
        Floats sums[2] = {};
        addWindow<isSquared>(w, c, sums);
        for (Floats& sum : sums) sum *= factor;
        std::memcpy(pixel + c, sums, sizeof(sums));
      }
      for (; c < channels; ++c)
        pixel[c] = static_cast<float>(sumOf<isSquared>(w, c) / static_cast<double>(count));
      pixel += channels;
    }
    if (!isSquared && range.lowest == -std::numeric_limits<float>::infinity() &&
        range.highest == std::numeric_limits<float>::infinity())
      return;
    const size_t all = windows.size() * channels;
#pragma GCC ivdep
    for (size_t i = 0; i < all; ++i) {
      float value = isSquared ? std::sqrt(target[i]) : target[i];
      value = value < range.lowest ? range.lowest : value;
      target[i] = value > range.highest ? range.highest : value;
    }
  });
}

// A window of 8- or 16-bit numbers.
template <typename T>
struct WholeWindow {
  const T* first = nullptr;
  size_t rows = 0, columns = 0;
  size_t rowStride = 0, columnStride = 0;
  QuantizedRange range;
};

// The inner loops; each computes the results of one channel or of kLanes channels.
constexpr size_t kLanes = 8;
typedef double Doubles __attribute__((vector_size(kLanes * sizeof(double))));
typedef int16_t Shorts __attribute__((vector_size(kLanes * sizeof(int16_t))));
typedef int32_t Ints __attribute__((vector_size(kLanes * sizeof(int32_t))));

struct WholeMaximum {
  HEARTH_INLINE static Shorts ofLanes(const WholeWindow<int16_t>& w, size_t channel) {
    Shorts highest = Shorts{} + static_cast<int16_t>(w.range.lowest);
    for (size_t y = 0; y < w.rows; ++y) {
      for (size_t x = 0; x < w.columns; ++x) {
        Shorts pixel;
        std::memcpy(&pixel, w.first + y * w.rowStride + x * w.columnStride + channel,
                    sizeof(pixel));
        highest = pixel > highest ? pixel : highest;
      }
    }
    const Shorts limit = Shorts{} + static_cast<int16_t>(w.range.highest);
    return highest < limit ? highest : limit;
  }
  template <typename T>
  static T ofOne(const WholeWindow<T>& w, size_t channel) {
    int32_t highest = w.range.lowest;
    for (size_t y = 0; y < w.rows; ++y)
      for (size_t x = 0; x < w.columns; ++x)
        highest =
            std::max<int32_t>(highest, w.first[y * w.rowStride + x * w.columnStride + channel]);
    return static_cast<T>(std::min(highest, w.range.highest));
  }
};

// Means are rounded half away from zero, wherever the zero point is.
struct WholeAverage {
  HEARTH_INLINE static Shorts ofLanes(const WholeWindow<int16_t>& w, size_t channel) {
    Doubles sums{};
    for (size_t y = 0; y < w.rows; ++y) {
      Ints ofRow{};
      for (size_t x = 0; x < w.columns; ++x) {
        Shorts pixel;
        std::memcpy(&pixel, w.first + y * w.rowStride + x * w.columnStride + channel,
                    sizeof(pixel));
        ofRow += __builtin_convertvector(pixel, Ints);
      }
      sums += __builtin_convertvector(ofRow, Doubles);
    }
    const double count = static_cast<double>(w.rows * w.columns);
    const size_t half = w.rows * w.columns / 2;
    const Doubles halves = Doubles{} + static_cast<double>(half);
    // The division cannot round up to the next whole number: the operands are whole and small.
    const Ints means =
        __builtin_convertvector((sums + (sums > 0.0 ? halves : -halves)) / count, Ints);
    const Ints lowest = Ints{} + w.range.lowest;
    const Ints highest = Ints{} + w.range.highest;
    const Ints raised = means > lowest ? means : lowest;
    return __builtin_convertvector(raised < highest ? raised : highest, Shorts);
  }
  template <typename T>
  static T ofOne(const WholeWindow<T>& w, size_t channel) {
    int64_t sum = 0;
    for (size_t y = 0; y < w.rows; ++y)
      for (size_t x = 0; x < w.columns; ++x)
        sum += w.first[y * w.rowStride + x * w.columnStride + channel];
    const auto count = static_cast<int64_t>(w.rows * w.columns);
    const int64_t mean = (sum + (sum > 0 ? count / 2 : -(count / 2))) / count;
    return static_cast<T>(std::clamp<int64_t>(mean, w.range.lowest, w.range.highest));
  }
};

// Exact. Scale and zero point, which the output shares with the input, matter for the bounds of the
// activation only.
template <typename Pool, typename T>
void executeWhole(const OperationContext& context, const Pool2dParameters& p) {
  const T* source = context.inputs[0].as<T>();
  T* target = context.outputs[0].as<T>();
  const Window2d& w = p.window;
  const ImageLayout from(p.input, p.isNchw);
  const ImageLayout to(p.output, p.isNchw);
  const QuantizedRange range = quantizedActivationRange(p.activation, *context.outputs[0].operand);
  const size_t channels = p.output.channels;
  const auto poolPixel = [&](size_t batch, uint32_t row, uint32_t column) {
    const int64_t top = int64_t{row} * w.strideHeight - w.padding.top;
    const int64_t left = int64_t{column} * w.strideWidth - w.padding.left;
    const auto y = static_cast<size_t>(std::max<int64_t>(top, 0));
    const auto x = static_cast<size_t>(std::max<int64_t>(left, 0));
    const auto bottom =
        static_cast<size_t>(std::min<int64_t>(top + w.filterHeight, p.input.height));
    const auto right = static_cast<size_t>(std::min<int64_t>(left + w.filterWidth, p.input.width));
    const WholeWindow<T> window{source + from.offset(batch, y, x),
                                bottom - y,
                                right - x,
                                from.rowStride,
                                from.columnStride,
                                range};
    T* pixel = target + to.offset(batch, row, column);
    size_t c = 0;
    if constexpr (std::is_same_v<T, int16_t>) {
      // The sum of a row fits in 32 bits.
      if (!p.isNchw && window.columns < (1 << 16)) {
        const size_t whole = channels - channels % kLanes;
        base::onWidestVectors([window, pixel, whole]() HEARTH_INLINE {
          for (size_t first = 0; first < whole; first += kLanes) {
            const Shorts values = Pool::ofLanes(window, first);
            std::memcpy(pixel + first, &values, sizeof(values));
          }
        });
        c = whole;
      }
    }
    for (; c < channels; ++c)
      pixel[c * to.channelStride] = Pool::ofOne(window, c * from.channelStride);
  };
  const uint64_t work = uint64_t{p.output.width} * channels * sizeof(T) *
                        static_cast<uint64_t>(w.filterHeight) *
                        static_cast<uint64_t>(w.filterWidth);
  threads::forRanges(context.threadPool, uint64_t{p.output.batches} * p.output.height,
                     threads::grainOf(work), [&](uint64_t begin, uint64_t end) {
                       for (uint64_t line = begin; line < end; ++line)
                         for (uint32_t column = 0; column < p.output.width; ++column)
                           poolPixel(line / p.output.height,
                                     static_cast<uint32_t>(line % p.output.height), column);
                     });
}

template <typename Pool>
Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const Pool2dParameters p, parsePool2d(context));
  using Whole = std::conditional_t<std::is_same_v<Pool, Maximum>, WholeMaximum, WholeAverage>;
  switch (context.inputs[0].type()) {
    case OperandType::kTensorQuant16Symm:
      executeWhole<Whole, int16_t>(context, p);
      return {};
    case OperandType::kTensorQuant8Asymm:
      executeWhole<Whole, uint8_t>(context, p);
      return {};
    case OperandType::kTensorQuant8AsymmSigned:
      executeWhole<Whole, int8_t>(context, p);
      return {};
    default:
      break;
  }
  const Window2d& w = p.window;
  const ImageLayout inputLayout(p.input, p.isNchw);
  const ImageLayout outputLayout(p.output, p.isNchw);
  const ActivationRange range = activationRange(p.activation);
  const RealInput input(context.inputs[0]);
  RealOutput output(context.outputs[0]);
  const bool isAdded = !std::is_same_v<Pool, Maximum> && !p.isNchw;
  const auto poolLine = [&](size_t b, uint32_t row) {
    const int64_t top = int64_t{row} * w.strideHeight - w.padding.top;
    const int64_t firstRow = std::max<int64_t>(top, 0);
    const int64_t lastRow = std::min<int64_t>(top + w.filterHeight, p.input.height);
    std::vector<PixelWindow> windows;
    if (isAdded) windows.reserve(p.output.width);
    for (uint32_t column = 0; column < p.output.width; ++column) {
      const int64_t left = int64_t{column} * w.strideWidth - w.padding.left;
      const int64_t firstColumn = std::max<int64_t>(left, 0);
      const int64_t lastColumn = std::min<int64_t>(left + w.filterWidth, p.input.width);
      if (isAdded) {
        const auto y = static_cast<size_t>(firstRow);
        const auto x = static_cast<size_t>(firstColumn);
        windows.push_back({input.data() + inputLayout.offset(b, y, x),
                           static_cast<size_t>(lastRow) - y, static_cast<size_t>(lastColumn) - x,
                           inputLayout.rowStride, inputLayout.columnStride});
        continue;
      }
      for (size_t c = 0; c < p.output.channels; ++c) {
        Pool pool;
        for (int64_t y = firstRow; y < lastRow; ++y) {
          for (int64_t x = firstColumn; x < lastColumn; ++x)
            pool.add(input[inputLayout.offset(b, static_cast<size_t>(y), static_cast<size_t>(x)) +
                           c * inputLayout.channelStride]);
        }
        output[outputLayout.offset(b, row, column) + c * outputLayout.channelStride] =
            range.apply(pool.result());
      }
    }
    if (isAdded)
      poolFloats<std::is_same_v<Pool, RootMeanSquare>>(
          windows, p.output.channels, range, output.data() + outputLayout.offset(b, row, 0));
  };
  const uint64_t work = uint64_t{p.output.width} * p.output.channels * sizeof(float) *
                        static_cast<uint64_t>(w.filterHeight) *
                        static_cast<uint64_t>(w.filterWidth);
  threads::forRanges(context.threadPool, uint64_t{p.output.batches} * p.output.height,
                     threads::grainOf(work), [&](uint64_t begin, uint64_t end) {
                       for (uint64_t line = begin; line < end; ++line)
                         poolLine(line / p.output.height,
                                  static_cast<uint32_t>(line % p.output.height));
                     });
  output.store();
  return {};
}

}  // namespace

Result<Pool2dParameters> parsePool2d(const OperationContext& context) {
  const Arguments& arguments = argumentsOf(context.inputs.size());
  HEARTH_TRY(requireArguments(context, 1, 1));
  HEARTH_TRY(requireRank(context, 0, 4, 4));
  Pool2dParameters p;
  HEARTH_ASSIGN(p.isNchw, context.scalar<bool>(arguments.layout, false));
  HEARTH_ASSIGN(p.activation, parseActivation(context, arguments.activation));
  p.input = ImageShape::of(context.inputs[0].dimensions, p.isNchw);
  if (p.input.channels == 0)
    return fail(ErrorCode::kBadData, "The image of {} has no channels.", context.describe());
  HEARTH_ASSIGN(const int32_t filterWidth, context.scalar<int32_t>(arguments.filter));
  HEARTH_ASSIGN(const int32_t filterHeight, context.scalar<int32_t>(arguments.filter + 1));
  HEARTH_TRY(setFilterSize(context, filterHeight, filterWidth, &p.window));
  HEARTH_TRY(parseStrides(context, arguments.strides, 0, &p.window));
  HEARTH_TRY(parsePadding(context, 1, arguments.isImplicit, p.input, &p.window));
  const Padding2d& padding = p.window.padding;
  if (std::max(padding.top, padding.bottom) >= filterHeight ||
      std::max(padding.left, padding.right) >= filterWidth)
    return fail(ErrorCode::kBadData,
                "The padding of {} (top {}, bottom {}, left {}, right {}) must be smaller than its "
                "filter of {} by {}.",
                context.describe(), padding.top, padding.bottom, padding.left, padding.right,
                filterHeight, filterWidth);
  p.output = {p.input.batches, outputHeight(p.window, p.input.height),
              outputWidth(p.window, p.input.width), p.input.channels};
  return p;
}

const OperationDefinition kAveragePool2dOperation = {OperationType::kAveragePool2d, validatePool,
                                                     prepare, execute<Average>};
const OperationDefinition kL2Pool2dOperation = {OperationType::kL2Pool2d, validateL2Pool, prepare,
                                                execute<RootMeanSquare>};
const OperationDefinition kMaxPool2dOperation = {OperationType::kMaxPool2d, validatePool, prepare,
                                                 execute<Maximum>};

}  // namespace hearth::ops
