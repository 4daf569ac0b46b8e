// SPDX-License-Identifier: Apache-2.0
// Any bytes as what a file says of its caches, and caches of a few shapes that it may name.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "llm/cache_tensors.h"
#include "llm/executor_metadata.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using hearth::llm::CacheTensors;
  const auto metadata = hearth::llm::readExecutorMetadata({data, size});
  if (!metadata) return 0;
  const auto tensors = CacheTensors::of(metadata->stateBuffers);
  if (!tensors) return 0;
  std::vector<hearth::TensorInfo> caches(3);
  const std::vector<uint32_t> shapes[] = {{1, 2, 64, 8}, {64}, {}};
  for (size_t i = 0; i < caches.size(); ++i) {
    caches[i].name = std::string(1, static_cast<char>('k' + i));
    caches[i].dimensions = shapes[i];
  }
  for (const size_t capacity : {0, 64}) (void)tensors->capacityOf(caches, capacity);
  for (const auto& cache : caches) {
    const auto axis = tensors->tokenAxis(cache, 64);
    if (axis && *axis >= cache.dimensions.size()) __builtin_trap();
    (void)tensors->ofInput(cache.name, true);
    (void)tensors->ofOutput(cache.name, false);
  }
  return 0;
}
