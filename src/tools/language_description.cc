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
  // Of the store only what is there: to describe a model changes nothing.
  CompileOptions store;
  store.cache = HEARTH_CACHE_READ_ONLY;
  const auto file = llm::readModelFile(path, "", llm::TokenizerTables::of(store));
  if (!file) return problem(file.error());
  if (!file->tokenizer && file->metadata.stopTokens.empty() && file->executor.stateBuffers.empty())
    return "";
  const auto description = llm::describeLanguageModel(*file, "");
  if (!description) return problem(description.error());
  auto json = nlohmann::ordered_json::parse(*description);
  json["tokenizer_table"] = file->table ? nlohmann::ordered_json(file->table->hex()) : nullptr;
  return json.dump();
}

}  // namespace hearth::tools
