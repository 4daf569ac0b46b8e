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
  std::string prefix;
  if (options.prefix) {
    HEARTH_ASSIGN(prefix, textOfArgument(options.prefix));
  }
  HEARTH_ASSIGN(const std::string prompt, textOfArgument(options.prompt));
  HEARTH_ASSIGN(const auto session,
                LanguageSession::open(options, &watchdog, Readiness::kWhenNeeded));
  const auto special =
      options.hasSpecialTokens ? llm::SpecialTokens::kAreParsed : llm::SpecialTokens::kAreText;
  HEARTH_ASSIGN(const std::vector<int32_t> tokens, session->promptTokens(prefix + prompt, special));
  size_t marked = 0;
  if (options.prefix) {
    HEARTH_ASSIGN(const std::vector<int32_t> alone, session->promptTokens(prefix, special));
    // A token may reach over the end of the prefix.
    marked = static_cast<size_t>(std::ranges::mismatch(alone, tokens).in1 - alone.begin());
  }
  HEARTH_ASSIGN(const auto answer, session->answer(tokens, {.marked = marked, .lasting = marked},
                                                   !options.isJson, [] { return false; }));
  if (options.isJson) std::cout << session->toJson(answer).dump(2) << '\n';
  if (options.hasStats) session->showStats(answer);
  return {};
}

}  // namespace hearth::tools
