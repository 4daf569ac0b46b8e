// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/lowering/transpose_layer.h"

#include <algorithm>
#include <cstring>

#include "drivers/cpu/kernels/qs8_tasks.h"
#include "drivers/cpu/lowering/channel_parts.h"
#include "drivers/cpu/microkernels/im2col.h"
#include "drivers/cpu/microkernels/vnni_gemm.h"
#include "drivers/cpu/weights/layer_packing.h"
#include "ops/quantization.h"

namespace hearth::cpu {
namespace {

std::vector<TransposePart> partsOf(uint32_t outputs, int32_t stride, int32_t filter,
                                   int32_t padding) {
  std::vector<TransposePart> parts;
  for (int32_t first = 0; first < stride && first < static_cast<int64_t>(outputs); ++first) {
    TransposePart part;
    part.first = static_cast<size_t>(first);
    part.count = (outputs - part.first - 1) / static_cast<size_t>(stride) + 1;
    // Output o reads input (o + padding - tap) / stride where that is a whole number.
    const int64_t shifted = int64_t{first} + padding;
    const int64_t firstTap = shifted % stride;
    if (firstTap < filter) {
      const int64_t more = (filter - 1 - firstTap) / stride;
      part.taps = static_cast<size_t>(more + 1);
      part.lastTap = static_cast<size_t>(firstTap + more * stride);
      part.before = (static_cast<int64_t>(part.lastTap) - shifted) / stride;
    }
    parts.push_back(part);
  }
  return parts;
}

class TransposeLayerKernel final : public Qs8TaskKernel<TransposeLayer> {
 public:
  explicit TransposeLayerKernel(const TransposeLayer& layer) : Qs8TaskKernel(layer) {
    const uint8_t* packed = layer.product.packed;
    for (const TransposePart& rows : layer.partsOfRows()) {
      for (const TransposePart& columns : layer.partsOfColumns()) {
        Phase phase = {rows, columns, windowsOf(rows, columns), layer.productOf(rows, columns)};
        phase.product.packed = packed;
        packed += phase.product.panels() * phase.product.panelBytes();
        mostWindowBytes_ = std::max(mostWindowBytes_, phase.windows.windowBytes());
        // The first part of each dimension has the most outputs.
        gridRows_ = std::max(gridRows_, rows.count);
        gridColumns_ = std::max(gridColumns_, columns.count);
        phases_.push_back(phase);
      }
    }
  }

  Result<size_t> reshape(threads::ThreadPool* pool) override {
    return tasks_.divide(threads::threadsOf(pool), places(), mostWindowBytes_);
  }

 private:
  struct Phase {
    TransposePart rows, columns;
    Im2col windows;
    Qs8Gemm product;
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
    std::vector<Piece> pieces;
    uint8_t* at = scratch;
    for (size_t next = 0; first < last; first += next) {
      const size_t column = first % gridColumns_;
      const size_t row = first / gridColumns_ % gridRows_;
      const size_t image = first / gridColumns_ / gridRows_;
      next = std::min(gridColumns_ - column, last - first);
      if (row >= phase.rows.count || column >= phase.columns.count) continue;
      const size_t count = std::min(next, phase.columns.count - column);
      const size_t window = (image * phase.rows.count + row) * phase.columns.count + column;
      if (windowBytes > 0)
        phase.windows.gather(reinterpret_cast<const uint8_t*>(source_), window, window + count, at);
      const size_t y = phase.rows.first + row * static_cast<size_t>(g.window.strideHeight);
      const size_t x = phase.columns.first + column * static_cast<size_t>(g.window.strideWidth);
      const size_t pixel = (image * g.output.height + y) * g.output.width + x;
      pieces.push_back({at, count, destination_ + pixel * g.output.channels});
      at += count * windowBytes;
    }
    makeUnsigned(reinterpret_cast<const int8_t*>(scratch), static_cast<size_t>(at - scratch),
                 scratch);
    for (size_t panel = firstPanel; panel < lastPanel; panel += Qs8Tasks::kPanelsPerBlock)
      for (const Piece& piece : pieces)
        multiplyQs8(phase.product, piece.windows, windowBytes, piece.count, panel,
                    std::min(lastPanel, panel + Qs8Tasks::kPanelsPerBlock), piece.output);
  }

