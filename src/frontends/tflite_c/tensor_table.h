// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "frontends/tflite/model_file.h"
#include "frontends/tflite_c/declarations.h"
#include "tflite_abi/tensors.h"

namespace hearth::tflite_c {

// The structures of a subgraph's tensors, at addresses that never change. A structure is filled in
// when it is first asked for, since models have thousands of constants with long lists of scales.
class TensorTable {
 public:
  TensorTable(std::shared_ptr<const tflite::ModelFile> file, size_t subgraph, size_t count);
  ~TensorTable();
  TensorTable(const TensorTable&) = delete;
  TensorTable& operator=(const TensorTable&) = delete;

  // Thread-safe. Errors: those of ModelFile::fileTensor().
  Result<TfLiteTensor*> at(size_t index) const;
  // Of a tensor that at() has returned; kNotFound for any other.
  Result<size_t> indexOf(const TfLiteTensor* tensor) const;

 private:
  Status fill(size_t index) const;

  const std::shared_ptr<const tflite::ModelFile> file_;
  const size_t subgraph_;
  const size_t count_;
  mutable base::Mutex mutex_;  // for filling in
  mutable std::vector<bool> isFilled_;
  // Of tensors in `tensors_`, which point to them.
  mutable std::vector<std::string> names_;
  std::unique_ptr<TfLiteTensor[]> tensors_;
};

}  // namespace hearth::tflite_c
