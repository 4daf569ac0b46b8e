// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/lowering/qu8_convolution.h"

#include <algorithm>

#include "drivers/cpu/lowering/convolution_input.h"
#include "drivers/cpu/lowering/layer_scales.h"
#include "drivers/cpu/microkernels/portable/im2col.h"
#include "drivers/cpu/microkernels/x86/avx512/qu8_gemm.h"
#include "drivers/cpu/microkernels/x86/instruction_sets.h"
#include "threads/parallel_tasks.h"

namespace hearth::cpu {
namespace {

// Output pixels of one task, whose gathered inputs stay in the second-level cache.
constexpr size_t kPixelsPerTask = 48;
constexpr size_t kMaxInputs = 32768;

struct Creation {
  Convolution geometry;
  Qu8Gemm gemm;  // without `packed`
  int32_t inputZero = 0;
  const uint8_t* filter = nullptr;
  const int32_t* bias = nullptr;
  PackedWeights* weights = nullptr;
  WeightPlace place;
  std::shared_ptr<const base::Sha256Digest> packed;  // names what is packed there
  ValueId source = 0, destination = 0;
};

class Uint8ConvolutionKernel final : public Kernel {
 public:
  Uint8ConvolutionKernel(std::shared_ptr<const Creation> creation, const uint8_t* packed)
      : creation_(std::move(creation)),
        gemm_(creation_->gemm),
        windows_(creation_->geometry, 1, static_cast<uint8_t>(creation_->inputZero)) {
    gemm_.packed = packed;
    const Convolution& g = creation_->geometry;
    // With windows of one pixel and strides of 1 the product reads its rows from the input.
    isDirect_ = g.kernelHeight == 1 && g.kernelWidth == 1 && g.strideHeight == 1 &&
                g.strideWidth == 1 && g.top + g.bottom + g.left + g.right == 0;
  }

  Result<size_t> reshape(threads::ThreadPool* pool) override {
    return isDirect_ ? 0 : threads::threadsOf(pool) * gatheredPerThread();
  }

  Status setup(std::span<void* const> addresses, void* workspace) override {
    gathered_ = static_cast<uint8_t*>(workspace);
    source_ = static_cast<const uint8_t*>(addresses[creation_->source]);
    destination_ = static_cast<uint8_t*>(addresses[creation_->destination]);
    return {};
  }

  Status run(threads::ThreadPool* pool) override {
    const Convolution& g = creation_->geometry;
    const size_t pixels = g.batch * g.outputHeight * g.outputWidth;
    const size_t chunks = (pixels + kPixelsPerTask - 1) / kPixelsPerTask;
    const size_t threads = threads::threadsOf(pool);
    // With few pixels, as at the end of a network, tasks divide the columns, too.
    constexpr size_t kColumnStep = 4 * kQu8Columns;
    const size_t steps = (gemm_.columns + kColumnStep - 1) / kColumnStep;
    const size_t parts =
        threads == 1 || chunks >= 2 * threads ? 1 : std::min(steps, 2 * threads / chunks);
    const auto task = [&](size_t index, size_t thread) {
      const size_t first = index / parts * kPixelsPerTask;
      const size_t count = std::min(kPixelsPerTask, pixels - first);
      const size_t part = index % parts;
      const size_t firstColumn = part * steps / parts * kColumnStep;
      const size_t lastColumn = std::min(gemm_.columns, (part + 1) * steps / parts * kColumnStep);
      const uint8_t* rows = source_ + first * gemm_.inputs;
      if (!isDirect_) {
        uint8_t* const buffer = gathered_ + thread * gatheredPerThread();
        windows_.gather(source_, first, first + count, buffer);
        rows = buffer;
      }
      multiplyQu8(gemm_, rows, gemm_.inputs, count, firstColumn, lastColumn,
                  destination_ + first * gemm_.columns, gemm_.columns);
    };
    threads::forTasks(pool, chunks * parts, task);
    return {};
  }

 private:
  size_t gatheredPerThread() const { return kPixelsPerTask * gemm_.inputs + kReadSlack; }

  const std::shared_ptr<const Creation> creation_;
  Qu8Gemm gemm_;
  const Im2col windows_;
  bool isDirect_ = false;
  uint8_t* gathered_ = nullptr;
  const uint8_t* source_ = nullptr;
  uint8_t* destination_ = nullptr;
};

}  // namespace

Result<bool> addQu8Convolution(PlanBuilder* builder, const Convolution& convolution) {
  const graph::Operand& input = builder->operand(convolution.input);
  const graph::Operand& filter = builder->operand(convolution.filter);
  const graph::Operand& output = builder->operand(convolution.output);
  if (!hasAvx512Vnni() || convolution.isDepthwise || convolution.groups != 1) return false;
  if (input.type != graph::OperandType::kTensorQuant8Asymm ||
      filter.type != graph::OperandType::kTensorQuant8Asymm)
    return false;
  auto creation = std::make_shared<Creation>();
  Creation& c = *creation;
  c.geometry = convolution;
  Convolution& g = c.geometry;
  const size_t inputs = size_t{g.kernelHeight} * g.kernelWidth * g.groupInputChannels;
  if (inputs > kMaxInputs) return false;
  if (const auto view = builder->paddedView(g.input)) applyPaddedView(*view, &g);
  c.gemm.inputs = inputs;
  c.gemm.columns = g.groupOutputChannels;
  c.gemm.weightZero = filter.zeroPoint;
  const LayerScales scales = LayerScales::of(input, filter, output);
  c.gemm.scale = scales.input * scales.filter / scales.output;
  c.gemm.outputZero = output.zeroPoint;
  const ops::QuantizedRange range = ops::quantizedActivationRange(g.activation, output);
  c.gemm.lowest = range.lowest;
  c.gemm.highest = range.highest;
  c.inputZero = input.zeroPoint;
  c.place = WeightPlace::of(builder->currentOperation(), PackedLayout::kVnni);
  c.filter = builder->constants().weightData(g.filter, c.place);
  if (g.bias != UINT32_MAX)
    c.bias = reinterpret_cast<const int32_t*>(builder->constants().weightData(g.bias, c.place));
  const uint32_t operands[] = {g.input, g.filter, g.bias};
  const uint64_t parameters[] = {inputs, c.gemm.columns};
  c.packed = builder->packingSource(operands, parameters);
  c.weights = builder->weights();
  c.source = builder->read(g.input);
  c.destination = builder->write(g.output);
  Node& node = builder->add("own", {c.source}, {c.destination});
  builder->constants().releaseAfterPacking(&node, g.filter);
  node.create = [creation]() -> Result<std::unique_ptr<Kernel>> {
    const Creation& made = *creation;
    HEARTH_ASSIGN(
        const uint8_t* packed,
        made.weights->pack(made.place, "CONV_2D", made.packed.get(),
                           qu8PackedBytes(made.gemm.inputs, made.gemm.columns), [&](uint8_t* data) {
                             packQu8(made.filter, made.bias, made.gemm.inputs, made.gemm.columns,
                                     made.inputZero, made.gemm.weightZero, data);
                           }));
    return std::make_unique<Uint8ConvolutionKernel>(creation, packed);
  };
  return true;
}

}  // namespace hearth::cpu
