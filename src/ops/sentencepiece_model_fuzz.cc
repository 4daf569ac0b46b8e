// SPDX-License-Identifier: Apache-2.0
// Any bytes as a model of SentencePiece that segments texts.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "ops/sentencepiece_model.h"

using hearth::ops::SentencepieceModel;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto model = SentencepieceModel::read({data, size});
  if (!model) return 0;
  for (const std::string_view text :
       {std::string_view("  ab\tabba \u00e4 xyz"), std::string_view("\xff\xfe\x00z", 4)}) {
    const auto codes = model->encode(text, {.hasBegin = true, .hasEnd = true, .isReversed = true});
    if (codes && codes->size() < 2) std::abort();
  }
  return 0;
}
