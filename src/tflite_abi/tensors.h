// SPDX-License-Identifier: Apache-2.0
// Arrays and tensors in the form of TensorFlow Lite's structures. Their parts come from malloc(),
// as the interface has it: whoever has one may free() it.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>

#include "base/result.h"
#include "tflite_abi/structures.h"

namespace hearth::tflite_abi {

struct FreeMemory {
  void operator()(void* memory) const { std::free(memory); }
};
using IntArray = std::unique_ptr<TfLiteIntArray, FreeMemory>;

// Throws std::bad_alloc.
TfLiteIntArray* makeIntArray(std::span<const int32_t> values);

// The bytes of a tensor with these dimensions. kBadData for a negative dimension and for a size
// that no memory has; kUnsupported for types whose elements have no fixed size.
Result<uint64_t> tensorBytes(TfLiteType type, std::span<const int32_t> dims);

inline std::span<const int32_t> dimsOf(const TfLiteTensor& tensor) {
  if (tensor.dims == nullptr) return {};
  return {tensor.dims->data, static_cast<size_t>(tensor.dims->size)};
}

// Sets the dimensions, and the bytes that follow from them; strings keep their bytes. Errors: those
// of tensorBytes(). Throws std::bad_alloc.
Status setDims(std::span<const int32_t> dims, TfLiteTensor* tensor);

// Gives a tensor dimensions as a function of the context asks for it: one whose memory comes from
// malloc() gets as much as it needs then. `dims` becomes the tensor's array, which programs go on
// reading; it may be that already. An error frees it, unless it is.
TfLiteStatus resizeTensor(TfLiteIntArray* dims, TfLiteTensor* tensor);

// Gives a tensor whose memory comes from malloc() memory of `bytes` bytes, and does nothing with
// any other. Its values stay if `preservesData`. Where there is no such memory, the tensor has
// none, and the old one belongs to the caller if it was to be preserved: so it is with the
// interface's functions.
TfLiteStatus reallocateTensor(size_t bytes, bool preservesData, TfLiteTensor* tensor);

// Copies the values of a tensor, or its object. kBadData for another number of bytes;
// kUnexpectedNull where one has no memory, or no object.
Status copyTensorData(const TfLiteTensor& from, TfLiteTensor* to);

// Frees what the structures refer to; null does nothing.
void freeTensorData(TfLiteTensor* tensor);
void freeTensor(TfLiteTensor* tensor);
void freeQuantization(TfLiteQuantization* quantization);
void freeSparsity(TfLiteSparsity* sparsity);

}  // namespace hearth::tflite_abi
