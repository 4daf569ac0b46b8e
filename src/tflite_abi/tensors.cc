// SPDX-License-Identifier: Apache-2.0
#include "tflite_abi/tensors.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>
#include <utility>

#include "base/caught.h"
#include "tflite_abi/tensor_type.h"

namespace hearth::tflite_abi {

TfLiteIntArray* makeIntArray(std::span<const int32_t> values) {
  if (values.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max()))
    throw std::bad_alloc();
  auto* const array = static_cast<TfLiteIntArray*>(
      std::malloc(sizeof(TfLiteIntArray) + values.size() * sizeof(int32_t)));
  if (array == nullptr) throw std::bad_alloc();
  array->size = static_cast<int32_t>(values.size());
  std::ranges::copy(values, array->data);
  return array;
}

Result<uint64_t> tensorBytes(TfLiteType type, std::span<const int32_t> dims) {
  const uint64_t bits = elementBits(type);
  if (bits == 0)
    return fail(ErrorCode::kUnsupported, "Tensors of type {} have no fixed size.", typeName(type));
  // Elements of a tensor; times a dimension or the bits of an element, still no more than 64 bits.
  constexpr uint64_t kMost = uint64_t{1} << 32;
  uint64_t count = 1;
  for (const int32_t dim : dims) {
    if (dim < 0) return fail(ErrorCode::kBadData, "The dimension {} is negative.", dim);
    count *= static_cast<uint64_t>(dim);
    if (count > kMost)
      return fail(ErrorCode::kBadData, "A tensor has more than {} elements, the most.", kMost);
  }
  return (count * bits + 7) / 8;
}

namespace {

// The bytes of a tensor once it has these dimensions. Strings have as many elements as any other
// tensor, and bytes that do not depend on them.
Result<uint64_t> bytesWith(std::span<const int32_t> dims, const TfLiteTensor& tensor) {
  if (tensor.type != kTfLiteString) return tensorBytes(tensor.type, dims);
  HEARTH_TRY(tensorBytes(kTfLiteInt64, dims));
  return tensor.bytes;
}

}  // namespace

TfLiteStatus resizeTensor(TfLiteIntArray* dims, TfLiteTensor* tensor) {
  IntArray given(dims == tensor->dims ? nullptr : dims);
  const size_t before = tensor->bytes;
  uint64_t bytes = 0;
  const Status known = base::caught([&]() -> Status {
    HEARTH_ASSIGN(bytes, bytesWith({dims->data, static_cast<size_t>(dims->size)}, *tensor));
    return {};
  });
  if (!known) return kTfLiteError;
  if (given != nullptr) std::free(std::exchange(tensor->dims, given.release()));
  tensor->bytes = bytes;
  if (tensor->allocation_type != kTfLiteDynamic) return kTfLiteOk;
  void* const data = tensor->data;
  const TfLiteStatus status = reallocateTensor(std::exchange(tensor->bytes, before), true, tensor);
  if (status != kTfLiteOk) std::free(data);
  return status;
}

Status setDims(std::span<const int32_t> dims, TfLiteTensor* tensor) {
  HEARTH_ASSIGN(const uint64_t bytes, bytesWith(dims, *tensor));
  if (!std::ranges::equal(dims, dimsOf(*tensor)) || tensor->dims == nullptr) {
    TfLiteIntArray* const array = makeIntArray(dims);
    std::free(tensor->dims);
    tensor->dims = array;
  }
  tensor->bytes = bytes;
  return {};
}

TfLiteStatus reallocateTensor(size_t bytes, bool preservesData, TfLiteTensor* tensor) {
  if (tensor == nullptr) return kTfLiteError;
  if (tensor->allocation_type != kTfLiteDynamic && tensor->allocation_type != kTfLitePersistentRo)
    return kTfLiteOk;
  if (bytes == tensor->bytes && tensor->data != nullptr) return kTfLiteOk;
  void* data = nullptr;
  if (preservesData) {
    data = std::realloc(tensor->data, std::max<size_t>(bytes, 1));
  } else {
    std::free(tensor->data);
    data = std::malloc(std::max<size_t>(bytes, 1));
  }
  tensor->data = data;
  if (data == nullptr) return kTfLiteError;
  tensor->bytes = bytes;
  return kTfLiteOk;
}

void freeTensorData(TfLiteTensor* tensor) {
  if (tensor == nullptr) return;
  if (tensor->allocation_type == kTfLiteVariantObject)
    delete static_cast<VariantData*>(tensor->data);
  else if (tensor->allocation_type == kTfLiteDynamic ||
           tensor->allocation_type == kTfLitePersistentRo)
    std::free(tensor->data);
  tensor->data = nullptr;
}

Status copyTensorData(const TfLiteTensor& from, TfLiteTensor* to) {
  if (from.bytes != to->bytes)
    return fail(ErrorCode::kBadData, "A tensor of {} bytes is copied to one of {}.", from.bytes,
                to->bytes);
  if (from.allocation_type == kTfLiteVariantObject) {
    const auto* const object = static_cast<const VariantData*>(from.data);
    if (object == nullptr) return fail(ErrorCode::kUnexpectedNull, "A tensor has no object.");
    if (to->allocation_type != kTfLiteVariantObject) freeTensorData(to);
    to->data = object->CloneTo(static_cast<VariantData*>(to->data));
    to->allocation_type = kTfLiteVariantObject;
    return {};
  }
  if (to->allocation_type == kTfLiteVariantObject) {
    freeTensorData(to);
    to->allocation_type = from.allocation_type;
  }
  if (from.bytes == 0) return {};
  if (from.data == nullptr || to->data == nullptr)
    return fail(ErrorCode::kUnexpectedNull, "A tensor of {} bytes has no memory.", from.bytes);
  std::memmove(to->data, from.data, from.bytes);
  return {};
}

void freeTensor(TfLiteTensor* tensor) {
  if (tensor == nullptr) return;
  freeTensorData(tensor);
  std::free(tensor->dims);
  tensor->dims = nullptr;
  std::free(const_cast<TfLiteIntArray*>(tensor->dims_signature));
  tensor->dims_signature = nullptr;
  freeQuantization(&tensor->quantization);
  freeSparsity(std::exchange(tensor->sparsity, nullptr));
}

void freeQuantization(TfLiteQuantization* quantization) {
  if (quantization == nullptr) return;
  if (quantization->type == kTfLiteAffineQuantization && quantization->params != nullptr) {
    const auto* const affine = static_cast<TfLiteAffineQuantization*>(quantization->params);
    std::free(affine->scale);
    std::free(affine->zero_point);
  }
  std::free(quantization->params);
  *quantization = {kTfLiteNoQuantization, nullptr};
}

void freeSparsity(TfLiteSparsity* sparsity) {
  if (sparsity == nullptr) return;
  std::free(sparsity->traversal_order);
  std::free(sparsity->block_map);
  for (int32_t i = 0; sparsity->dim_metadata != nullptr && i < sparsity->dim_metadata_size; ++i) {
    std::free(sparsity->dim_metadata[i].array_segments);
    std::free(sparsity->dim_metadata[i].array_indices);
  }
  std::free(sparsity->dim_metadata);
  std::free(sparsity);
}

}  // namespace hearth::tflite_abi
