// SPDX-License-Identifier: Apache-2.0
// Reads any bytes as each kind of file that the command takes as an input.
#include <cstdint>
#include <cstdlib>

#include "tools/media/npy.h"
#include "tools/media/picture.h"
#include "tools/media/wav.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hearth::tools;
  if (const auto array = parseNpy({data, size}))
    if (!parseNpy(formatNpy(*array))) std::abort();
  (void)parseWav({data, size});
  // A few bytes can encode a large picture, which only takes time.
  constexpr uint64_t kMostPixels = uint64_t{1} << 18;
  if (const auto picture = decodePicture({data, size}, kMostPixels))
    if (picture->samples.size() != size_t{picture->width} * picture->height * 3) std::abort();
  return 0;
}
