// SPDX-License-Identifier: Apache-2.0
// Reads any bytes as what a device has kept of a delegate: the files of its cache, or its claims.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "drivers/delegate/claims.h"
#include "drivers/delegate/kept_files.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hearth::drivers::delegate;
  uint64_t bytes = 0;
  if (const auto files = readKeptFiles({data, size}))
    for (const KeptFile& file : *files) bytes += file.bytes.size() + file.name.size();
  if (bytes > size) std::abort();
  const auto claims = decodeClaims({reinterpret_cast<const char*>(data), size});
  if (!claims) return 0;
  // Writing them again gives claims that say the same.
  const auto again = decodeClaims(encodeClaims(*claims));
  if (!again || again->size() != claims->size()) std::abort();
  return 0;
}
