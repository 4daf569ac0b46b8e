// SPDX-License-Identifier: Apache-2.0
// `hearth complete`.
#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "tools/language_commands.h"
#include "tools/language_session.h"
#include "tools/text_argument.h"

namespace hearth::tools {

Outcome<void> completeCommand(const LanguageOptions& options) {
  Watchdog watchdog(options.timeoutSeconds);
  HEARTH_ASSIGN(const std::string prompt, textOfArgument(options.prompt));
  HEARTH_ASSIGN(const auto session, LanguageSession::open(options, &watchdog));
  HEARTH_ASSIGN(
      const std::vector<int32_t> text,
      session->tokenizer().encode(prompt, options.hasSpecialTokens ? llm::SpecialTokens::kAreParsed
                                                                   : llm::SpecialTokens::kAreText));
  std::vector<int32_t> tokens = session->startTokens();
  // A prompt that begins with the start itself does not get it twice.
  if (text.size() >= tokens.size() && std::equal(tokens.begin(), tokens.end(), text.begin()))
    tokens.clear();
  tokens.insert(tokens.end(), text.begin(), text.end());
  HEARTH_ASSIGN(const auto answer, session->answer(tokens, !options.isJson, [] { return false; }));
  if (options.isJson) std::cout << session->toJson(answer).dump(2) << '\n';
  if (options.hasStats) session->showStats(answer);
  return {};
}

}  // namespace hearth::tools
