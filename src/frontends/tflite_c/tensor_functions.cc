// SPDX-License-Identifier: Apache-2.0
// Tensors, by their structure and by the names of the opaque interface, which means the same ones.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/caught.h"
#include "base/result.h"
#include "frontends/tflite_c/tensor_table.h"

using hearth::ErrorCode;
using hearth::fail;
using hearth::Result;
using hearth::Status;

struct TfLiteOpaqueTensorBuilder {
  TfLiteType type = kTfLiteNoType;
  void* data = nullptr;
  TfLiteAllocationType allocationType = kTfLiteMemNone;
  TfLiteQuantizationParams params{};
  TfLiteQuantization quantization{};
};

namespace {

TfLiteStatus statusOf(bool isOk) {
  return isOk ? kTfLiteOk : kTfLiteError;
}

// Who allocates the memory of tensors, how long address and data stay as they are, and when data
// and shape are known.
struct Life {
  TfLiteAllocationStrategy allocation;
  TfLiteRunStability address;
  TfLiteRunStability data;
  TfLiteRunStep dataKnown;
  TfLiteRunStep shapeKnown;
};

Life lifeOf(const TfLiteTensor* tensor) {
  constexpr TfLiteRunStability kUnstable = kTfLiteRunStabilityUnstable;
  constexpr TfLiteRunStability kOneRun = kTfLiteRunStabilitySingleRun;
  constexpr TfLiteRunStability kAllRuns = kTfLiteRunStabilityAcrossRuns;
  constexpr TfLiteRunStep kInit = kTfLiteRunStepInit;
  constexpr TfLiteRunStep kPrepare = kTfLiteRunStepPrepare;
  constexpr TfLiteRunStep kEval = kTfLiteRunStepEval;
  switch (tensor == nullptr ? kTfLiteCustom : tensor->allocation_type) {
    case kTfLiteMemNone:
      return {kTfLiteAllocationStrategyNone, kAllRuns, kAllRuns, kInit, kInit};
    case kTfLiteMmapRo:
      return {kTfLiteAllocationStrategyMMap, kAllRuns, kAllRuns, kInit, kInit};
    case kTfLiteArenaRw:
      return {kTfLiteAllocationStrategyArena, kUnstable, kOneRun, kEval, kPrepare};
    case kTfLiteArenaRwPersistent:
      return {kTfLiteAllocationStrategyArena, kUnstable, kAllRuns, kEval, kPrepare};
    case kTfLiteDynamic:
      return {kTfLiteAllocationStrategyMalloc, kOneRun, kOneRun, kEval, kEval};
    case kTfLitePersistentRo:
      return {kTfLiteAllocationStrategyMalloc, kOneRun, kOneRun, kPrepare, kPrepare};
    case kTfLiteVariantObject:
      return {kTfLiteAllocationStrategyNew, kAllRuns, kOneRun, kEval, kEval};
    default:
      return {};
  }
}

// A tensor of strings begins with their number and, for each, where it begins; then the end of the
// last. All are int32, as are the offsets from the begin of the tensor.
int32_t wordAt(const TfLiteTensor& tensor, size_t index) {
  int32_t word = -1;
  if ((index + 1) * sizeof(word) <= tensor.bytes)
    std::memcpy(&word, static_cast<const uint8_t*>(tensor.data) + index * sizeof(word),
                sizeof(word));
  return word;
}

// -1 for a tensor that holds no strings.
int32_t stringCount(const TfLiteTensor* tensor) {
  if (tensor == nullptr || tensor->type != kTfLiteString || tensor->data == nullptr) return -1;
  const int32_t count = wordAt(*tensor, 0);
  const bool hasRoom =
      count >= 0 && (static_cast<size_t>(count) + 2) * sizeof(int32_t) <= tensor->bytes;
  return hasRoom ? count : -1;
}

// What a table of strings and the strings take; kBadData if that is more than the format can say.
Result<size_t> stringBytes(const char* const* texts, std::span<const int> lengths) {
  uint64_t bytes = (lengths.size() + 2) * sizeof(int32_t);
  for (size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] < 0 || (texts[i] == nullptr && lengths[i] != 0))
      return fail(ErrorCode::kBadData, "String {} has the length {}.", i, lengths[i]);
    bytes += static_cast<uint64_t>(lengths[i]);
  }
  if (bytes > static_cast<uint64_t>(std::numeric_limits<int32_t>::max()))
    return fail(ErrorCode::kBadData, "The strings take {} bytes; the most are 2^31 - 1.", bytes);
  return bytes;
}

