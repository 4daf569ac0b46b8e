// SPDX-License-Identifier: Apache-2.0
// `hearth cache prefixes`.
#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/wall_clock.h"
#include "cache/prefix/prefix_store.h"
#include "llm/chat_prompt.h"
#include "llm/prefix_opening.h"
#include "tools/duration.h"
#include "tools/language_commands.h"
#include "tools/language_session.h"
#include "tools/text_argument.h"
#include "tools/text_table.h"

namespace hearth::tools {
namespace {

using cache::PrefixKey;
using cache::PrefixStore;
using Json = nlohmann::ordered_json;

constexpr size_t kShownDigits = 12;

Failure failureOf(const cache::StoreFailure& failure) {
  return Failure(kExitFailure, failure.message);
}

// The blocks of a store and how they follow each other. A prefix is named by its last block.
class StoredPrefixes {
 public:
  // `store` may be null.
  explicit StoredPrefixes(const PrefixStore* store) {
    if (store == nullptr) return;
    for (PrefixStore::Entry& entry : store->entries()) {
      bytesOnDisk_ += entry.bytesOnDisk;
      if (!entry.isCorrupt) ++followers_[entry.block.predecessor];
      blocks_.emplace(entry.block.key, std::move(entry));
    }
  }

  uint64_t bytesOnDisk() const { return bytesOnDisk_; }

  // Of the prefixes that none continues, those used last first.
  std::vector<const PrefixStore::Entry*> prefixes() const {
    std::vector<const PrefixStore::Entry*> prefixes;
    for (const auto& [key, entry] : blocks_)
      if (!followers_.contains(key)) prefixes.push_back(&entry);
    std::ranges::stable_sort(prefixes, std::greater(),
                             [](const PrefixStore::Entry* entry) { return entry->lastUsed; });
    return prefixes;
  }

  // The blocks of a prefix, the last one first.
  std::vector<const PrefixStore::Entry*> blocksOf(const PrefixStore::Entry& prefix) const {
    std::vector<const PrefixStore::Entry*> blocks;
    // A file that somebody has made may name itself.
    std::set<PrefixKey> seen;
    for (const PrefixStore::Entry* entry = &prefix;
         seen.insert(entry->block.key).second && !blocks.emplace_back(entry)->isCorrupt;) {
      const auto found = blocks_.find(entry->block.predecessor);
      if (found == blocks_.end()) break;
      entry = &found->second;
    }
    return blocks;
  }

  uint64_t bytesOf(const PrefixStore::Entry& prefix) const {
    uint64_t bytes = 0;
    for (const PrefixStore::Entry* const entry : blocksOf(prefix)) bytes += entry->bytesOnDisk;
    return bytes;
  }

  // Removes the blocks of a prefix that no other has.
  cache::StoreStatus remove(const PrefixStore& store, const PrefixStore::Entry& prefix) {
    for (const PrefixStore::Entry* const entry : blocksOf(prefix)) {
      if (followers_[entry->block.key] > 0) break;
      HEARTH_TRY(store.remove(entry->block.key));
      if (!entry->isCorrupt) --followers_[entry->block.predecessor];
    }
    return {};
  }

