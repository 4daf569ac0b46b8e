// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "drivers/cpu/lowering/channel_planes.h"
#include "drivers/cpu/microkernels/x86/f32_narrow_line.h"
#include "threads/parallel_tasks.h"

namespace hearth::cpu {

// Lines of outputs with few channels, which multiplyF32NarrowLine() computes, divided into tasks:
// each rearranges the rows of the image under some lines, and a part of them, in memory of its own.
class NarrowLines {
 public:
  // What the lines are, and how they lie over the image.
  struct Shape {
    size_t images = 1, lines = 0, outputs = 0;   // outputs of a line
    size_t height = 0, width = 0, channels = 0;  // of an image
    int64_t top = 0, left = 0;                   // the first row and column under the first output
    size_t rows = 1;                             // under a line
    size_t rowStep = 1;                          // from one line to the next
    size_t columnStep = 1, phases = 1;           // see ChannelPlanes
    size_t reach = 0;                            // numbers of a plane behind those of the outputs
    size_t outputChannels = 1;
    size_t places = 0;  // the most of a window
    double steps = 0;   // multiplications of all outputs

    // How many outputs of a line a task may compute; 0 if even one does not fit.
    size_t outputsThatFit() const;
  };

  // With fewer outputs in a task, much of the input would be read again.
  static constexpr size_t kLeastOutputs = 64;

  // One task: lines [begin, end) of an image, and `count` outputs of each, from `first` on.
  class Task {
   public:
    size_t image, begin, end, first, count;
    F32NarrowTap* window;  // room for those of `places`
    float* results;        // [outputChannels][resultStep()]

    // The planes of row `row` of those under `line`, which are rearranged when first asked for.
    const float* planesOf(size_t line, size_t row);

   private:
    friend class NarrowLines;
    const NarrowLines* lines_;
    const float* source_;
    float* rows_;
    std::span<uint8_t> isArranged_;
  };

  // Requires that shape.outputsThatFit() is kLeastOutputs or more.
  explicit NarrowLines(const Shape& shape);

  const ChannelPlanes& planes() const { return planes_; }
  size_t resultStep() const { return outputsPerTask_; }

  // Divides the work among threads and returns the size of the workspace in bytes.
  size_t divide(size_t threads);

  // Calls compute(task) for each task. Not for several runs at a time.
  template <typename Compute>
  void run(threads::ThreadPool* pool, const float* source, float* workspace,
           const Compute& compute) {
    threads::forTasks(pool, shape_.images * blocks_ * chunks_, [&](size_t index, size_t thread) {
      Task task = taskOf(index, thread, source, workspace);
      compute(task);
    });
  }

 private:
  Task taskOf(size_t index, size_t thread, const float* source, float* workspace);

  const Shape shape_;
  size_t outputsPerTask_ = 0;  // of a line; a multiple of kF32NarrowOutputs
  size_t chunks_ = 1;          // of a line
  size_t blocks_ = 1;          // of the lines of an image
  ChannelPlanes planes_;
  size_t rowsPerTask_ = 0;
  size_t numbersPerThread_ = 0;
  std::vector<uint8_t> isArranged_;   // by thread and row
  std::vector<F32NarrowTap> window_;  // by thread and place
};

}  // namespace hearth::cpu
