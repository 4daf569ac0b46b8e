// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "frontends/tflite/model_file.h"
#include "frontends/tflite_c/declarations.h"

namespace hearth::tflite_c {

// An array as the interface has it, from malloc(), which programs may free.
TfLiteIntArray* makeIntArray(std::span<const int32_t> values);

// The bytes of a tensor with these dimensions. kBadData for a negative dimension and for a size
// that no memory has; kUnsupported for types whose elements have no fixed size.
Result<uint64_t> tensorBytes(TfLiteType type, std::span<const int32_t> dims);

inline std::span<const int32_t> dimsOf(const TfLiteTensor& tensor) {
  if (tensor.dims == nullptr) return {};
  return {tensor.dims->data, static_cast<size_t>(tensor.dims->size)};
}

// Gives a tensor dimensions as a program's function asks for it: one whose memory comes from
// malloc() gets as much as it needs then.
TfLiteStatus resizeTensor(const TfLiteIntArray* dims, TfLiteTensor* tensor);

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

  // Sets the dimensions, and the bytes that follow from them; strings keep their bytes. Errors:
  // those of tensorBytes().
  static Status setDims(std::span<const int32_t> dims, TfLiteTensor* tensor);

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