 private:
  std::map<PrefixKey, PrefixStore::Entry> blocks_;
  std::map<PrefixKey, size_t> followers_;
  uint64_t bytesOnDisk_ = 0;
};

// Null where there is nothing to list.
Outcome<std::shared_ptr<PrefixStore>> openStore(const PrefixesOptions& options) {
  const bool isRead = options.action == PrefixesAction::kList;
  StoreFlags flags = options.language.store;
  flags.mode = isRead ? "read-only" : "read-write";
  auto store = llm::openPrefixStore(compileOptions(flags, 0));
  if (store) return std::move(*store);
  if (isRead && store.error().reason == cache::StoreReason::kGone) return nullptr;
  return std::unexpected(failureOf(store.error()));
}

uint64_t tokensOf(const PrefixStore::Entry& prefix) {
  return uint64_t{prefix.block.position} + prefix.block.tokens;
}

void list(const PrefixStore* store, bool isJson) {
  const StoredPrefixes stored(store);
  TextTable table({"key", "model", "tokens", "size", "used"}, "llrrr");
  Json prefixes = Json::array();
  for (const PrefixStore::Entry* const prefix : stored.prefixes()) {
    const std::chrono::nanoseconds age(base::wallClock() - prefix->lastUsed);
    const uint64_t bytes = stored.bytesOf(*prefix);
    const std::string key = prefix->block.key.hex();
    prefixes.push_back(
        {{"key", key},
         {"model", prefix->block.model},
         {"tokens", tokensOf(*prefix)},
         {"bytes", bytes},
         {"unused_seconds", std::chrono::duration_cast<std::chrono::seconds>(age).count()},
         {"corrupt", prefix->isCorrupt}});
    table.add({key.substr(0, kShownDigits),
               prefix->isCorrupt ? "(damaged)" : printable(prefix->block.model),
               std::to_string(tokensOf(*prefix)), bytesText(bytes), ageText(age)});
  }
  if (isJson) {
    const Json all = {{"path", store != nullptr ? Json(store->path()) : Json(nullptr)},
                      {"prefixes", std::move(prefixes)},
                      {"bytes_on_disk", stored.bytesOnDisk()}};
    std::cout << all.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
  } else if (table.empty()) {
    std::cout << "No stored prefixes.\n";
  } else {
    std::cout << table.toString()
              << base::formatText("{} on disk\n", bytesText(stored.bytesOnDisk()));
  }
}

Outcome<void> remove(const PrefixStore& store, const PrefixesOptions& options) {
  if (options.prefixes.empty() != options.isAll)
    return usage("Name the prefixes to remove, or --all.");
  StoredPrefixes stored(&store);
  std::vector<const PrefixStore::Entry*> removed;
  for (const PrefixStore::Entry* const prefix : stored.prefixes()) {
    const auto isNamed = [&](const std::string& name) {
      return prefix->block.model == name ||
             (name.size() >= 4 && prefix->block.key.hex().starts_with(name));
    };
    if (options.isAll || std::ranges::any_of(options.prefixes, isNamed)) removed.push_back(prefix);
  }
  if (removed.empty() && !options.isAll)
    return std::unexpected(Failure(kExitFailure, "There is no stored prefix of that name."));
  for (const PrefixStore::Entry* const prefix : removed)
    if (const auto status = stored.remove(store, *prefix); !status)
      return std::unexpected(failureOf(status.error()));
  const uint64_t left = StoredPrefixes(&store).bytesOnDisk();
  if (options.language.isJson)
    std::cout << Json{{"prefixes", removed.size()}, {"bytes_left", left}}.dump(2) << '\n';
  else
    std::cout << base::formatText("Removed {} prefixes; {} are left on disk.\n", removed.size(),
                                  bytesText(left));
  return {};
}

Outcome<void> warm(const LanguageOptions& options) {
  if (options.system.has_value() == options.prefix.has_value())
    return usage("Give what is to be computed with --system or with --prefix.");
  Watchdog watchdog(options.timeoutSeconds);
  HEARTH_ASSIGN(const std::string text,
                textOfArgument(options.system ? options.system : options.prefix));
  HEARTH_ASSIGN(const std::string chatTemplate, chatTemplateText(options));
  HEARTH_ASSIGN(const auto session, LanguageSession::open(options, &watchdog, Readiness::kAtOnce));
  const auto special =
      options.hasSpecialTokens ? llm::SpecialTokens::kAreParsed : llm::SpecialTokens::kAreText;
  std::vector<int32_t> tokens;
  if (options.system) {
    HEARTH_ASSIGN(const llm::ChatPrompt prompt,
                  llm::ChatPrompt::create(session->metadata(), session->tokenizer(), chatTemplate));
    const std::vector<llm::ChatMessage> messages = {{"system", text}};
    HEARTH_ASSIGN(tokens, prompt.tokens({messages[0], {"user", "0"}}, true, special));
    tokens.resize(prompt.commonTokens(tokens, messages, special));
  } else {
    HEARTH_ASSIGN(tokens, session->promptTokens(text, special));
  }
  if (tokens.empty())
    return std::unexpected(
        Failure(kExitFailure, "Nothing that the model takes before a message depends on this."));
  HEARTH_ASSIGN(const size_t stored, session->keep(tokens));
  if (options.isJson)
    std::cout << Json{{"tokens", tokens.size()}, {"stored_tokens", stored}}.dump(2) << '\n';
  else
    std::cout << base::formatText("{} tokens, of which {} were stored before.\n", tokens.size(),
                                  stored);
  return {};
}

}  // namespace

Outcome<void> cachePrefixesCommand(const PrefixesOptions& options) {
  if (options.action == PrefixesAction::kWarm) return warm(options.language);
  HEARTH_ASSIGN(const auto store, openStore(options));
  if (options.action == PrefixesAction::kRemove) return remove(*store, options);
  list(store.get(), options.language.isJson);
  return {};
}

}  // namespace hearth::tools
