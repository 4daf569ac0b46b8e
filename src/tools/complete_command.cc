// SPDX-License-Identifier: Apache-2.0
// `hearth complete`.
#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "tools/language_commands.h"
#include "tools/language_session.h"
#include "tools/text_argument.h"

namespace hearth::tools {
namespace {

// With the start in front, which a text that begins with it itself does not get twice.
Result<std::vector<int32_t>> promptTokens(const LanguageSession& session, const std::string& text,
                                          llm::SpecialTokens special) {
  HEARTH_ASSIGN(const std::vector<int32_t> own, session.tokenizer().encode(text, special));
  std::vector<int32_t> tokens = session.startTokens();
  if (own.size() >= tokens.size() && std::equal(tokens.begin(), tokens.end(), own.begin()))
    tokens.clear();
  tokens.insert(tokens.end(), own.begin(), own.end());
  return tokens;
}

}  // namespace

Outcome<void> completeCommand(const LanguageOptions& options) {
  Watchdog watchdog(options.timeoutSeconds);
  std::string prefix;
  if (options.prefix) {
    HEARTH_ASSIGN(prefix, textOfArgument(options.prefix));
  }
  HEARTH_ASSIGN(const std::string prompt, textOfArgument(options.prompt));
  HEARTH_ASSIGN(const auto session, LanguageSession::open(options, &watchdog));
  const auto special =
      options.hasSpecialTokens ? llm::SpecialTokens::kAreParsed : llm::SpecialTokens::kAreText;
  HEARTH_ASSIGN(const std::vector<int32_t> tokens,
                promptTokens(*session, prefix + prompt, special));
  size_t marked = 0;
  if (options.prefix) {
    HEARTH_ASSIGN(const std::vector<int32_t> alone, promptTokens(*session, prefix, special));
    // A token may reach over the end of the prefix.
    marked = static_cast<size_t>(std::ranges::mismatch(alone, tokens).in1 - alone.begin());
  }
  HEARTH_ASSIGN(const auto answer,
                session->answer(tokens, marked, !options.isJson, [] { return false; }));
  if (options.isJson) std::cout << session->toJson(answer).dump(2) << '\n';
  if (options.hasStats) session->showStats(answer);
  return {};
}

}  // namespace hearth::tools
