// SPDX-License-Identifier: Apache-2.0
// Any bytes as a buffer of strings: what is read lies inside, and what is written reads the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>
#include <vector>

#include "memory/packed_strings.h"

using hearth::memory::PackedStrings;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto packed = PackedStrings::of(std::span(data, size));
  if (!packed) return 0;
  std::vector<std::string_view> strings;
  for (size_t i = 0; i < packed->count(); ++i) {
    const std::string_view text = (*packed)[i];
    for (const char& letter : text)
      if (&letter < reinterpret_cast<const char*>(data) ||
          &letter >= reinterpret_cast<const char*>(data) + size)
        std::abort();
    strings.push_back(text);
  }
  const auto again = hearth::memory::packStrings(strings);
  const auto read = again ? PackedStrings::of(*again) : std::unexpected(again.error());
  if (!read || read->count() != strings.size()) std::abort();
  for (size_t i = 0; i < strings.size(); ++i)
    if ((*read)[i] != strings[i]) std::abort();
  return 0;
}
