// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>

#include "tools/chat_server_options.h"

namespace hearth::tools {

// Adds `chat-server`, without the options of the weight store.
CLI::App* addChatServerCommand(CLI::App* app, ChatServerOptions* options);

}  // namespace hearth::tools
