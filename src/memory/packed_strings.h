// SPDX-License-Identifier: Apache-2.0
// TFLite's format of several strings in one buffer, that of constants in .tflite files and of the
// tensors of its C library: the number of strings, the offset of each string's first byte, the
// offset behind the last string, all as int32_t, then the bytes. Offsets count from the beginning
// of the buffer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace hearth::memory {

// A view of such a buffer, which must outlive it.
class PackedStrings {
 public:
  // Checks the whole buffer, which may have any alignment. Without bytes it has no strings. Bytes
  // behind the last string are allowed. kBadData names the offset that is wrong.
  static Result<PackedStrings> of(std::span<const uint8_t> bytes);

  size_t count() const { return count_; }
  // index < count().
  std::string_view operator[](size_t index) const;

 private:
  explicit PackedStrings(std::span<const uint8_t> bytes) : bytes_(bytes) {}
  int32_t word(size_t index) const;

  std::span<const uint8_t> bytes_;
  size_t count_ = 0;
};

// The buffer for some strings. kUnsupported when it would have more than 2^31 - 1 bytes.
Result<std::vector<uint8_t>> packStrings(std::span<const std::string_view> strings);

}  // namespace hearth::memory
