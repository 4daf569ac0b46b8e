// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/lowering/transpose_layer.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "drivers/cpu/kernels/byte_tasks.h"
#include "drivers/cpu/lowering/avx2_layer.h"
#include "drivers/cpu/lowering/layer_scales.h"
#include "drivers/cpu/lowering/qs8_packing.h"
#include "drivers/cpu/microkernels/portable/im2col.h"
#include "drivers/cpu/microkernels/x86/avx2/avx2_gemm.h"
#include "drivers/cpu/microkernels/x86/instruction_sets.h"
#include "drivers/cpu/weights/layer_packing.h"
#include "ops/quantization.h"

namespace hearth::cpu {
namespace {

// The product of one combination of parts on AVX-512 VNNI.
struct VnniProduct {
  static constexpr size_t kReadSlack = kQs8Group;
  Qs8Gemm product;

  // Bytes from one prepared window to the next.
  static size_t rowBytes(size_t windowBytes) { return windowBytes; }
  // Whether windows are gathered where they are prepared, rowBytes() apart. Otherwise they lie one
  // behind the other.
  static bool gathersInPlace() { return true; }
  static void prepare(const uint8_t* windows, size_t count, size_t windowBytes, uint8_t* prepared) {
    makeUnsigned(reinterpret_cast<const int8_t*>(windows), count * windowBytes, prepared);
  }
  void multiply(const uint8_t* prepared, size_t count, size_t windowBytes, size_t firstPanel,
                size_t lastPanel, int8_t* output) const {
    multiplyQs8(product, prepared, windowBytes, count, firstPanel, lastPanel, output);
  }
};

// The same on AVX2.
struct Avx2Product {
  static constexpr size_t kReadSlack = kAvx2ReadSlack;
  Avx2Gemm product;

  Avx2Form form() const { return product.weights.form(); }
  size_t rowBytes(size_t windowBytes) const { return avx2RowBytes(form(), windowBytes); }
  bool gathersInPlace() const { return form() != Avx2Form::kWords; }
  void prepare(const uint8_t* windows, size_t count, size_t windowBytes, uint8_t* prepared) const {
    prepareAvx2Rows(form(), windows, gathersInPlace() ? rowBytes(windowBytes) : windowBytes, count,
                    windowBytes, 0x80, prepared);
  }
  void multiply(const uint8_t* prepared, size_t count, size_t, size_t firstPanel, size_t lastPanel,
                int8_t* output) const {
    multiplyAvx2(product, prepared, count, firstPanel, lastPanel,
                 reinterpret_cast<uint8_t*>(output));
  }
};
// Tasks are divided by panels, which both have.
static_assert(kAvx2Columns == kQs8Columns);

template <typename Product>
class TransposeLayerKernel final : public ByteTaskKernel<TransposeLayer> {
 public:
  // nextProduct(rows, columns) is called for each combination, in the order of packed weights.
  template <typename NextProduct>
  TransposeLayerKernel(const TransposeLayer& layer, const NextProduct& nextProduct)
      : ByteTaskKernel(layer) {
    for (const TransposePart& rows : layer.partsOfRows()) {
      for (const TransposePart& columns : layer.partsOfColumns()) {
        Phase phase = {rows, columns, windowsOf(rows, columns), nextProduct(rows, columns)};
        const size_t windowBytes = phase.windows.windowBytes();
        mostRowBytes_ =
            std::max(mostRowBytes_, phase.product.rowBytes(windowBytes) +
                                        (phase.product.gathersInPlace() ? 0 : windowBytes));
        // The first part of each dimension has the most outputs.
        gridRows_ = std::max(gridRows_, rows.count);
        gridColumns_ = std::max(gridColumns_, columns.count);
        phases_.push_back(phase);
      }
    }
  }

  Result<size_t> reshape(threads::ThreadPool* pool) override {
    return tasks_.divide(threads::threadsOf(pool), places(), mostRowBytes_, Product::kReadSlack);
  }

 private:
  struct Phase {
    TransposePart rows, columns;
    Im2col windows;
    Product product;
  };

  Im2col windowsOf(const TransposePart& rows, const TransposePart& columns) const {
    const ops::ImageShape& input = layer_.geometry.input;
    const bool isEmpty = rows.taps == 0 || columns.taps == 0;
    Convolution g;
    g.kernelHeight = isEmpty ? 0 : static_cast<uint32_t>(rows.taps);
    g.kernelWidth = isEmpty ? 0 : static_cast<uint32_t>(columns.taps);
    g.groupInputChannels = input.channels;
    g.batch = input.batches;
    g.inputHeight = input.height;
    g.inputWidth = input.width;
    g.outputHeight = rows.count;
    g.outputWidth = columns.count;
    return {g, 1, static_cast<uint8_t>(layer_.inputZero), rows.before, columns.before};
  }

