// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "llm/chat_prompt.h"
#include "llm/compiled_model.h"
#include "llm/open_model.h"
#include "llm/prefix_cache.h"
#include "llm/stop_rules.h"

namespace hearth::llm_server {

// A model that is opened and compiled once, for all requests. Immutable; its parts are thread-safe.
struct ServedModel {
  std::string name;  // that requests say
  std::shared_ptr<const llm::OpenModel> model;
  std::shared_ptr<const llm::CompiledModel> compiled;
  const llm::ChatPrompt* prompt = nullptr;           // null for a model without a chat template
  std::shared_ptr<const llm::PrefixCache> prefixes;  // null where none are kept
  llm::StopRules stops;
  std::vector<int32_t> startTokens;
  size_t context = 0;   // the most tokens of a session
  int64_t created = 0;  // seconds since 1970

  // `argument`: NAME=FILE, or a FILE, which is named like it without `.litertlm`; `options` with
  // everything but the path. Errors: those of opening, compiling, and of a session.
  static Result<std::shared_ptr<const ServedModel>> open(const std::string& argument,
                                                         llm::OpenModelOptions options);
};

}  // namespace hearth::llm_server
