// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace hearth::vulkan {

// Writes what base::ByteReader reads.
class ByteWriter {
 public:
  template <typename T>
  void number(T value) {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
    append(&value, sizeof value);
  }
  template <typename List>
  void list(const List& values) {
    number(static_cast<uint64_t>(values.size()));
    append(values.data(), values.size() * sizeof(*values.data()));
  }
  std::vector<uint8_t> bytes;

 private:
  void append(const void* data, size_t size) {
    const auto* begin = static_cast<const uint8_t*>(data);
    bytes.insert(bytes.end(), begin, begin + size);
  }
};

}  // namespace hearth::vulkan
