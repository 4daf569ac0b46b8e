// SPDX-License-Identifier: Apache-2.0
// What `hearth inspect` shows of language models.
#include <nlohmann/json.hpp>

#include "llm/model_description.h"
#include "tools/language_commands.h"

namespace hearth::tools {

std::string describeLanguage(const std::string& path) {
  const auto problem = [](const Error& error) {
    return nlohmann::ordered_json{{"problem", error.toString()}}.dump(
        -1, ' ', false, nlohmann::json::error_handler_t::replace);
  };
  const auto file = llm::readModelFile(path, "");
  if (!file) return problem(file.error());
  if (!file->tokenizer && file->metadata.stopTokens.empty() && file->executor.stateBuffers.empty())
    return "";
  const auto description = llm::describeLanguageModel(*file, "");
  return description ? *description : problem(description.error());
}

}  // namespace hearth::tools
