// SPDX-License-Identifier: Apache-2.0
// Parses any bytes as the head of a stored prefix.
#include <cstdint>
#include <cstdlib>

#include "cache/prefix/prefix_block.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto block = hearth::cache::parsePrefixHead({data, size});
  if (!block) return 0;
  // Writing the parsed fields again gives a head that says the same.
  const auto again = hearth::cache::parsePrefixHead(hearth::cache::makePrefixHead(*block));
  if (!again || *again != *block) std::abort();
  return 0;
}
