// SPDX-License-Identifier: Apache-2.0
// Reads any bytes as the metadata of a model.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "frontends/tflite/metadata_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // A copy of exactly this size.
  const std::vector<uint8_t> bytes(data, data + size);
  const hearth::tflite::ModelMetadata metadata = hearth::tflite::parseMetadata(bytes);
  // What is copied is limited by the size of the file.
  size_t copied = 0;
  for (const auto* tensors : {&metadata.inputs, &metadata.outputs})
    for (const hearth::tflite::TensorMetadata& tensor : *tensors)
      copied += tensor.description.size() + 4 * (tensor.mean.size() + tensor.std.size());
  if (copied > 8 * size + (size_t{64} << 10)) std::abort();
  return 0;
}
