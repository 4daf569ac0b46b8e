// SPDX-License-Identifier: Apache-2.0
// The command lines of `hearth chat`, `hearth complete`, `hearth conversations` and
// `hearth tokenize`.
#pragma once

#include <CLI/CLI.hpp>

#include "tools/language_options.h"

namespace hearth::tools {

// Each adds a command that sets `options`, which must outlive the parsing. What chat and complete
// share with `hearth run`, options of the store and --timeout, is left to the caller.
CLI::App* addChatCommand(CLI::App* app, LanguageOptions* options);
CLI::App* addCompleteCommand(CLI::App* app, LanguageOptions* options);
// `cache`: the command that it is a part of.
CLI::App* addCachePrefixesCommand(CLI::App* cache, PrefixesOptions* options);
CLI::App* addConversationsCommand(CLI::App* app, ConversationsOptions* options);
CLI::App* addTokenizeCommand(CLI::App* app, TokenizeOptions* options);

}  // namespace hearth::tools
