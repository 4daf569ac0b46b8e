// SPDX-License-Identifier: Apache-2.0
// `hearth conversations`.
#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/wall_clock.h"
#include "llm/conversation_store.h"
#include "tools/conversation_place.h"
#include "tools/duration.h"
#include "tools/language_commands.h"
#include "tools/text_table.h"

namespace hearth::tools {
namespace {

using Json = nlohmann::ordered_json;
using llm::ConversationStore;

void list(const ConversationStore& store, bool isJson) {
  TextTable table({"name", "model", "messages", "size", "changed"}, "llrrr");
  Json conversations = Json::array();
  for (const std::string& name : store.names()) {
    const ConversationStore::Facts facts = store.facts(name);
    const std::chrono::nanoseconds age(base::wallClock() - facts.changed);
    const auto saved = store.read(name);
    Json entry = {
        {"name", name},
        {"bytes", facts.bytes},
        {"unchanged_seconds", std::chrono::duration_cast<std::chrono::seconds>(age).count()}};
    std::string model = "(not readable)";
    std::string messages;
    if (saved) {
      entry["model"] = saved->modelName;
      entry["messages"] = saved->conversation.messages.size();
      model = printable(saved->modelName);
      messages = std::to_string(saved->conversation.messages.size());
    } else {
      entry["problem"] = saved.error().toString();
    }
    conversations.push_back(std::move(entry));
    table.add({name, model, messages, bytesText(facts.bytes), ageText(age)});
  }
  if (isJson) {
    const Json all = {{"path", store.path()}, {"conversations", std::move(conversations)}};
    std::cout << all.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
  } else if (table.empty()) {
    std::cout << "No saved conversations.\n";
  } else {
    std::cout << table.toString();
  }
}

Outcome<void> remove(const ConversationStore& store, const ConversationsOptions& options) {
  if (options.names.empty() != options.isAll)
    return usage("Name the conversations to remove, or --all.");
  const std::vector<std::string> names = options.isAll ? store.names() : options.names;
  for (const std::string& name : names)
    if (!ConversationStore::isName(name) || !store.contains(name))
      return std::unexpected(noConversation(name, store));
  for (const std::string& name : names) {
    HEARTH_ASSIGN(const base::Descriptor lock, store.lock(name));
    HEARTH_TRY(store.remove(name));
  }
  if (options.isJson)
    std::cout << Json{{"conversations", names.size()}}.dump(2) << '\n';
  else
    std::cout << base::formatText("Removed {} conversations.\n", names.size());
  return {};
}

}  // namespace

Outcome<void> conversationsCommand(const ConversationsOptions& options) {
  HEARTH_ASSIGN(const ConversationStore store,
                ConversationStore::open(ConversationStore::standardFolder(),
                                        ConversationStore::Access::kRead));
  if (options.action == ConversationsAction::kRemove) return remove(store, options);
  list(store, options.isJson);
  return {};
}

}  // namespace hearth::tools
