// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/options.h"

namespace hearth::tools {

// The options of `hearth chat-server`.
struct ChatServerOptions {
  std::vector<std::string> models;  // FILE or NAME=FILE
  std::string listen = "127.0.0.1:8080";
  bool isPublic = false;  // whether other machines may connect
  std::string apiKeyFile;
  size_t sessions = 4;
  size_t queue = 64;
  uint64_t memory = 0;  // bytes of private memory; 0 = no limit
  size_t connections = 1024;
  uint64_t requestBytes = uint64_t{4} << 20;
  std::string chatTemplate;    // a file, in place of the models' own; empty = none
  size_t context = 0;          // 0 = the model's
  std::optional<size_t> keep;  // tokens, where the context is full; absent: answers end
  std::string prefixStore = "marked";
  uint32_t threads = 0;
  StoreFlags store;
  double timeoutSeconds = 0;  // of a request; 0 = none
};

}  // namespace hearth::tools
