// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite/reader/hash_table.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <string_view>

#include "frontends/tflite/reader/file_operators.h"
#include "frontends/tflite/reader/text.h"
#include "memory/packed_strings.h"

namespace hearth::tflite {
namespace {

using schema::TensorType;

// The elements of a constant; the vector that its type means.
struct Elements {
  TensorType type = TensorType::INT64;
  std::vector<int64_t> numbers;
  std::vector<std::string_view> strings;

  size_t count() const { return type == TensorType::STRING ? strings.size() : numbers.size(); }
  bool isLess(size_t a, size_t b) const {
    return type == TensorType::STRING ? strings[a] < strings[b] : numbers[a] < numbers[b];
  }
};

Result<Elements> readElements(const FileView& file, const schema::SubGraph& subgraph,
                              int64_t index) {
  const schema::Tensor* const tensor = file.tensor(subgraph, index);
  if (tensor == nullptr)
    return fail(ErrorCode::kBadData, "It fills a hash table from tensor {}, which does not exist.",
                index);
  Elements elements;
  elements.type = tensor->type();
  HEARTH_ASSIGN(const std::optional<BufferRange> range, file.buffer(tensor->buffer()));
  if (!range || tensor->sparsity() != nullptr || tensor->is_variable())
    return fail(ErrorCode::kUnsupported,
                "It fills a hash table from the tensor \"{}\", which is no constant.",
                cleanText(tensor->name()));
  const std::span<const uint8_t> bytes = file.bytes(*range);
  if (elements.type == TensorType::STRING) {
    HEARTH_ASSIGN(const memory::PackedStrings packed, memory::PackedStrings::of(bytes));
    elements.strings.reserve(packed.count());
    for (size_t i = 0; i < packed.count(); ++i) elements.strings.push_back(packed[i]);
    return elements;
  }
  if (elements.type != TensorType::INT64)
    return fail(ErrorCode::kUnsupported, "It fills a hash table from a tensor of type {}.",
                tensorTypeName(elements.type));
  if (bytes.size() % sizeof(int64_t) != 0)
    return fail(ErrorCode::kBadData, "The constant \"{}\" of type INT64 has {} bytes.",
                cleanText(tensor->name()), bytes.size());
  elements.numbers.resize(bytes.size() / sizeof(int64_t));
  std::memcpy(elements.numbers.data(), bytes.data(), bytes.size());
  return elements;
}

// Those at `places`, in their order.
Result<std::vector<uint8_t>> constantOf(const Elements& elements,
                                        const std::vector<uint32_t>& places) {
  if (elements.type == TensorType::STRING) {
    std::vector<std::string_view> chosen;
    chosen.reserve(places.size());
    for (const uint32_t place : places) chosen.push_back(elements.strings[place]);
    return memory::packStrings(chosen);
  }
  std::vector<uint8_t> bytes(places.size() * sizeof(int64_t));
  for (size_t i = 0; i < places.size(); ++i)
    std::memcpy(bytes.data() + i * sizeof(int64_t), &elements.numbers[places[i]], sizeof(int64_t));
  return bytes;
}

}  // namespace

Result<HashTable> readHashTable(const FileView& file, const schema::SubGraph& subgraph,
                                int64_t keys, int64_t values) {
  HEARTH_ASSIGN(const Elements from, readElements(file, subgraph, keys));
  HEARTH_ASSIGN(const Elements to, readElements(file, subgraph, values));
  if (from.count() != to.count())
    return fail(ErrorCode::kBadData, "It fills a hash table with {} keys and {} values.",
                from.count(), to.count());
  if (from.type == to.type)
    return fail(ErrorCode::kUnsupported,
                "It fills a hash table of {} keys and {} values; one of them must be STRING and "
                "one INT64.",
                tensorTypeName(from.type), tensorTypeName(to.type));
  std::vector<uint32_t> places(from.count());
  std::iota(places.begin(), places.end(), 0u);
  // Of equal keys the first comes first.
  std::ranges::stable_sort(places, [&](uint32_t a, uint32_t b) { return from.isLess(a, b); });
  const auto repeated =
      std::ranges::unique(places, [&](uint32_t a, uint32_t b) { return !from.isLess(a, b); });
  places.erase(repeated.begin(), repeated.end());
  HashTable table;
  table.keyType = from.type;
  table.valueType = to.type;
  table.count = places.size();
  HEARTH_ASSIGN(table.keys, constantOf(from, places));
  HEARTH_ASSIGN(table.values, constantOf(to, places));
  return table;
}

}  // namespace hearth::tflite