Status writeStrings(const char* const* texts, std::span<const int> lengths, TfLiteTensor* tensor) {
  HEARTH_ASSIGN(const size_t bytes, stringBytes(texts, lengths));
  auto* const data = static_cast<uint8_t*>(std::malloc(bytes));
  if (data == nullptr) return fail(ErrorCode::kOutOfMemory, "There is no memory for the strings.");
  std::vector<int32_t> table = {static_cast<int32_t>(lengths.size())};
  size_t end = (lengths.size() + 2) * sizeof(int32_t);
  for (size_t i = 0; i < lengths.size(); ++i) {
    table.push_back(static_cast<int32_t>(end));
    const auto length = static_cast<size_t>(lengths[i]);
    if (length != 0) std::memcpy(data + end, texts[i], length);
    end += length;
  }
  table.push_back(static_cast<int32_t>(end));
  std::memcpy(data, table.data(), table.size() * sizeof(int32_t));
  const bool isScalar = tensor->dims != nullptr && tensor->dims->size == 0;
  if (!isScalar || lengths.size() != 1) {
    const int32_t count = table.front();
    TfLiteIntArray* const dims = hearth::tflite_abi::makeIntArray({&count, 1});
    std::free(tensor->dims);
    tensor->dims = dims;
  }
  if (tensor->allocation_type == kTfLiteDynamic) std::free(tensor->data);
  tensor->data = data;
  tensor->bytes = bytes;
  tensor->allocation_type = kTfLiteDynamic;
  return {};
}

}  // namespace

