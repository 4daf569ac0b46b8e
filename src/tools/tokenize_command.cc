// SPDX-License-Identifier: Apache-2.0
// `hearth tokenize`.
#include <iostream>
#include <nlohmann/json.hpp>

#include "llm/model_file.h"
#include "llm/tokenizer_tables.h"
#include "tools/language_commands.h"
#include "tools/language_session.h"
#include "tools/media/file.h"
#include "tools/text_argument.h"
#include "tools/text_table.h"

namespace hearth::tools {
namespace {

Outcome<llm::Tokenizer> tokenizerOf(const std::string& path) {
  const auto tables = llm::TokenizerTables::of(compileOptions(StoreFlags(), 0));
  const std::string extension = extensionOf(path);
  if (extension == "json" || extension == "model") {
    HEARTH_ASSIGN(llm::Tokenizer tokenizer, llm::readTokenizerFile(path, tables));
    return tokenizer;
  }
  HEARTH_ASSIGN(llm::ModelFile file, llm::readModelFile(path, "", tables));
  if (!file.tokenizer)
    return std::unexpected(Failure(kExitFailure, base::formatText("{} has no tokenizer.", path)));
  return std::move(*file.tokenizer);
}

// What a token stands for, with bytes that are no whole character replaced.
std::string textOf(const llm::Tokenizer& tokenizer, int32_t token) {
  return tokenizer.decode(std::span(&token, 1), true, false);
}

}  // namespace

Outcome<void> tokenizeCommand(const TokenizeOptions& options) {
  HEARTH_ASSIGN(const std::string text, textOfArgument(options.text));
  HEARTH_ASSIGN(const llm::Tokenizer tokenizer, tokenizerOf(options.model));
  HEARTH_ASSIGN(const std::vector<int32_t> tokens,
                tokenizer.encode(text, options.hasSpecialTokens ? llm::SpecialTokens::kAreParsed
                                                                : llm::SpecialTokens::kAreText));
  if (options.isJson) {
    nlohmann::ordered_json texts = nlohmann::ordered_json::array();
    for (const int32_t token : tokens) texts.push_back(textOf(tokenizer, token));
    std::cout << nlohmann::ordered_json{{"tokens", tokens}, {"texts", texts}}.dump(2) << '\n';
    return {};
  }
  TextTable table({"token", "text"}, "rl");
  for (const int32_t token : tokens)
    table.add({std::to_string(token), nlohmann::json(textOf(tokenizer, token)).dump()});
  std::cout << table.toString();
  return {};
}

}  // namespace hearth::tools
