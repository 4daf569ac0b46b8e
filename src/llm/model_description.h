// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "llm/model_file.h"

namespace hearth::llm {

// What the file of a language model says about itself, as a JSON object: that of
// hearth_llm_model_describe(). Bytes that are no UTF-8 are replaced. `chatTemplate`: in place of
// the file's; empty = none. Error: kBadData for stop tokens that cannot be encoded.
Result<std::string> describeLanguageModel(const ModelFile& file, std::string_view chatTemplate);

}  // namespace hearth::llm
