// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite_c/tensor_strings.h"

#include <cstdlib>
#include <cstring>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontends/tflite_c/tensor_table.h"
#include "memory/packed_strings.h"

namespace hearth::tflite_c {
namespace {

uint64_t elementCountOf(const TfLiteTensor& tensor) {
  uint64_t count = 1;
  for (const int32_t dim : tflite_abi::dimsOf(tensor)) count *= static_cast<uint64_t>(dim);
  return count;
}

// With as many strings as the tensor has elements.
Result<memory::PackedStrings> packedStringsOf(const TfLiteTensor& tensor) {
  const auto* const bytes = static_cast<const uint8_t*>(tensor.data);
  const char* const name = tensor.name == nullptr ? "" : tensor.name;
  auto packed = memory::PackedStrings::of({bytes, bytes == nullptr ? 0 : tensor.bytes});
  if (!packed)
    return fail(ErrorCode::kBadData, "The tensor \"{}\" holds no strings: {}", name,
                packed.error().message());
  if (packed->count() != elementCountOf(tensor))
    return fail(ErrorCode::kBadData, "The tensor \"{}\" has {} elements and holds {} strings.",
                name, elementCountOf(tensor), packed->count());
  return packed;
}

Status setStrings(std::span<const std::string_view> texts, TfLiteTensor* tensor) {
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

}  // namespace

Status readStrings(const TfLiteTensor& tensor, HeldStrings* held) {
  HEARTH_ASSIGN(const memory::PackedStrings packed, packedStringsOf(tensor));
  held->elements.reserve(packed.count());
  for (size_t i = 0; i < packed.count(); ++i) {
    HEARTH_ASSIGN(const memory::StringHandle element, held->scope.put(packed[i]));
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
  return setStrings(texts, tensor);
}

Status showStrings(std::span<const memory::StringHandle> elements, TfLiteTensor* tensor) {
  std::vector<std::string> texts;
  texts.reserve(elements.size());
  for (const memory::StringHandle element : elements) {
    HEARTH_ASSIGN(std::string text, memory::readString(element));
    texts.push_back(std::move(text));
  }
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  return setStrings(views, tensor);
}

Status putStrings(const TfLiteTensor& tensor, std::span<memory::StringHandle> elements) {
  HEARTH_ASSIGN(const memory::PackedStrings packed, packedStringsOf(tensor));
  if (packed.count() != elements.size())
    return fail(ErrorCode::kOpFailed, "It gives {} strings for {} elements.", packed.count(),
                elements.size());
  for (size_t i = 0; i < packed.count(); ++i) {
    HEARTH_ASSIGN(elements[i], memory::putString(packed[i]));
  }
  return {};
}

}  // namespace hearth::tflite_c
