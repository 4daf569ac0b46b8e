// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/lowering/narrow_lines.h"

#include <algorithm>

namespace hearth::cpu {
namespace {

// Numbers of the input that a task rearranges: they stay in the second-level cache.
constexpr size_t kMostNumbers = size_t{64} << 10;
// Outputs of a line in one task.
constexpr size_t kMostOutputs = 1024;
// Fewer tasks than this for a thread balance badly when threads run unevenly.
constexpr size_t kTasksPerThread = 4;
// So many multiplications take about ten microseconds, and are worth dividing.
constexpr double kManySteps = 1 << 18;

size_t quotientUp(size_t a, size_t b) {
  return (a + b - 1) / b;
}

}  // namespace

size_t NarrowLines::Shape::outputsThatFit() const {
  if (channels > kMostNumbers || rows > kMostNumbers || phases > kMostNumbers) return 0;
  const size_t numbers = channels * rows * phases;
  if (numbers == 0 || numbers > kMostNumbers) return 0;
  const size_t all = kMostNumbers / numbers;
  return all <= reach ? 0 : (all - reach) / kF32NarrowOutputs * kF32NarrowOutputs;
}

NarrowLines::NarrowLines(const Shape& shape) : shape_(shape) {
  const size_t most = std::min(shape.outputsThatFit(), kMostOutputs);
  const size_t outputs = quotientUp(shape.outputs, quotientUp(shape.outputs, most));
  outputsPerTask_ = quotientUp(outputs, kF32NarrowOutputs) * kF32NarrowOutputs;
  chunks_ = quotientUp(shape.outputs, outputsPerTask_);
  planes_ = {.height = shape.height,
             .width = shape.width,
             .channels = shape.channels,
             .stride = shape.columnStep,
             .phases = shape.phases,
             .planeSize = outputsPerTask_ + shape.reach};
}

size_t NarrowLines::divide(size_t threads) {
  const size_t rowsThatFit = std::max(shape_.rows, kMostNumbers / planes_.rowSize());
  blocks_ = quotientUp(shape_.lines, (rowsThatFit - shape_.rows) / shape_.rowStep + 1);
  if (threads > 1 && shape_.steps >= kManySteps) {
    const size_t others = shape_.images * chunks_;
    // Each block rearranges the rows above its first line again.
    const size_t most = std::max(shape_.lines / shape_.rows, quotientUp(threads, others));
    blocks_ = std::max(blocks_, std::min(quotientUp(threads * kTasksPerThread, others), most));
    blocks_ = std::min(blocks_, shape_.lines);
  }
  rowsPerTask_ = (quotientUp(shape_.lines, blocks_) - 1) * shape_.rowStep + shape_.rows;
  numbersPerThread_ = rowsPerTask_ * planes_.rowSize() + shape_.outputChannels * outputsPerTask_;
  isArranged_.resize(threads * rowsPerTask_);
  window_.resize(threads * shape_.places);
  return threads * numbersPerThread_ * sizeof(float);
}

NarrowLines::Task NarrowLines::taskOf(size_t index, size_t thread, const float* source,
                                      float* workspace) {
  Task task;
  const size_t block = index / chunks_ % blocks_;
  task.image = index / chunks_ / blocks_;
  task.begin = block * shape_.lines / blocks_;
  task.end = (block + 1) * shape_.lines / blocks_;
  task.first = index % chunks_ * outputsPerTask_;
  task.count = std::min(outputsPerTask_, shape_.outputs - task.first);
  task.window = window_.data() + thread * shape_.places;
  task.lines_ = this;
  task.source_ = source + task.image * shape_.height * shape_.width * shape_.channels;
  task.rows_ = workspace + thread * numbersPerThread_;
  task.results = task.rows_ + rowsPerTask_ * planes_.rowSize();
  task.isArranged_ = {isArranged_.data() + thread * rowsPerTask_, rowsPerTask_};
  std::ranges::fill(task.isArranged_, 0);
  return task;
}

const float* NarrowLines::Task::planesOf(size_t line, size_t row) {
  const Shape& shape = lines_->shape_;
  const size_t place = (line - begin) * shape.rowStep + row;
  float* const planes = rows_ + place * lines_->planes_.rowSize();
  if (!isArranged_[place]) {
    isArranged_[place] = 1;
    lines_->planes_.arrange(
        source_, static_cast<int64_t>(begin * shape.rowStep + place) + shape.top,
        static_cast<int64_t>(first * shape.columnStep) + shape.left, count + shape.reach, planes);
  }
  return planes;
}

}  // namespace hearth::cpu
