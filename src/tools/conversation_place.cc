// SPDX-License-Identifier: Apache-2.0
#include "tools/conversation_place.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace hearth::tools {
namespace {

constexpr size_t kMostListed = 20;

}  // namespace

Failure noConversation(const std::string& name, const llm::ConversationStore& store) {
  const std::vector<std::string> names = store.names();
  if (names.empty())
    return {kExitFailure, base::formatText("There is no conversation {}, and no other in {}.", name,
                                           store.path())};
  std::string list;
  for (size_t i = 0; i < std::min(names.size(), kMostListed); ++i)
    list += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > kMostListed)
    list += base::formatText(" and {} more", names.size() - kMostListed);
  return {kExitFailure,
          base::formatText("There is no conversation {}; there are: {}.", name, list)};
}

Outcome<std::optional<ConversationPlace>> ConversationPlace::of(const LanguageOptions& options) {
  using Access = llm::ConversationStore::Access;
  if (!options.save && !options.resume) return std::nullopt;
  const std::string& name = options.save ? *options.save : *options.resume;
  if (!llm::ConversationStore::isName(name))
    return usage(
        "A conversation's name has 1 to {} letters, digits, '.', '_' and '-', and begins with no "
        "'.'; '{}' is none.",
        llm::ConversationStore::kMaxName, name);
  const std::string folder = llm::ConversationStore::standardFolder();
  if (options.resume) {
    HEARTH_ASSIGN(const llm::ConversationStore store,
                  llm::ConversationStore::open(folder, Access::kRead));
    if (!store.contains(name)) return std::unexpected(noConversation(name, store));
  }
  HEARTH_ASSIGN(llm::ConversationStore store, llm::ConversationStore::open(folder, Access::kWrite));
  HEARTH_ASSIGN(base::Descriptor lock, store.lock(name));
  if (options.save && store.contains(name))
    return std::unexpected(
        Failure(kExitFailure,
                base::formatText("There is a conversation {} already; --resume {} goes on with it, "
                                 "and --save with another name begins one.",
                                 name, name)));
  ConversationPlace place(name, std::move(store), std::move(lock));
  if (options.resume) {
    HEARTH_ASSIGN(place.found_, place.store_.read(name));
  }
  return place;
}

}  // namespace hearth::tools
