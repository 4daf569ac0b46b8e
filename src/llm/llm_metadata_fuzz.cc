// SPDX-License-Identifier: Apache-2.0
// Any bytes as the metadata of a language model, and as the packed section of its tokenizer.
#include <cstddef>
#include <cstdint>

#include "llm/llm_metadata.h"
#include "llm/model_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  (void)hearth::llm::readLlmMetadata({data, size});
  (void)hearth::llm::readTaskMetadata({data, size});
  (void)hearth::llm::unpackTokenizer({data, size});
  return 0;
}
