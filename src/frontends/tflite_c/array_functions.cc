// SPDX-License-Identifier: Apache-2.0
// Arrays and other parts of tensors. Programs may free all of it with free().
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "frontends/tflite_c/declarations.h"
#include "tflite_abi/tensor_type.h"
#include "tflite_abi/tensors.h"

namespace {

// Null without memory, and for a negative size.
template <typename Array>
Array* makeArray(int size) {
  if (size < 0) return nullptr;
  auto* const array = static_cast<Array*>(
      std::malloc(sizeof(Array) + static_cast<size_t>(size) * sizeof(Array::data[0])));
  if (array != nullptr) array->size = size;
  return array;
}

template <typename Array>
Array* copyArray(const Array* from) {
  if (from == nullptr) return nullptr;
  Array* const array = makeArray<Array>(from->size);
  if (array != nullptr) std::copy_n(from->data, from->size, array->data);
  return array;
}

}  // namespace

extern "C" {

size_t TfLiteIntArrayGetSizeInBytes(int size) {
  return sizeof(TfLiteIntArray) + static_cast<size_t>(std::max(size, 0)) * sizeof(int32_t);
}

TfLiteIntArray* TfLiteIntArrayCreate(int size) {
  return makeArray<TfLiteIntArray>(size);
}

int TfLiteIntArrayEqual(const TfLiteIntArray* a, const TfLiteIntArray* b) {
  if (a == b) return 1;
  return a != nullptr && b != nullptr && TfLiteIntArrayEqualsArray(a, b->size, b->data) != 0 ? 1
                                                                                             : 0;
}

int TfLiteIntArrayEqualsArray(const TfLiteIntArray* a, int b_size, const int* b_data) {
  if (a == nullptr) return b_size == 0 ? 1 : 0;
  if (a->size != b_size) return 0;
  return b_size <= 0 || (b_data != nullptr && std::equal(a->data, a->data + b_size, b_data)) ? 1
                                                                                             : 0;
}

TfLiteIntArray* TfLiteIntArrayCopy(const TfLiteIntArray* from) {
  return copyArray(from);
}

void TfLiteIntArrayFree(TfLiteIntArray* array) {
  std::free(array);
}

int TfLiteFloatArrayGetSizeInBytes(int size) {
  return static_cast<int>(sizeof(TfLiteFloatArray) +
                          static_cast<size_t>(std::max(size, 0)) * sizeof(float));
}

TfLiteFloatArray* TfLiteFloatArrayCreate(int size) {
  return makeArray<TfLiteFloatArray>(size);
}

TfLiteFloatArray* TfLiteFloatArrayCopy(const TfLiteFloatArray* from) {
  return copyArray(from);
}

void TfLiteFloatArrayFree(TfLiteFloatArray* array) {
  std::free(array);
}

const char* TfLiteTypeGetName(TfLiteType type) {
  return hearth::tflite_abi::typeName(type);
}

void TfLiteQuantizationFree(TfLiteQuantization* quantization) {
  hearth::tflite_abi::freeQuantization(quantization);
}

void TfLiteSparsityFree(TfLiteSparsity* sparsity) {
  hearth::tflite_abi::freeSparsity(sparsity);
}

}  // extern "C"
