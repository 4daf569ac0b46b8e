// SPDX-License-Identifier: Apache-2.0
// Reads any bytes as the model cache of a support library's compilation: what is accepted fills the
// data cache, and is written as it was read.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "drivers/support_library/saved_compilation.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hearth::drivers::support_library;
  constexpr uint64_t kDataBytes = 1000;
  const auto head = parseHead({data, size}, kDataBytes);
  if (!head) return 0;
  uint64_t sum = head->constantBytes;
  for (const auto* const sizes : {&head->modelSizes, &head->dataSizes})
    sum = std::accumulate(sizes->begin(), sizes->end(), sum);
  if (sum != kDataBytes) std::abort();
  const std::vector<uint8_t> written = encodeHead(*head);
  if (!std::equal(written.begin(), written.end(), data, data + size)) std::abort();
  return 0;
}
