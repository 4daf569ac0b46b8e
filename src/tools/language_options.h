// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/options.h"

namespace hearth::tools {

// The options of `hearth complete` and `hearth chat`. Texts may be @FILE.
struct LanguageOptions {
  std::string model;
  std::string tokenizer;  // a file in place of the model's own
  std::optional<std::string> prompt;
  std::optional<std::string> system;   // chat
  std::optional<std::string> prefix;   // complete: what stands before the prompt
  std::string prefixStore = "marked";  // what is kept of prompts: off, marked, all
  std::string chatTemplate;            // chat: a file, or none
  std::string tools;                   // chat: a file of JSON; empty = none
  // chat: the name that a new conversation is saved under, or of one to go on with; one at most.
  std::optional<std::string> save;
  std::optional<std::string> resume;
  bool hasSpecialTokens = false;  // in the prompt and the messages
  size_t maxTokens = 0;           // 0 = as many as the context has room for
  std::vector<std::string> stops;
  std::optional<std::string> jsonSchema;  // that answers conform to
  std::optional<float> temperature;
  std::optional<uint32_t> topK;
  std::optional<float> topP;
  std::optional<float> minP;
  std::optional<float> repetitionPenalty;
  std::optional<uint64_t> seed;
  size_t context = 0;  // 0 = the model's
  // Where the context is full, the text goes on without its oldest tokens after so many; absent: it
  // ends.
  std::optional<size_t> keep;
  uint32_t threads = 0;
  StoreFlags store;
  double timeoutSeconds = 0;  // 0 = none
  bool hasStats = false;
  bool isJson = false;
};

enum class PrefixesAction { kList, kRemove, kWarm };

// The options of `hearth cache prefixes`.
struct PrefixesOptions {
  PrefixesAction action = PrefixesAction::kList;
  LanguageOptions language;           // list and remove: only those of the store
  std::vector<std::string> prefixes;  // remove: beginnings of keys, or models' file names
  bool isAll = false;                 // remove
};

enum class ConversationsAction { kList, kRemove };

// The options of `hearth conversations`.
struct ConversationsOptions {
  ConversationsAction action = ConversationsAction::kList;
  std::vector<std::string> names;  // remove
  bool isAll = false;              // remove
  bool isJson = false;
};

struct TokenizeOptions {
  std::string model;  // or a tokenizer
  std::optional<std::string> text;
  bool hasSpecialTokens = false;
  bool isJson = false;
};

}  // namespace hearth::tools
