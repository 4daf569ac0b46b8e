// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite_c/tensor_strings.h"

#include <cstdlib>
#include <cstring>
#include <new>
#include <span>
#include <string_view>

#include "frontends/tflite_c/tensor_table.h"
#include "memory/packed_strings.h"

namespace hearth::tflite_c {
namespace {

uint64_t elementCountOf(const TfLiteTensor& tensor) {
  uint64_t count = 1;
  for (const int32_t dim : tflite_abi::dimsOf(tensor)) count *= static_cast<uint64_t>(dim);
  return count;
}

}  // namespace

Status readStrings(const TfLiteTensor& tensor, HeldStrings* held) {
  const auto* const bytes = static_cast<const uint8_t*>(tensor.data);
  const auto packed = memory::PackedStrings::of({bytes, bytes == nullptr ? 0 : tensor.bytes});
  if (!packed)
    return fail(ErrorCode::kBadData, "The tensor \"{}\" holds no strings: {}", tensor.name,
                packed.error().message());
  if (packed->count() != elementCountOf(tensor))
    return fail(ErrorCode::kBadData, "The tensor \"{}\" has {} elements and holds {} strings.",
                tensor.name, elementCountOf(tensor), packed->count());
  held->elements.reserve(packed->count());
  for (size_t i = 0; i < packed->count(); ++i) {
    HEARTH_ASSIGN(const memory::StringHandle element, held->scope.put((*packed)[i]));
    held->elements.push_back(element);
  }
  return {};
}

Status storeStrings(const runtime::Execution& execution, const void* elements,
                    TfLiteTensor* tensor) {
  std::vector<std::string_view> texts(elementCountOf(*tensor));
  for (size_t i = 0; i < texts.size(); ++i) {
    memory::StringHandle element = 0;
    std::memcpy(&element, static_cast<const uint8_t*>(elements) + i * sizeof element,
                sizeof element);
    HEARTH_ASSIGN(texts[i], execution.string(element));
  }
  HEARTH_ASSIGN(const std::vector<uint8_t> packed, memory::packStrings(texts));
  void* const data = std::malloc(packed.size());
  if (data == nullptr) throw std::bad_alloc();
  std::memcpy(data, packed.data(), packed.size());
  if (tensor->allocation_type == kTfLiteDynamic) std::free(tensor->data);
  tensor->allocation_type = kTfLiteDynamic;
  tensor->data = data;
  tensor->bytes = packed.size();
  return {};
}

}  // namespace hearth::tflite_c