  // Places of the grid: each has an output of every phase, except in the last row and column.
  size_t places() const { return layer_.geometry.input.batches * gridRows_ * gridColumns_; }

  // Outputs of one phase in one row.
  struct Piece {
    const uint8_t* windows;
    size_t count;
    int8_t* output;
  };

  void compute(size_t first, size_t last, size_t firstPanel, size_t lastPanel,
               uint8_t* scratch) const override {
    for (const Phase& phase : phases_) compute(phase, first, last, firstPanel, lastPanel, scratch);
  }

  // Computes the outputs of `phase` at the places [first, last).
  void compute(const Phase& phase, size_t first, size_t last, size_t firstPanel, size_t lastPanel,
               uint8_t* scratch) const {
    const ops::TransposeConv2dParameters& g = layer_.geometry;
    const size_t windowBytes = phase.windows.windowBytes();
    const size_t rowBytes = phase.product.rowBytes(windowBytes);
    const bool inPlace = phase.product.gathersInPlace();
    uint8_t* const gathered =
        inPlace ? scratch : scratch + (last - first) * rowBytes + Product::kReadSlack;
    const size_t stride = inPlace ? rowBytes : windowBytes;
    std::vector<Piece> pieces;
    size_t windows = 0;
    for (size_t next = 0; first < last; first += next) {
      const size_t column = first % gridColumns_;
      const size_t row = first / gridColumns_ % gridRows_;
      const size_t image = first / gridColumns_ / gridRows_;
      next = std::min(gridColumns_ - column, last - first);
      if (row >= phase.rows.count || column >= phase.columns.count) continue;
      const size_t count = std::min(next, phase.columns.count - column);
      const size_t window = (image * phase.rows.count + row) * phase.columns.count + column;
      if (windowBytes > 0)
        phase.windows.gather(reinterpret_cast<const uint8_t*>(source_), window, window + count,
                             gathered + windows * stride, stride);
      const size_t y = phase.rows.first + row * static_cast<size_t>(g.window.strideHeight);
      const size_t x = phase.columns.first + column * static_cast<size_t>(g.window.strideWidth);
      const size_t pixel = (image * g.output.height + y) * g.output.width + x;
      pieces.push_back(
          {scratch + windows * rowBytes, count, destination_ + pixel * g.output.channels});
      windows += count;
    }
    phase.product.prepare(gathered, windows, windowBytes, scratch);
    for (size_t panel = firstPanel; panel < lastPanel; panel += ByteTasks::kPanelsPerBlock)
      for (const Piece& piece : pieces)
        phase.product.multiply(piece.windows, piece.count, windowBytes, panel,
                               std::min(lastPanel, panel + ByteTasks::kPanelsPerBlock),
                               piece.output);
  }

