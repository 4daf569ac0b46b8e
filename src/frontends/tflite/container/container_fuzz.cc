// SPDX-License-Identifier: Apache-2.0
// Reads any bytes as a container: parses its directory, and opens each model in it.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "frontends/tflite/container/container.h"
#include "frontends/tflite/model_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using hearth::tflite::ModelFile;
  // An aligned copy of exactly this size.
  const std::vector<uint8_t> bytes(data, data + size);
  const auto container = hearth::tflite::readContainer(bytes);
  if (!container || !*container) return 0;
  constexpr size_t kMaxOpened = 4;
  size_t opened = 0;
  for (const hearth::tflite::Part& part : (*container)->parts) {
    if (part.offset > size || part.size > size - part.offset) std::abort();
    if (part.kind != hearth::tflite::PartKind::kModel || ++opened > kMaxOpened) continue;
    (void)ModelFile::fromPool(hearth::memory::Pool::borrowed(bytes.data(), bytes.size()),
                              part.name);
  }
  (void)hearth::tflite::chooseModel(**container, "");
  return 0;
}
