// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace hearth::llm {

// The bytes of a BytePairTable for a `tokenizer.json` of Hugging Face's tokenizers. Its description
// is the file without its tokens and merges. Errors: kBadData for a damaged file, kUnsupported for
// one with a model other than BPE.
Result<std::vector<uint8_t>> tableOfTokenizerJson(std::string_view json);

}  // namespace hearth::llm