  std::vector<Phase> phases_;
  size_t mostRowBytes_ = 0;
  size_t gridRows_ = 0, gridColumns_ = 0;
};

// What packing reads, and the layer.
struct Creation : LayerPacking {
  TransposeLayer layer;
  const uint8_t* filter = nullptr;
  const uint8_t* bias = nullptr;
  std::vector<float> factors;
};

constexpr const char* kKind = "TRANSPOSE_CONV_2D";

Result<std::unique_ptr<Kernel>> makeAvx2Kernel(const Creation& c) {
  std::optional<Avx2TransposePacker> packer;
  HEARTH_ASSIGN(const std::span<const uint8_t> packed,
                c.weights->packMeasured(
                    c.place, kKind, c.packed.get(),
                    [&](std::span<const uint8_t> known) {
                      return makeAvx2TransposeKernel(c.layer, known) != nullptr;
                    },
                    [&] {
                      packer.emplace(c.layer, reinterpret_cast<const int8_t*>(c.filter),
                                     reinterpret_cast<const int32_t*>(c.bias), c.factors.data(),
                                     std::nullopt);
                      return packer->bytes();
                    },
                    [&](uint8_t* bytes) { packer->pack(bytes); }));
  std::unique_ptr<Kernel> kernel = makeAvx2TransposeKernel(c.layer, packed);
  if (kernel == nullptr)
    return fail(ErrorCode::kUnsupported, "The packed weights of a {} are damaged.", kKind);
  return kernel;
}

Result<std::unique_ptr<Kernel>> makeKernel(const Creation& c) {
  if (!hasAvx512Vnni()) return makeAvx2Kernel(c);
  TransposeLayer layer = c.layer;
  HEARTH_ASSIGN(
      layer.product.packed,
      c.weights->pack(c.place, kKind, c.packed.get(), layer.packedBytes(), [&](uint8_t* data) {
        packTranspose(layer, reinterpret_cast<const int8_t*>(c.filter),
                      reinterpret_cast<const int32_t*>(c.bias), c.factors.data(), data);
      }));
  return makeTransposeLayerKernel(layer);
}

// The weights of one combination of parts, [outputs][taps of the rows][taps of the
// columns][inputs].
std::vector<int8_t> weightsOf(const TransposeLayer& layer, const TransposePart& rows,
                              const TransposePart& columns, const int8_t* weights) {
  const ops::TransposeConv2dParameters& g = layer.geometry;
  const auto filterHeight = static_cast<size_t>(g.window.filterHeight);
  const auto filterWidth = static_cast<size_t>(g.window.filterWidth);
  const auto strideHeight = static_cast<size_t>(g.window.strideHeight);
  const auto strideWidth = static_cast<size_t>(g.window.strideWidth);
  const size_t channels = g.input.channels;
  std::vector<int8_t> part;
  part.reserve(g.output.channels * rows.taps * columns.taps * channels);
  for (size_t output = 0; output < g.output.channels; ++output)
    for (size_t y = 0; y < rows.taps; ++y)
      for (size_t x = 0; x < columns.taps; ++x) {
        const size_t tapRow = rows.lastTap - y * strideHeight;
        const size_t tapColumn = columns.lastTap - x * strideWidth;
        const int8_t* const tap =
            weights + ((output * filterHeight + tapRow) * filterWidth + tapColumn) * channels;
        part.insert(part.end(), tap, tap + channels);
      }
  return part;
}

// Packs the panels of one combination of parts.
void packPart(const TransposeLayer& layer, const TransposePart& rows, const TransposePart& columns,
              const int8_t* weights, const int32_t* bias, const float* factors, uint8_t* packed) {
  const Qs8Gemm product = layer.productOf(rows, columns);
  const std::vector<int8_t> part = weightsOf(layer, rows, columns, weights);
  const size_t inputs = part.size() / std::max<size_t>(1, product.columns);
  packQs8(
      product, inputs, [&](size_t column, size_t k) { return part[column * inputs + k]; }, bias,
      factors, layer.inputZero, packed);
}

size_t inputsOf(const TransposeLayer& layer, const TransposePart& rows,
                const TransposePart& columns) {
  return rows.taps * columns.taps * layer.geometry.input.channels;
}

}  // namespace

std::vector<TransposePart> TransposeLayer::partsOfRows() const {
  return transposePartsOfRows(geometry);
}

std::vector<TransposePart> TransposeLayer::partsOfColumns() const {
  return transposePartsOfColumns(geometry);
}

Qs8Gemm TransposeLayer::productOf(const TransposePart& rows, const TransposePart& columns) const {
  const size_t inputs = inputsOf(*this, rows, columns);
  Qs8Gemm part = product;
  part.inputs = (inputs + kQs8Group - 1) / kQs8Group * kQs8Group;
  part.columns = geometry.output.channels;
  part.outputStride = part.columns * static_cast<size_t>(geometry.window.strideWidth);
  return part;
}

size_t TransposeLayer::packedBytes() const {
  size_t bytes = 0;
  for (const TransposePart& rows : partsOfRows()) {
    for (const TransposePart& columns : partsOfColumns()) {
      const Qs8Gemm part = productOf(rows, columns);
      bytes += part.panels() * part.panelBytes();
    }
  }
  return bytes;
}

void packTranspose(const TransposeLayer& layer, const int8_t* weights, const int32_t* bias,
                   const float* factors, uint8_t* packed) {
  for (const TransposePart& rows : layer.partsOfRows()) {
    for (const TransposePart& columns : layer.partsOfColumns()) {
      packPart(layer, rows, columns, weights, bias, factors, packed);
      const Qs8Gemm part = layer.productOf(rows, columns);
      packed += part.panels() * part.panelBytes();
    }
  }
}

std::unique_ptr<Kernel> makeTransposeLayerKernel(const TransposeLayer& layer) {
  const uint8_t* packed = layer.product.packed;
  return std::make_unique<TransposeLayerKernel<VnniProduct>>(
      layer, [&](const TransposePart& rows, const TransposePart& columns) {
        VnniProduct next = {layer.productOf(rows, columns)};
        next.product.packed = packed;
        packed += next.product.panels() * next.product.panelBytes();
        return next;
      });
}

Avx2TransposePacker::Avx2TransposePacker(const TransposeLayer& layer, const int8_t* weights,
                                         const int32_t* bias, const float* factors,
                                         std::optional<Avx2Form> form) {
  for (const TransposePart& rows : layer.partsOfRows()) {
    for (const TransposePart& columns : layer.partsOfColumns()) {
      const std::vector<int8_t>& part =
          weights_.emplace_back(weightsOf(layer, rows, columns, weights));
      Avx2Weights read;
      read.values = reinterpret_cast<const uint8_t*>(part.data());
      read.columns = layer.geometry.output.channels;
      read.inputs = inputsOf(layer, rows, columns);
      read.constants = constants_.emplace_back(avx2Constants(read, bias, layer.inputZero)).data();
      read.factors = factors;
      if (form)
        packers_.emplace_back(read, *form);
      else
        packers_.emplace_back(read,
                              size_t{layer.geometry.input.batches} * rows.count * columns.count);
    }
  }
}

size_t Avx2TransposePacker::bytes() const {
  size_t bytes = 0;
  for (const Avx2Packer& packer : packers_) bytes += packer.bytes();
  return bytes;
}

void Avx2TransposePacker::pack(uint8_t* packed) const {
  for (const Avx2Packer& packer : packers_) {
    packer.pack(packed);
    packed += packer.bytes();
  }
}

std::unique_ptr<Kernel> makeAvx2TransposeKernel(const TransposeLayer& layer,
                                                std::span<const uint8_t> packed) {
  bool isWhole = true;
  auto kernel = std::make_unique<TransposeLayerKernel<Avx2Product>>(
      layer, [&](const TransposePart& rows, const TransposePart& columns) {
        const Qs8Gemm common = layer.productOf(rows, columns);
        Avx2Product next;
        next.product.outputZero = common.outputZero;
        next.product.lowest = common.lowest;
        next.product.highest = common.highest;
        next.product.outputStride = common.outputStride;
        auto panels = Avx2Panels::read(packed, inputsOf(layer, rows, columns), common.columns);
        isWhole = isWhole && panels;
        if (isWhole) {
          packed = packed.subspan(panels->bytes());
          next.product.weights = *std::move(panels);
        }
        return next;
      });
  if (!isWhole) return nullptr;
  return kernel;
}

Result<bool> addTransposeLayer(PlanBuilder* builder,
                               const ops::TransposeConv2dParameters& geometry) {
  const graph::Operation& operation = *builder->context().operation;
  const graph::Operand& input = builder->operand(operation.inputs[0]);
  const graph::Operand& filter = builder->operand(operation.inputs[1]);
  const graph::Operand& output = builder->operand(operation.outputs[0]);
  const ops::Window2d& w = geometry.window;
  if (input.type != graph::OperandType::kTensorQuant8AsymmSigned ||
      (!hasAvx512Vnni() && !hasAvx2()) || !hasFewTransposeParts(geometry))
    return false;
  const uint32_t bias = builder->context().hasInput(2) ? operation.inputs[2] : UINT32_MAX;
  auto creation = std::make_shared<Creation>();
  Creation& c = *creation;
  c.layer.geometry = geometry;
  c.layer.inputZero = input.zeroPoint;
  Qs8Gemm& product = c.layer.product;
  product.columns = geometry.output.channels;
  product.outputZero = output.zeroPoint;
  const ops::QuantizedRange range = ops::quantizedActivationRange(geometry.activation, output);
  product.lowest = range.lowest;
  product.highest = range.highest;
  const LayerScales scales = LayerScales::of(input, filter, output);
  const std::shared_ptr<const float> filterScales = scales.from(0, geometry.output.channels);
  // Computed in XNNPACK's order, so that results are equal to XNNPACK's.
  for (size_t i = 0; i < geometry.output.channels; ++i)
    c.factors.push_back(scales.input * filterScales.get()[i] / scales.output);
  c.place = WeightPlace::of(builder->currentOperation(), PackedLayout::kTranspose);
  c.filter = builder->constants().weightData(operation.inputs[1], c.place);
  if (bias != UINT32_MAX) {
    HEARTH_ASSIGN(c.bias, builder->constants().biasData(bias, c.place));
  }
  const uint32_t operands[] = {operation.inputs[0], operation.inputs[1], bias,
                               operation.outputs[0]};
  std::vector<uint64_t> parameters = {static_cast<uint64_t>(w.strideHeight),
                                      static_cast<uint64_t>(w.strideWidth),
                                      static_cast<uint64_t>(w.padding.top),
                                      static_cast<uint64_t>(w.padding.left),
                                      geometry.output.height,
                                      geometry.output.width};
  // Tells the two packings from each other.
  if (!hasAvx512Vnni()) parameters.push_back(kAvx2Window);
  c.packed = builder->packingSource(operands, parameters);
  c.weights = builder->weights();
  c.layer.source = builder->read(operation.inputs[0]);
  c.layer.destination = builder->write(operation.outputs[0]);
  Node& node = builder->add("own", {c.layer.source}, {c.layer.destination});
  builder->constants().releaseAfterPacking(&node, operation.inputs[1]);
  node.create = [creation] {
    return makeKernel(*creation);
  };
  return true;
}

}  // namespace hearth::cpu
