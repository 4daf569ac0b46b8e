// SPDX-License-Identifier: Apache-2.0
// The commands for language models; each prints to standard output.
#pragma once

#include <string>

#include "tools/chat_server_options.h"
#include "tools/failure.h"
#include "tools/language_options.h"

namespace hearth::tools {

// Answers the message of the command line, or each line of standard input.
Outcome<void> chatCommand(const LanguageOptions& options);
// Continues a text.
Outcome<void> completeCommand(const LanguageOptions& options);
// Answers requests over HTTP until a signal ends it.
Outcome<void> chatServerCommand(const ChatServerOptions& options);
// Lists, removes or computes what the store of prefixes holds.
Outcome<void> cachePrefixesCommand(const PrefixesOptions& options);
// Lists or removes what `hearth chat --save` has saved.
Outcome<void> conversationsCommand(const ConversationsOptions& options);
// Shows a text's tokens.
Outcome<void> tokenizeCommand(const TokenizeOptions& options);

// What a file says of the language model in it, as JSON; empty where it has none. What is wrong
// with it is the member `problem`.
std::string describeLanguage(const std::string& path);

}  // namespace hearth::tools
