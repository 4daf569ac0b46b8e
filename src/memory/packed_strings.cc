// SPDX-License-Identifier: Apache-2.0
#include "memory/packed_strings.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace hearth::memory {

int32_t PackedStrings::word(size_t index) const {
  int32_t value;
  std::memcpy(&value, bytes_.data() + index * sizeof value, sizeof value);
  return value;
}

Result<PackedStrings> PackedStrings::of(std::span<const uint8_t> bytes) {
  PackedStrings strings(bytes);
  if (bytes.empty()) return strings;
  const size_t words = bytes.size() / sizeof(int32_t);
  if (words < 2)
    return fail(ErrorCode::kBadData, "A buffer of strings has {} bytes, it needs at least {}.",
                bytes.size(), 2 * sizeof(int32_t));
  const int32_t count = strings.word(0);
  if (count < 0 || static_cast<size_t>(count) > words - 2)
    return fail(ErrorCode::kBadData, "A buffer of {} bytes says that it has {} strings.",
                bytes.size(), count);
  strings.count_ = static_cast<size_t>(count);
  int32_t least = 0;
  for (size_t i = 0; i <= strings.count_; ++i) {
    const int32_t offset = strings.word(1 + i);
    if (offset < least || static_cast<size_t>(offset) > bytes.size())
      return fail(ErrorCode::kBadData,
                  "Offset {} of a buffer of strings is {}, it must be in [{}, {}].", i, offset,
                  least, bytes.size());
    least = offset;
  }
  return strings;
}

std::string_view PackedStrings::operator[](size_t index) const {
  const auto begin = static_cast<size_t>(word(1 + index));
  const auto end = static_cast<size_t>(word(2 + index));
  // The memory may have changed since of(): it can be a file's or a client's.
  if (end > bytes_.size() || begin > end) return {};
  return {reinterpret_cast<const char*>(bytes_.data()) + begin, end - begin};
}

Result<std::vector<uint8_t>> packStrings(std::span<const std::string_view> strings) {
  uint64_t size = (uint64_t{strings.size()} + 2) * sizeof(int32_t);
  uint64_t offset = size;
  for (const std::string_view text : strings) size += text.size();
  if (size > std::numeric_limits<int32_t>::max())
    return fail(ErrorCode::kUnsupported,
                "{} strings take {} bytes in a buffer, at most {} are possible.", strings.size(),
                size, std::numeric_limits<int32_t>::max());
  std::vector<uint8_t> bytes(size);
  uint8_t* word = bytes.data();
  const auto append = [&word](uint64_t value) {
    const auto narrow = static_cast<int32_t>(value);
    std::memcpy(word, &narrow, sizeof narrow);
    word += sizeof narrow;
  };
  append(strings.size());
  append(offset);
  for (const std::string_view text : strings) {
    std::copy(text.begin(), text.end(), bytes.begin() + static_cast<ptrdiff_t>(offset));
    offset += text.size();
    append(offset);
  }
  return bytes;
}

}  // namespace hearth::memory
