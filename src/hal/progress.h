// SPDX-License-Identifier: Apache-2.0
// How far a computation has come, told by the driver that computes to whoever called it.
#pragma once

#include <cstddef>

namespace hearth::hal {

class Progress {
 public:
  virtual ~Progress() = default;

  // Step `step` of `steps` begins; both may differ from computation to computation. Called on the
  // thread that called the driver, and takes no longer than waking a thread does.
  virtual void begins(size_t step, size_t steps) = 0;
};

// Lets drivers tell of the computations of the calling thread, as long as this exists; null is
// nobody. Not movable.
class ProgressScope {
 public:
  explicit ProgressScope(Progress* progress);
  ~ProgressScope();
  ProgressScope(const ProgressScope&) = delete;
  ProgressScope& operator=(const ProgressScope&) = delete;

 private:
  Progress* const before_;
};

// Whom a driver is to tell of a computation on the calling thread; null where nobody wants to know.
// A driver may tell nothing, or of some steps only.
Progress* progressOfThread();

}  // namespace hearth::hal
