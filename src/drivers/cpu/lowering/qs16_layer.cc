// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/lowering/qs16_layer.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "drivers/cpu/kernels/task_kernel.h"
#include "drivers/cpu/lowering/convolution_input.h"
#include "drivers/cpu/lowering/declined.h"
#include "drivers/cpu/microkernels/portable/im2col.h"
#include "drivers/cpu/weights/layer_packing.h"
#include "ops/quantization.h"

namespace hearth::cpu {
namespace {

using graph::OperandType;

// Fewer outputs would leave most of a panel empty.
constexpr size_t kLeastColumnsOfGroup = 4;

// What reads the packed weights, and by what the sums become outputs. Weights lie group by group.
// The vectors are as long as the panels of all groups are wide.
struct Qs16Layer {
  Convolution geometry;
  Qs16Gemm product;  // of one group
  std::vector<double> bias, factors;
  ValueId source = 0, destination = 0;

  size_t groupBytes() const { return product.panels() * product.panelBytes(); }
  size_t paddedColumns() const { return product.panels() * kQs16Columns; }
  // Where an output of all groups has its number in the vectors.
  size_t padded(size_t output) const {
    return output / product.columns * paddedColumns() + output % product.columns;
  }
};

// Each task gathers the windows of some rows in memory of its own.
class Qs16Tasks : public LayerTasks {
 public:
  Qs16Tasks() : LayerTasks(2) {}

  // Returns the size of the workspace.
  size_t divide(size_t threads, size_t rows, size_t rowBytes) {
    constexpr size_t kScratchPerTask = size_t{128} << 10;
    constexpr size_t kSlack = 64;
    rows_ = rows;
    const size_t fitting = kScratchPerTask / std::max<size_t>(1, rowBytes);
    const size_t even = threads > 1 ? rows / (threads * kTasksPerThread) : rows;
    const size_t wanted = std::clamp<size_t>(std::min(fitting, even), kQs16Rows, 16 * kQs16Rows);
    rowsPerTask_ = wanted - wanted % kQs16Rows;
    scratchPerThread_ = std::min(rows, rowsPerTask_) * rowBytes + kSlack;
    return threads * scratchPerThread_;
  }
};

class Qs16LayerKernel final : public Kernel {
 public:
  explicit Qs16LayerKernel(Qs16Layer layer)
      : layer_(std::move(layer)),
        windows_(layer_.geometry, sizeof(int16_t), 0),
        isDirect_(layer_.geometry.isOverPixels() && layer_.geometry.groups == 1 &&
                  layer_.product.inputs % 2 == 0) {
    layer_.product.bias = layer_.bias.data();
    layer_.product.factors = layer_.factors.data();
  }

  Result<size_t> reshape(threads::ThreadPool* pool) override {
    return tasks_.divide(threads::threadsOf(pool), windows_.windowCount(),
                         isDirect_ ? 0 : windows_.windowBytes());
  }

  Status setup(std::span<void* const> addresses, void* workspace) override {
    source_ = static_cast<const int16_t*>(addresses[layer_.source]);
    destination_ = static_cast<int16_t*>(addresses[layer_.destination]);
    workspace_ = static_cast<uint8_t*>(workspace);
    return {};
  }

  Status run(threads::ThreadPool* pool) override {
    const size_t panels = layer_.product.panels();
    tasks_.run(
        pool, layer_.geometry.groups * panels, workspace_,
        [&](size_t first, size_t last, size_t firstPanel, size_t lastPanel, uint8_t* scratch) {
          while (firstPanel < lastPanel) {
            const size_t group = firstPanel / panels;
            const size_t end = std::min(lastPanel, (group + 1) * panels);
            multiply(group, first, last, firstPanel - group * panels, end - group * panels,
                     scratch);
            firstPanel = end;
          }
        });
    return {};
  }

 private:
  // Multiplies rows by panels of a group.
  void multiply(size_t group, size_t first, size_t last, size_t firstPanel, size_t lastPanel,
                uint8_t* scratch) const {
    Qs16Gemm product = layer_.product;
    product.packed += group * layer_.groupBytes();
    product.bias += group * layer_.paddedColumns();
    product.factors += group * layer_.paddedColumns();
    const auto* const bytes = reinterpret_cast<const uint8_t*>(source_);
    const auto* from = reinterpret_cast<const int16_t*>(scratch);
    if (isDirect_)
      from = source_ + first * product.inputs;
    else if (layer_.geometry.groups == 1)
      windows_.gather(bytes, first, last, scratch);
    else
      windows_.gatherGroup(group, bytes, first, last, scratch);
    multiplyQs16(product, from, last - first, firstPanel, lastPanel,
                 destination_ + first * product.outputStride + group * product.columns);
  }

