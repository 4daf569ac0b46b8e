// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

namespace hearth::base {

static_assert(std::endian::native == std::endian::little, "The formats are little endian.");

// Reads numbers and lists from bytes that are not trusted, while there are bytes for them; zeros
// and empty lists from the first one that does not fit. A list is its number of elements (uint64_t)
// and the elements; none is allocated that the bytes do not hold. Not thread-safe.
class ByteReader {
 public:
  explicit ByteReader(std::span<const uint8_t> bytes) : rest_(bytes) {}

  template <typename T>
  T number() {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
    T value{};
    take(&value, sizeof value);
    return value;
  }
  // Any byte but 0 is true.
  bool flag() { return number<uint8_t>() != 0; }
  // The number of elements that follow, each of which takes at least `least` bytes.
  size_t count(size_t least) {
    const auto count = number<uint64_t>();
    return bounded(count, rest_.size() / least);
  }
  template <typename T>
  std::vector<T> list() {
    static_assert(std::is_trivially_copyable_v<T>);
    std::vector<T> values(count(sizeof(T)));
    take(values.data(), values.size() * sizeof(T));
    return values;
  }
  // Copies the next `size` bytes to `to`, if there are so many.
  void take(void* to, size_t size) {
    if (!isGood_ || size > rest_.size()) {
      isGood_ = false;
      return;
    }
    if (size != 0) std::memcpy(to, rest_.data(), size);
    rest_ = rest_.subspan(size);
  }
  // The value if it is at most `most`; otherwise 0, and nothing is good from now on.
  size_t bounded(uint64_t value, uint64_t most) {
    if (value <= most) return static_cast<size_t>(value);
    isGood_ = false;
    return 0;
  }

  // Whether all that was read was there.
  bool isGood() const { return isGood_; }
  bool hasBytes() const { return !rest_.empty(); }

 private:
  std::span<const uint8_t> rest_;
  bool isGood_ = true;
};

}  // namespace hearth::base
