// SPDX-License-Identifier: Apache-2.0
// Reads any bytes as a model file: opens, summarises and imports it, and validates its operations.
// One operator for custom operations is registered.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "frontends/tflite/model_file.h"
#include "frontends/tflite/testing/sample_operator.h"
#include "ops/operation.h"

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  hearth::tflite::registerSampleOperator();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using hearth::tflite::ModelFile;
  // An aligned copy of exactly this size.
  const std::vector<uint8_t> bytes(data, data + size);
  const auto file = ModelFile::fromPool(hearth::memory::Pool::borrowed(bytes.data(), bytes.size()));
  if (!file) return 0;
  const auto summary = (*file)->summary();
  if (summary.subgraphs.size() != (*file)->subgraphCount()) std::abort();
  for (const auto& packed : (*file)->metadata().packed) {
    if (packed.offset > size || packed.size > size - packed.offset) std::abort();
    const auto content = (*file)->packedFile(packed.name);
    if (content && content->size() > (uint64_t{64} << 20)) std::abort();
  }
  (void)(*file)->labels(0, "");
  constexpr size_t kMaxImports = 4;
  for (size_t i = 0; i < (*file)->subgraphCount() && i < kMaxImports; ++i) {
    const auto imported = (*file)->importSubgraph(i);
    if (!imported) continue;
    if (!hearth::graph::validate(*imported->model)) std::abort();
    (void)hearth::ops::validateOperations(*imported->model);
  }
  (void)(*file)->importSignature("");
  return 0;
}
