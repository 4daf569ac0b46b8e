// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <span>

#include "base/result.h"
#include "llm/session.h"
#include "llm_server/served_model.h"

namespace hearth::llm_server {

// A session that was answered in and is kept, since a conversation may go on.
struct Conversation {
  std::shared_ptr<const ServedModel> model;
  std::unique_ptr<llm::Session> session;
  bool isBusy = false;
  bool hasPrefixes = false;  // whether the session uses the store, or has tried to
  uint64_t lastUse = 0;
};

// The kept sessions. A request says the whole conversation each time; what a session has computed
// of its beginning is found by the tokens and not computed again. Used by one thread at a time, but
// for the counts.
class ConversationPool {
 public:
  struct Options {
    size_t sessions = 4;       // at most, busy ones among them
    uint64_t memoryBytes = 0;  // of private memory of the process; 0 = no limit
    // The private memory of the process.
    std::function<uint64_t()> usedBytes;
  };
  struct Counts {
    std::atomic<size_t> kept = 0;  // now, of which are
    std::atomic<size_t> busy = 0;
    std::atomic<uint64_t> continued = 0;  // since the start
    std::atomic<uint64_t> forked = 0;
    std::atomic<uint64_t> created = 0;
    std::atomic<uint64_t> evicted = 0;
  };
  struct Taken {
    Conversation* conversation = nullptr;  // null: all sessions are busy, and one has to end first
    size_t reused = 0;                     // tokens that are computed already
  };

  explicit ConversationPool(Options options);

  // A session with this text, whose first `marked` tokens are marked as a beginning that others
  // have, too. A session whose text is the beginning of this one goes on with it. One that shares
  // another beginning is forked, so that both conversations stay. The session that was not used for
  // the longest time gives way where there is no room. Errors: kResourceExhaustedTransient where
  // the limit of memory leaves no room for one session, and those of llm::Session.
  Result<Taken> take(const std::shared_ptr<const ServedModel>& model,
                     std::span<const int32_t> tokens, size_t marked);

  // Ends the use of a session, which is kept.
  void giveBack(Conversation* conversation);

  const Counts& counts() const { return counts_; }

 private:
  struct Match {
    Conversation* conversation = nullptr;
    size_t tokens = 0;  // at the beginning that are computed
    bool isWhole = false;
  };

  Match find(const ServedModel& model, std::span<const int32_t> tokens);
  bool makeRoom(const Conversation* spared);
  bool isOverLimit() const;
  Result<Taken> use(Conversation* conversation, std::span<const int32_t> tokens, size_t marked);
  void remove(const Conversation* conversation);
  void count();

  const Options options_;
  std::list<Conversation> conversations_;
  uint64_t uses_ = 0;
  Counts counts_;
};

}  // namespace hearth::llm_server