extern "C" {

TfLiteType TfLiteTensorType(const TfLiteTensor* tensor) {
  return tensor == nullptr ? kTfLiteNoType : tensor->type;
}

int32_t TfLiteTensorNumDims(const TfLiteTensor* tensor) {
  return tensor == nullptr || tensor->dims == nullptr ? -1 : tensor->dims->size;
}

int32_t TfLiteTensorDim(const TfLiteTensor* tensor, int32_t index) {
  return index < 0 || index >= TfLiteTensorNumDims(tensor) ? -1 : tensor->dims->data[index];
}

size_t TfLiteTensorByteSize(const TfLiteTensor* tensor) {
  return tensor == nullptr ? 0 : tensor->bytes;
}

void* TfLiteTensorData(const TfLiteTensor* tensor) {
  return tensor == nullptr ? nullptr : tensor->data;
}

const char* TfLiteTensorName(const TfLiteTensor* tensor) {
  return tensor == nullptr ? nullptr : tensor->name;
}

TfLiteQuantizationParams TfLiteTensorQuantizationParams(const TfLiteTensor* tensor) {
  if (tensor == nullptr) return {};
  return {tensor->legacy_scale, tensor->legacy_zero_point};
}

TfLiteStatus TfLiteTensorCopyFromBuffer(TfLiteTensor* tensor, const void* data, size_t size) {
  if (tensor == nullptr || tensor->bytes != size || tensor->allocation_type == kTfLiteMmapRo)
    return kTfLiteError;
  if (size == 0) return kTfLiteOk;
  if (data == nullptr || tensor->data == nullptr) return kTfLiteError;
  std::memcpy(tensor->data, data, size);
  return kTfLiteOk;
}

TfLiteStatus TfLiteTensorCopyToBuffer(const TfLiteTensor* tensor, void* data, size_t size) {
  if (tensor == nullptr || tensor->bytes != size) return kTfLiteError;
  if (size == 0) return kTfLiteOk;
  if (data == nullptr || tensor->data == nullptr) return kTfLiteError;
  std::memcpy(data, tensor->data, size);
  return kTfLiteOk;
}

void TfLiteTensorDataFree(TfLiteTensor* tensor) {
  hearth::tflite_abi::freeTensorData(tensor);
}

void TfLiteTensorFree(TfLiteTensor* tensor) {
  hearth::tflite_abi::freeTensor(tensor);
}

void TfLiteTensorReset(TfLiteType type, const char* name, TfLiteIntArray* dims,
                       TfLiteQuantizationParams quantization, char* buffer, size_t size,
                       TfLiteAllocationType allocation_type, const void* allocation,
                       bool is_variable, TfLiteTensor* tensor) {
  if (tensor == nullptr) return;
  TfLiteTensorFree(tensor);
  tensor->type = type;
  tensor->name = name;
  tensor->dims = dims;
  tensor->legacy_scale = quantization.scale;
  tensor->legacy_zero_point = quantization.zero_point;
  tensor->data = buffer;
  tensor->bytes = size;
  tensor->allocation_type = allocation_type;
  tensor->allocation = allocation;
  tensor->is_variable = is_variable;
}

TfLiteStatus TfLiteTensorCopy(const TfLiteTensor* from, TfLiteTensor* to) {
  if (from == nullptr || to == nullptr || from == to) return kTfLiteOk;
  TfLiteIntArray* const dims = TfLiteIntArrayCopy(from->dims);
  if (dims == nullptr && from->dims != nullptr) return kTfLiteError;
  if (!hearth::tflite_abi::copyTensorData(*from, to)) {
    std::free(dims);
    return kTfLiteError;
  }
  std::free(to->dims);
  to->dims = dims;
  to->type = from->type;
  to->buffer_handle = from->buffer_handle;
  to->data_is_stale = from->data_is_stale;
  to->delegate = from->delegate;
  return kTfLiteOk;
}

TfLiteStatus TfLiteTensorResizeMaybeCopy(size_t bytes, TfLiteTensor* tensor, bool preserve_data) {
  return hearth::tflite_abi::reallocateTensor(bytes, preserve_data, tensor);
}

TfLiteStatus TfLiteTensorRealloc(size_t bytes, TfLiteTensor* tensor) {
  return TfLiteTensorResizeMaybeCopy(bytes, tensor, true);
}

TfLiteAllocationStrategy TfLiteTensorGetAllocationStrategy(const TfLiteTensor* tensor) {
  return lifeOf(tensor).allocation;
}

TfLiteRunStability TfLiteTensorGetBufferAddressStability(const TfLiteTensor* tensor) {
  return lifeOf(tensor).address;
}

TfLiteRunStability TfLiteTensorGetDataStability(const TfLiteTensor* tensor) {
  return lifeOf(tensor).data;
}

TfLiteRunStep TfLiteTensorGetDataKnownStep(const TfLiteTensor* tensor) {
  return lifeOf(tensor).dataKnown;
}

TfLiteRunStep TfLiteTensorGetShapeKnownStep(const TfLiteTensor* tensor) {
  return lifeOf(tensor).shapeKnown;
}

TfLiteType TfLiteOpaqueTensorType(const TfLiteOpaqueTensor* tensor) {
  return TfLiteTensorType(tensor);
}

int32_t TfLiteOpaqueTensorNumDims(const TfLiteOpaqueTensor* tensor) {
  return TfLiteTensorNumDims(tensor);
}

int32_t TfLiteOpaqueTensorDim(const TfLiteOpaqueTensor* tensor, int32_t index) {
  return TfLiteTensorDim(tensor, index);
}

TfLiteStatus TfLiteOpaqueTensorGetNumDimsSignature(const TfLiteOpaqueTensor* tensor,
                                                   int32_t* rank) {
  if (tensor == nullptr || rank == nullptr) return kTfLiteError;
  *rank = tensor->dims_signature == nullptr ? -1 : tensor->dims_signature->size;
  return kTfLiteOk;
}

TfLiteStatus TfLiteOpaqueTensorGetDimSignature(const TfLiteOpaqueTensor* tensor, int32_t index,
                                               int32_t* dim) {
  if (tensor == nullptr || dim == nullptr || tensor->dims_signature == nullptr || index < 0 ||
      index >= tensor->dims_signature->size)
    return kTfLiteError;
  *dim = tensor->dims_signature->data[index];
  return kTfLiteOk;
}

int TfLiteOpaqueTensorIsVariable(const TfLiteOpaqueTensor* tensor) {
  return tensor != nullptr && tensor->is_variable ? 1 : 0;
}

size_t TfLiteOpaqueTensorByteSize(const TfLiteOpaqueTensor* tensor) {
  return TfLiteTensorByteSize(tensor);
}

void* TfLiteOpaqueTensorData(const TfLiteOpaqueTensor* tensor) {
  return TfLiteTensorData(tensor);
}

TfLiteAllocationType TfLiteOpaqueTensorGetAllocationType(const TfLiteOpaqueTensor* tensor) {
  return tensor == nullptr ? kTfLiteMemNone : tensor->allocation_type;
}

TfLiteAllocationStrategy TfLiteOpaqueTensorGetAllocationStrategy(const TfLiteOpaqueTensor* tensor) {
  return TfLiteTensorGetAllocationStrategy(tensor);
}

TfLiteRunStability TfLiteOpaqueTensorGetBufferAddressStability(const TfLiteOpaqueTensor* tensor) {
  return TfLiteTensorGetBufferAddressStability(tensor);
}

TfLiteRunStability TfLiteOpaqueTensorGetDataStability(const TfLiteOpaqueTensor* tensor) {
  return TfLiteTensorGetDataStability(tensor);
}

TfLiteRunStep TfLiteOpaqueTensorGetDataKnownStep(const TfLiteOpaqueTensor* tensor) {
  return TfLiteTensorGetDataKnownStep(tensor);
}

TfLiteRunStep TfLiteOpaqueTensorGetShapeKnownStep(const TfLiteOpaqueTensor* tensor) {
  return TfLiteTensorGetShapeKnownStep(tensor);
}

const char* TfLiteOpaqueTensorName(const TfLiteOpaqueTensor* tensor) {
  return TfLiteTensorName(tensor);
}

TfLiteQuantization TfLiteOpaqueTensorGetQuantization(const TfLiteOpaqueTensor* tensor) {
  return tensor == nullptr ? TfLiteQuantization{kTfLiteNoQuantization, nullptr}
                           : tensor->quantization;
}

TfLiteQuantizationParams TfLiteOpaqueTensorGetQuantizationParams(const TfLiteOpaqueTensor* tensor) {
  return TfLiteTensorQuantizationParams(tensor);
}

TfLiteStatus TfLiteOpaqueTensorCopyFromBuffer(TfLiteOpaqueTensor* tensor, const void* data,
                                              size_t size) {
  return TfLiteTensorCopyFromBuffer(tensor, data, size);
}

TfLiteStatus TfLiteOpaqueTensorCopyToBuffer(const TfLiteOpaqueTensor* tensor, void* data,
                                            size_t size) {
  return TfLiteTensorCopyToBuffer(tensor, data, size);
}

int TfLiteOpaqueTensorGetStringCount(const TfLiteOpaqueTensor* tensor) {
  return stringCount(tensor);
}

TfLiteStatus TfLiteOpaqueTensorGetString(const TfLiteOpaqueTensor* tensor, int index,
                                         const char** text, int* length) {
  if (text == nullptr || length == nullptr || index < 0 || index >= stringCount(tensor))
    return kTfLiteError;
  const int32_t begin = wordAt(*tensor, static_cast<size_t>(index) + 1);
  const int32_t end = wordAt(*tensor, static_cast<size_t>(index) + 2);
  if (begin < 0 || end < begin || static_cast<size_t>(end) > tensor->bytes) return kTfLiteError;
  *text = static_cast<const char*>(tensor->data) + begin;
  *length = end - begin;
  return kTfLiteOk;
}

TfLiteStatus TfLiteOpaqueTensorWriteStrings(TfLiteOpaqueTensor* tensor, const char* const* texts,
                                            int count, const int* lengths) {
  if (tensor == nullptr || tensor->type != kTfLiteString || count < 0 ||
      tensor->allocation_type == kTfLiteMmapRo ||
      (count != 0 && (texts == nullptr || lengths == nullptr)))
    return kTfLiteError;
  const Status written = hearth::base::caught(
      [&] { return writeStrings(texts, {lengths, static_cast<size_t>(count)}, tensor); });
  return statusOf(written.has_value());
}

TfLiteStatus TfLiteOpaqueTensorWriteString(TfLiteOpaqueTensor* tensor, const char* text,
                                           int length) {
  return TfLiteOpaqueTensorWriteStrings(tensor, &text, 1, &length);
}

TfLiteStatus TfLiteOpaqueTensorSetAllocationTypeToDynamic(TfLiteOpaqueTensor* tensor) {
  if (tensor == nullptr || tensor->allocation_type == kTfLiteMmapRo) return kTfLiteError;
  if (tensor->allocation_type == kTfLiteDynamic) return kTfLiteOk;
  tensor->allocation_type = kTfLiteDynamic;
  tensor->data = nullptr;
  return kTfLiteOk;
}

TfLiteOpaqueTensorBuilder* TfLiteOpaqueTensorBuilderCreate() {
  return new (std::nothrow) TfLiteOpaqueTensorBuilder();
}

void TfLiteOpaqueTensorBuilderDelete(TfLiteOpaqueTensorBuilder* builder) {
  delete builder;
}

TfLiteOpaqueTensorBuilder* TfLiteOpaqueTensorBuilderSetType(TfLiteOpaqueTensorBuilder* builder,
                                                            TfLiteType type) {
  if (builder != nullptr) builder->type = type;
  return builder;
}

TfLiteOpaqueTensorBuilder* TfLiteOpaqueTensorBuilderSetData(TfLiteOpaqueTensorBuilder* builder,
                                                            void* data) {
  if (builder != nullptr) builder->data = data;
  return builder;
}

TfLiteOpaqueTensorBuilder* TfLiteOpaqueTensorBuilderSetAllocationType(
    TfLiteOpaqueTensorBuilder* builder, TfLiteAllocationType allocation_type) {
  if (builder != nullptr) builder->allocationType = allocation_type;
  return builder;
}

TfLiteOpaqueTensorBuilder* TfLiteOpaqueTensorBuilderSetQuantizationParams(
    TfLiteOpaqueTensorBuilder* builder, TfLiteQuantizationParams params) {
  if (builder != nullptr) builder->params = params;
  return builder;
}

TfLiteOpaqueTensorBuilder* TfLiteOpaqueTensorBuilderSetQuantization(
    TfLiteOpaqueTensorBuilder* builder, TfLiteQuantization quantization) {
  if (builder != nullptr) builder->quantization = quantization;
  return builder;
}

// Dynamic tensors bring memory, those of the arena get it once they are prepared.
TfLiteStatus TfLiteOpaqueContextAddTensor(TfLiteOpaqueContext* context,
                                          TfLiteOpaqueTensorBuilder* builder, int* index) {
  if (context == nullptr || builder == nullptr || context->AddTensors == nullptr)
    return kTfLiteError;
  const bool isDynamic = builder->allocationType == kTfLiteDynamic;
  const bool isInArena = builder->allocationType == kTfLiteArenaRw ||
                         builder->allocationType == kTfLiteArenaRwPersistent;
  if ((!isDynamic && !isInArena) || isDynamic != (builder->data != nullptr)) {
    context->ReportError(
        context, "A new tensor is dynamic and has data, or lies in the arena and has none.");
    return kTfLiteError;
  }
  int32_t added = -1;
  if (context->AddTensors(context, 1, &added) != kTfLiteOk) return kTfLiteError;
  TfLiteTensor& tensor = context->tensors[added];
  tensor.type = builder->type;
  tensor.data = builder->data;
  tensor.allocation_type = builder->allocationType;
  tensor.legacy_scale = builder->params.scale;
  tensor.legacy_zero_point = builder->params.zero_point;
  tensor.quantization = builder->quantization;
  if (index != nullptr) *index = added;
  return kTfLiteOk;
}

}  // extern "C"
