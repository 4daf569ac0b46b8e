// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "base/descriptor.h"
#include "llm/conversation_store.h"
#include "llm/saved_conversation.h"
#include "tools/failure.h"
#include "tools/language_options.h"

namespace hearth::tools {

// Where a conversation of `hearth chat` is saved, which no other process can open meanwhile.
class ConversationPlace {
 public:
  // Nothing where the options ask for none. Fails for a wrong name, and where there is no
  // conversation to resume, or one already with the name of a new one.
  static Outcome<std::optional<ConversationPlace>> of(const LanguageOptions& options);

  // What is resumed; absent for a new conversation.
  const std::optional<llm::SavedConversation>& found() const { return found_; }
  const std::string& name() const { return name_; }
  Status save(const llm::SavedConversation& conversation) const {
    return store_.write(name_, conversation);
  }

 private:
  ConversationPlace(std::string name, llm::ConversationStore store, base::Descriptor lock)
      : name_(std::move(name)), store_(std::move(store)), lock_(std::move(lock)) {}

  std::string name_;
  llm::ConversationStore store_;
  base::Descriptor lock_;
  std::optional<llm::SavedConversation> found_;
};

// A failure that names the conversations that there are in place of this one.
Failure noConversation(const std::string& name, const llm::ConversationStore& store);

}  // namespace hearth::tools
