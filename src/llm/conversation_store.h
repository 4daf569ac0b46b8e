// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "base/result.h"
#include "llm/saved_conversation.h"

namespace hearth::llm {

// Conversations under names, each a file NAME.json that only the user can read, in a folder (0700).
// A file is written under another name, synced and renamed, so that after a kill or a power failure
// there is the old one or the new one. Thread-safe.
class ConversationStore {
 public:
  static constexpr size_t kMaxName = 64;

  // Whether it is 1 to kMaxName letters, digits, `.`, `_` and `-`, the first of them no `.`.
  static bool isName(std::string_view name);
  // The folder hearth/conversations of $XDG_STATE_HOME or $HOME/.local/state; empty where the
  // environment names none.
  static std::string standardFolder();

  enum class Access {
    kRead,   // a folder that is missing is empty
    kWrite,  // and is made
  };
  // Errors: kBadState for an empty path, kIo.
  static Result<ConversationStore> open(std::string path, Access access);

  const std::string& path() const { return path_; }

  // In their order.
  std::vector<std::string> names() const;
  bool contains(const std::string& name) const;

  // Keeps other processes from writing or removing the conversation as long as the descriptor is
  // open. Needs a store that was opened for writing; where the file system has no locks, nothing is
  // kept from anybody. Errors: kBadState where another process has it, kIo.
  Result<base::Descriptor> lock(const std::string& name) const;

  // Errors: kNotFound; kIo; and those of SavedConversation::ofJson().
  Result<SavedConversation> read(const std::string& name) const;
  // Puts it in place of one with this name. Errors: kBadData for one that is too large, kIo.
  Status write(const std::string& name, const SavedConversation& conversation) const;
  // Errors: kNotFound, kIo.
  Status remove(const std::string& name) const;

  // Of the file; zeros where there is none.
  struct Facts {
    uint64_t bytes = 0;
    int64_t changed = 0;  // nanoseconds since 1970
  };
  Facts facts(const std::string& name) const;

 private:
  ConversationStore(std::string path, base::Descriptor folder)
      : path_(std::move(path)), folder_(std::move(folder)) {}
  Status replace(const std::string& name, std::string_view text) const;

  std::string path_;
  base::Descriptor folder_;  // invalid where there is none
};

}  // namespace hearth::llm