  std::vector<Phase> phases_;
  size_t mostWindowBytes_ = 0;
  size_t gridRows_ = 0, gridColumns_ = 0;
};

// What packing reads, and the layer.
struct Creation : LayerPacking {
  TransposeLayer layer;
  const uint8_t* filter = nullptr;
  const uint8_t* bias = nullptr;
  std::vector<float> factors;
};

Result<std::unique_ptr<Kernel>> makeKernel(const Creation& c) {
  TransposeLayer layer = c.layer;
  HEARTH_ASSIGN(layer.product.packed,
                c.weights->pack(c.place, "TRANSPOSE_CONV_2D", c.packed.get(), layer.packedBytes(),
                                [&](uint8_t* data) {
                                  packTranspose(layer, reinterpret_cast<const int8_t*>(c.filter),
                                                reinterpret_cast<const int32_t*>(c.bias),
                                                c.factors.data(), data);
                                }));
  return makeTransposeLayerKernel(layer);
}

// Packs the panels of one combination of parts.
void packPart(const TransposeLayer& layer, const TransposePart& rows, const TransposePart& columns,
              const int8_t* weights, const int32_t* bias, const float* factors, uint8_t* packed) {
  const ops::TransposeConv2dParameters& g = layer.geometry;
  const auto filterHeight = static_cast<size_t>(g.window.filterHeight);
  const auto filterWidth = static_cast<size_t>(g.window.filterWidth);
  const auto strideHeight = static_cast<size_t>(g.window.strideHeight);
  const auto strideWidth = static_cast<size_t>(g.window.strideWidth);
  const Qs8Gemm product = layer.productOf(rows, columns);
  const size_t channels = g.input.channels;
  for (size_t column = 0; column < product.columns; ++column) {
    uint8_t* const panel = packed + column / kQs8Columns * product.panelBytes();
    const size_t lane = column % kQs8Columns;
    uint8_t* const groups = panel + kQs8Columns * sizeof(int32_t);
    uint32_t sum = 0;
    size_t k = 0;  // in the window
    for (size_t y = 0; y < rows.taps; ++y) {
      for (size_t x = 0; x < columns.taps; ++x) {
        const size_t tapRow = rows.lastTap - y * strideHeight;
        const size_t tapColumn = columns.lastTap - x * strideWidth;
        const int8_t* const tap =
            weights + ((column * filterHeight + tapRow) * filterWidth + tapColumn) * channels;
        for (size_t c = 0; c < channels; ++c, ++k) {
          groups[(k / kQs8Group * kQs8Columns + lane) * kQs8Group + k % kQs8Group] =
              static_cast<uint8_t>(tap[c]);
          sum += static_cast<uint32_t>(int32_t{tap[c]});
        }
      }
    }
    // The product reads inputs plus 128. The arithmetic is unsigned, because a hostile bias may
    // make it wrap, as it does in the kernels.
    const uint32_t constant = static_cast<uint32_t>(bias != nullptr ? bias[column] : 0) -
                              sum * static_cast<uint32_t>(layer.inputZero + 128);
    uint8_t* const last = groups + kQs8Columns * product.inputs;
    std::memcpy(panel + lane * sizeof constant, &constant, sizeof constant);
    std::memcpy(last + lane * sizeof(float), factors + column, sizeof(float));
  }
}

}  // namespace

std::vector<TransposePart> TransposeLayer::partsOfRows() const {
  const ops::Window2d& w = geometry.window;
  return partsOf(geometry.output.height, w.strideHeight, w.filterHeight, w.padding.top);
}

std::vector<TransposePart> TransposeLayer::partsOfColumns() const {
  const ops::Window2d& w = geometry.window;
  return partsOf(geometry.output.width, w.strideWidth, w.filterWidth, w.padding.left);
}

Qs8Gemm TransposeLayer::productOf(const TransposePart& rows, const TransposePart& columns) const {
  const size_t inputs = rows.taps * columns.taps * geometry.input.channels;
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
  std::memset(packed, 0, layer.packedBytes());
  for (const TransposePart& rows : layer.partsOfRows()) {
    for (const TransposePart& columns : layer.partsOfColumns()) {
      packPart(layer, rows, columns, weights, bias, factors, packed);
      const Qs8Gemm part = layer.productOf(rows, columns);
      packed += part.panels() * part.panelBytes();
    }
  }
}

std::unique_ptr<Kernel> makeTransposeLayerKernel(const TransposeLayer& layer) {
  return std::make_unique<TransposeLayerKernel>(layer);
}

Result<bool> addTransposeLayer(PlanBuilder* builder,
                               const ops::TransposeConv2dParameters& geometry) {
  const graph::Operation& operation = *builder->context().operation;
  const graph::Operand& input = builder->operand(operation.inputs[0]);
  const graph::Operand& filter = builder->operand(operation.inputs[1]);
  const graph::Operand& output = builder->operand(operation.outputs[0]);
  const ops::Window2d& w = geometry.window;
  // Each combination of parts takes memory, and with a filter of few taps many have nothing to do.
  constexpr int64_t kMostCombinations = 64;
  if (input.type != graph::OperandType::kTensorQuant8AsymmSigned || !hasVnniGemm() ||
      int64_t{w.strideHeight} * w.strideWidth > kMostCombinations)
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
  const std::shared_ptr<const float> scales = scalesFrom(filter, geometry.output.channels);
  // Computed in XNNPACK's order, so that results are equal to XNNPACK's.
  for (size_t i = 0; i < geometry.output.channels; ++i)
    c.factors.push_back(input.scale * scales.get()[i] / output.scale);
  c.place = {builder->currentOperation(), 0};
  c.filter = builder->constants().weightData(operation.inputs[1], c.place);
  if (bias != UINT32_MAX) {
    HEARTH_ASSIGN(c.bias, builder->constants().biasData(bias, c.place));
  }
  const uint32_t operands[] = {operation.inputs[0], operation.inputs[1], bias,
                               operation.outputs[0]};
  const uint64_t parameters[] = {static_cast<uint64_t>(w.strideHeight),
                                 static_cast<uint64_t>(w.strideWidth),
                                 static_cast<uint64_t>(w.padding.top),
                                 static_cast<uint64_t>(w.padding.left),
                                 geometry.output.height,
                                 geometry.output.width};
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
