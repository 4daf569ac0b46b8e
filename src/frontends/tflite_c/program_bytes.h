// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "memory/pool.h"

namespace hearth::tflite_c {

// The bytes of a model in memory of the program, which may free them once it has deleted the model
// and its interpreters. All of these share one, and let go of whatever else reads the bytes first.
class ProgramBytes {
 public:
  explicit ProgramBytes(const memory::PoolRef& pool) : pool_(pool) {}
  ProgramBytes(const ProgramBytes&) = delete;
  ProgramBytes& operator=(const ProgramBytes&) = delete;
  // Waits where a thread of a weight store reads the bytes: it writes what was packed of them, and
  // makes sure that they have not changed.
  ~ProgramBytes();

 private:
  const std::weak_ptr<const memory::Pool> pool_;
};

}  // namespace hearth::tflite_c