  Qs16Layer layer_;
  const Im2col windows_;
  const bool isDirect_;
  Qs16Tasks tasks_;
  const int16_t* source_ = nullptr;
  int16_t* destination_ = nullptr;
  uint8_t* workspace_ = nullptr;
};

struct Creation : LayerPacking {
  Qs16Layer layer;
  const char* kind = nullptr;
  const int8_t* filter = nullptr;
};

Result<std::unique_ptr<Kernel>> makeKernel(const Creation& c) {
  Qs16Layer layer = c.layer;
  const Qs16Gemm& product = layer.product;
  HEARTH_ASSIGN(layer.product.packed,
                c.weights->pack(c.place, c.kind, c.packed.get(),
                                layer.geometry.groups * layer.groupBytes(), [&](uint8_t* bytes) {
                                  for (size_t group = 0; group < layer.geometry.groups; ++group)
                                    packQs16(product,
                                             c.filter + group * product.columns * product.inputs,
                                             bytes + group * layer.groupBytes());
                                }));
  return std::make_unique<Qs16LayerKernel>(std::move(layer));
}

// Whether the filter has symmetric 8-bit numbers with a scale, or one for each of `columns`.
bool isSymmetric(const graph::Operand& filter, size_t columns) {
  switch (filter.type) {
    case OperandType::kTensorQuant8AsymmSigned:
    case OperandType::kTensorQuant8Symm:
      return filter.zeroPoint == 0;
    case OperandType::kTensorQuant8SymmPerChannel:
      return filter.perChannel.channelDim == 0 && filter.perChannel.scales.size() == columns;
    default:
      return false;
  }
}

// What the sums of each of `outputs` outputs are multiplied by; 0 behind the last one of a group.
std::vector<double> factorsOf(const graph::Operand& input, const graph::Operand& filter,
                              const graph::Operand& output, const Qs16Layer& layer,
                              size_t outputs) {
  std::vector<double> factors(layer.geometry.groups * layer.paddedColumns());
  const double ratio = static_cast<double>(input.scale) / output.scale;
  for (size_t i = 0; i < outputs; ++i)
    factors[layer.padded(i)] =
        ratio * (filter.perChannel.scales.empty() ? filter.scale : filter.perChannel.scales[i]);
  return factors;
}

}  // namespace

Result<bool> addQs16Layer(PlanBuilder* builder, const Convolution& convolution, const char* kind) {
  Convolution g = convolution;
  const graph::Operand& input = builder->operand(g.input);
  const graph::Operand& filter = builder->operand(g.filter);
  const graph::Operand& output = builder->operand(g.output);
  const size_t inputs = size_t{g.kernelHeight} * g.kernelWidth * g.groupInputChannels;
  if (inputs == 0 || g.groupOutputChannels == 0 || g.batch * g.outputHeight * g.outputWidth == 0)
    return false;
  if (input.type != OperandType::kTensorQuant16Symm ||
      output.type != OperandType::kTensorQuant16Symm)
    return builder->decline("its output has another type than its input");
  if (g.isDepthwise || (g.groups != 1 && g.groupOutputChannels < kLeastColumnsOfGroup))
    return builder->decline(
        "16-bit activations have no faster convolution in groups of so few outputs");
  if (!filter.isConstant() || (g.bias != UINT32_MAX && !builder->operand(g.bias).isConstant()))
    return builder->decline(kComputedWeights);
  const size_t outputs = g.groups * g.groupOutputChannels;
  if (!isSymmetric(filter, outputs))
    return builder->decline("its weights are not 8-bit numbers with a scale for each output");
  if (const auto view = builder->paddedView(g.input)) applyPaddedView(*view, &g);
  Creation c;
  c.kind = kind;
  c.layer.geometry = g;
  Qs16Gemm& product = c.layer.product;
  product.inputs = inputs;
  product.columns = g.groupOutputChannels;
  product.outputStride = outputs;
  c.layer.factors = factorsOf(input, filter, output, c.layer, outputs);
  if (!std::ranges::all_of(c.layer.factors, [](double factor) { return std::isfinite(factor); }))
    return builder->decline("a ratio of its scales is infinite");
  const ops::QuantizedRange range = ops::quantizedActivationRange(g.activation, output);
  product.lowest = range.lowest;
  product.highest = range.highest;
  c.place = WeightPlace::of(builder->currentOperation(), PackedLayout::kQs16);
  c.filter = reinterpret_cast<const int8_t*>(builder->constants().weightData(g.filter, c.place));
  c.layer.bias.resize(c.layer.factors.size());
  if (g.bias != UINT32_MAX) {
    HEARTH_ASSIGN(const uint8_t* const bias, builder->constants().biasData(g.bias, c.place));
    const bool isWide = builder->operand(g.bias).type == OperandType::kTensorInt64;
    for (size_t i = 0; i < outputs; ++i)
      c.layer.bias[c.layer.padded(i)] =
          isWide ? static_cast<double>(reinterpret_cast<const int64_t*>(bias)[i])
                 : reinterpret_cast<const int32_t*>(bias)[i];
  }
  const uint32_t operands[] = {g.input, g.filter, g.bias, g.output};
  // The first number tells this packing from those of other kernels.
  const uint64_t numbers[] = {kQs16Columns * sizeof(int16_t), inputs, product.columns, g.groups};
  c.packed = builder->packingSource(operands, numbers);
  c.weights = builder->weights();
  c.layer.source = builder->read(g.input);
  c.layer.destination = builder->write(g.output);
  Node& node = builder->add("own", {c.layer.source}, {c.layer.destination});
  builder->constants().releaseAfterPacking(&node, g.filter);
  node.create = [creation = std::make_shared<const Creation>(std::move(c))] {
    return makeKernel(*creation);
  };
  return true;
}

}  // namespace hearth::cpu
