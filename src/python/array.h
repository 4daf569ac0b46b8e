// SPDX-License-Identifier: Apache-2.0
// NumPy arrays, and whatever else has DLPack or the buffer protocol, as memory of tensors.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "hearth/hearth.hpp"

namespace hearth::python {

using Array = nanobind::ndarray<nanobind::ro, nanobind::c_contig, nanobind::device::cpu>;
using WritableArray = nanobind::ndarray<nanobind::c_contig, nanobind::device::cpu>;

// Sets the exception of hearth.errors that stands for a status. Like all functions here, it needs
// the GIL.
void setError(hearth_status status, const char* message);
// Raises hearth.errors.InvalidArgument.
[[noreturn]] void refuse(const std::string& sentence);

// The type of elements as NumPy and DLPack have it; "object" of strings. Two elements of 4 bits
// share a byte: such a tensor is an array of bytes.
nanobind::dlpack::dtype elementType(hearth_type type);
const char* elementTypeName(hearth_type type);

// The shape of a tensor as Python's users write it: with None for what is not known before a run.
std::string shapeText(const TensorInfo& tensor);
// The shape of an array.
std::string arrayShapeText(const std::vector<uint64_t>& shape);

// An array's memory, which stays where it is while this exists. Move-only.
class ArrayMemory {
 public:
  // The object's memory if it has the tensor's type and shape, else a contiguous copy of it. Lists
  // and numbers become arrays of that type. Refuses all else with a sentence that names the tensor.
  static ArrayMemory ofInput(nanobind::handle object, const TensorInfo& tensor);
  // The memory of a writable array, in place.
  static ArrayMemory ofOutput(nanobind::handle object, const TensorInfo& tensor);

  ArrayMemory() = default;
  ArrayMemory(ArrayMemory&& other) noexcept;
  ArrayMemory& operator=(ArrayMemory&& other) noexcept;
  ~ArrayMemory() { release(); }

  void* data() const { return data_; }
  uint64_t bytes() const { return bytes_; }
  const std::vector<uint32_t>& dimensions() const { return dimensions_; }

 private:
  bool takeBuffer(nanobind::handle object, const TensorInfo& tensor, bool isWritable);
  void release();

  Py_buffer buffer_{};  // without an owner: one of the arrays holds the memory
  Array array_;
  WritableArray writable_;
  void* data_ = nullptr;
  uint64_t bytes_ = 0;
  std::vector<uint32_t> dimensions_;  // of an input; empty if all are known before
};

// Memory of a new NumPy array that kernels use in place: see hearth_execution_set_input.
class AlignedMemory {
 public:
  AlignedMemory(const TensorInfo& tensor, uint64_t bytes);
  void* data() const { return data_; }
  uint64_t bytes() const { return bytes_; }
  // The array, which owns the memory from now on. Call it once; `dimensions` need no more than
  // bytes().
  nanobind::object take(const std::vector<uint32_t>& dimensions);
  // An array that does not own the memory, which has to live as long.
  nanobind::object view(const std::vector<uint32_t>& dimensions) const;

 private:
  nanobind::object arrayWith(const std::vector<uint32_t>& dimensions, nanobind::handle owner) const;

  hearth_type type_;
  uint64_t bytes_;
  std::unique_ptr<void, void (*)(void*)> owner_;
  void* data_;
};

// Bytes of an array of this type, and its dimensions: one for a tensor of 4 bits.
uint64_t bytesOf(hearth_type type, const std::vector<uint32_t>& dimensions);

}  // namespace hearth::python
