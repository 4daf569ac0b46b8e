// SPDX-License-Identifier: Apache-2.0
#include "llm_server/conversation_pool.h"

#include <algorithm>
#include <utility>

#include "base/process_memory.h"

namespace hearth::llm_server {
namespace {

// Copying a session's caches takes as long as computing some tokens.
constexpr size_t kLeastShared = 64;

uint64_t privateBytes() {
  return base::readAnonymousRssKib() << 10;
}

}  // namespace

ConversationPool::ConversationPool(Options options)
    : options_([&] {
        if (!options.usedBytes) options.usedBytes = privateBytes;
        return std::move(options);
      }()) {}

ConversationPool::Match ConversationPool::find(const ServedModel& model,
                                               std::span<const int32_t> tokens) {
  Match best;
  for (Conversation& conversation : conversations_) {
    if (conversation.model.get() != &model) continue;
    const std::vector<int32_t>& own = conversation.session->tokens();
    const auto end = std::ranges::mismatch(own, tokens).in1;
    Match match{.conversation = &conversation, .tokens = static_cast<size_t>(end - own.begin())};
    match.isWhole = end == own.end() && !conversation.isBusy;
    match.tokens = std::min(match.tokens, conversation.session->computed());
    if (match.tokens > best.tokens || (match.tokens == best.tokens && match.isWhole)) best = match;
  }
  return best;
}

bool ConversationPool::isOverLimit() const {
  return options_.memoryBytes != 0 && options_.usedBytes() > options_.memoryBytes;
}

// Whether there is room for one more session. Closes idle ones for it, but for the spared one.
bool ConversationPool::makeRoom(const Conversation* spared) {
  while (conversations_.size() >= options_.sessions || isOverLimit()) {
    const Conversation* oldest = nullptr;
    for (const Conversation& conversation : conversations_)
      if (!conversation.isBusy && &conversation != spared &&
          (oldest == nullptr || conversation.lastUse < oldest->lastUse))
        oldest = &conversation;
    if (oldest == nullptr) return false;
    remove(oldest);
    ++counts_.evicted;
  }
  return true;
}

Result<ConversationPool::Taken> ConversationPool::take(
    const std::shared_ptr<const ServedModel>& model, std::span<const int32_t> tokens,
    size_t marked) {
  const Match match = find(*model, tokens);
  if (match.isWhole) {
    ++counts_.continued;
    return use(match.conversation, tokens, marked);
  }
  // A marked beginning is computed from its start, so that it can be kept in the store.
  const bool isShared = match.tokens >= std::max(marked, kLeastShared);
  Conversation* const source = isShared ? match.conversation : nullptr;
  if (!makeRoom(source)) {
    if (source != nullptr && !source->isBusy) {
      ++counts_.continued;
      return use(source, tokens, marked);
    }
    if (!conversations_.empty()) return Taken();
    return fail(ErrorCode::kResourceExhaustedTransient,
                "The process uses {} bytes of private memory; the limit of {} leaves no room for a "
                "session.",
                options_.usedBytes(), options_.memoryBytes);
  }
  Conversation made{.model = model};
  if (source != nullptr) {
    HEARTH_ASSIGN(made.session, source->session->fork());
    made.hasPrefixes = source->hasPrefixes;
    ++counts_.forked;
  } else {
    HEARTH_ASSIGN(made.session, llm::Session::create(model->compiled, model->context));
    ++counts_.created;
  }
  return use(&conversations_.emplace_back(std::move(made)), tokens, marked);
}

Result<ConversationPool::Taken> ConversationPool::use(Conversation* conversation,
                                                      std::span<const int32_t> tokens,
                                                      size_t marked) {
  Taken taken{.conversation = conversation};
  llm::Session& session = *conversation->session;
  const auto begin = [&]() -> Status {
    HEARTH_ASSIGN(taken.reused, session.replace(tokens));
    // Models whose caches cannot be kept are computed.
    if (marked != 0 && !std::exchange(conversation->hasPrefixes, true) &&
        conversation->model->prefixes != nullptr)
      static_cast<void>(session.usePrefixes(conversation->model->prefixes));
    return session.markPrefix(marked);
  };
  if (Status begun = begin(); !begun) {
    // The text stays as it was, or is forgotten with a session that was made for it.
    if (session.tokens().empty()) remove(conversation);
    return std::unexpected(std::move(begun.error()));
  }
  conversation->isBusy = true;
  conversation->lastUse = ++uses_;
  count();
  return taken;
}

void ConversationPool::giveBack(Conversation* conversation) {
  conversation->isBusy = false;
  conversation->lastUse = ++uses_;
  count();
}

void ConversationPool::remove(const Conversation* conversation) {
  conversations_.remove_if([&](const Conversation& own) { return &own == conversation; });
  count();
}

void ConversationPool::count() {
  counts_.kept = conversations_.size();
  counts_.busy = static_cast<size_t>(
      std::ranges::count_if(conversations_, [](const Conversation& one) { return one.isBusy; }));
}

}  // namespace hearth::llm_server
