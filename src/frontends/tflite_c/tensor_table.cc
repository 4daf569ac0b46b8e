// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite_c/tensor_table.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <mutex>
#include <new>
#include <utility>

#include "base/caught.h"
#include "frontends/tflite_c/tensor_sparsity.h"
#include "tflite_abi/tensor_type.h"

namespace hearth::tflite_c {
namespace {

// Sets what says how stored values stand for real ones.
void setQuantization(const tflite::FileTensor& file, TfLiteTensor* tensor) {
  if (file.blocks.scales >= 0) {
    auto* const blocks =
        static_cast<TfLiteBlockwiseQuantization*>(std::malloc(sizeof(TfLiteBlockwiseQuantization)));
    if (blocks == nullptr) throw std::bad_alloc();
    *blocks = {file.blocks.scales, file.blocks.zeroPoints, file.blocks.size,
               file.quantizedDimension};
    tensor->quantization = {kTfLiteBlockwiseQuantization, blocks};
    return;
  }
  if (file.scales.empty()) return;
  std::vector<int32_t> zeroPoints;
  for (const int64_t zero : file.zeroPoints) zeroPoints.push_back(static_cast<int32_t>(zero));
  TfLiteFloatArray* const scales = TfLiteFloatArrayCreate(static_cast<int>(file.scales.size()));
  TfLiteIntArray* const zeros = tflite_abi::makeIntArray(zeroPoints);
  auto* const affine =
      static_cast<TfLiteAffineQuantization*>(std::malloc(sizeof(TfLiteAffineQuantization)));
  if (scales == nullptr || zeros == nullptr || affine == nullptr) {
    std::free(scales);
    std::free(zeros);
    std::free(affine);
    throw std::bad_alloc();
  }
  std::ranges::copy(file.scales, scales->data);
  *affine = {scales, zeros, file.quantizedDimension};
  tensor->quantization = {kTfLiteAffineQuantization, affine};
  if (file.scales.size() == 1) {
    tensor->legacy_scale = file.scales.front();
    tensor->legacy_zero_point = zeroPoints.front();
  }
}

}  // namespace

TensorTable::TensorTable(std::shared_ptr<const tflite::ModelFile> file, size_t subgraph,
                         size_t count)
    : file_(std::move(file)),
      subgraph_(subgraph),
      count_(count),
      isFilled_(count),
      names_(count),
      tensors_(std::make_unique<TfLiteTensor[]>(count)) {}

TensorTable::~TensorTable() {
  for (size_t i = 0; i < count_; ++i) {
    TfLiteTensor& tensor = tensors_[i];
    // The memory of all others belongs to those who gave it.
    if (tensor.type == kTfLiteString) tflite_abi::freeTensorData(&tensor);
    std::free(tensor.dims);
    std::free(const_cast<TfLiteIntArray*>(tensor.dims_signature));
    tflite_abi::freeQuantization(&tensor.quantization);
    tflite_abi::freeSparsity(tensor.sparsity);
  }
}

Result<TfLiteTensor*> TensorTable::at(size_t index) const {
  if (index >= count_)
    return fail(ErrorCode::kNotFound, "There is no tensor {}; the subgraph has {}.", index, count_);
  const std::lock_guard lock(mutex_);
  if (!isFilled_[index]) HEARTH_TRY(fill(index));
  return &tensors_[index];
}

Result<size_t> TensorTable::indexOf(const TfLiteTensor* tensor) const {
  for (size_t i = 0; i < count_; ++i)
    if (&tensors_[i] == tensor) return i;
  return fail(ErrorCode::kNotFound, "The tensor is none of this interpreter.");
}

Status TensorTable::fill(size_t index) const {
  HEARTH_ASSIGN(const tflite::FileTensor file, file_->fileTensor(subgraph_, index));
  TfLiteTensor& tensor = tensors_[index];
  tensor.type = tflite_abi::typeOfFile(file.type);
  names_[index] = file.name;
  tensor.name = names_[index].c_str();
  tensor.buffer_handle = -1;
  tensor.is_variable = file.isVariable;
  if (tensor.dims == nullptr) tensor.dims = tflite_abi::makeIntArray(file.shape);
  if (tensor.dims_signature == nullptr)
    tensor.dims_signature = tflite_abi::makeIntArray(file.shapeSignature);
  if (tensor.quantization.params == nullptr) setQuantization(file, &tensor);
  if (file.sparsity != nullptr && tensor.sparsity == nullptr)
    tensor.sparsity = makeSparsity(*file.sparsity);
  if (!file.value.empty()) {
    tensor.allocation_type = kTfLiteMmapRo;
    tensor.data = const_cast<uint8_t*>(file.value.data());  // the interface has no pointer to const
    tensor.bytes = file.value.size();
  } else {
    tensor.allocation_type = file.isVariable ? kTfLiteArenaRwPersistent : kTfLiteArenaRw;
    const Result<uint64_t> bytes = tflite_abi::tensorBytes(tensor.type, tflite_abi::dimsOf(tensor));
    tensor.bytes = bytes ? *bytes : 0;
    if (tensor.type == kTfLiteString) tensor.allocation_type = kTfLiteDynamic;
  }
  isFilled_[index] = true;
  return {};
}

}  // namespace hearth::tflite_c
