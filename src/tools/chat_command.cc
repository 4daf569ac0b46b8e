// SPDX-License-Identifier: Apache-2.0
// `hearth chat`.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "llm/chat_prompt.h"
#include "llm/conversation.h"
#include "llm/saved_conversation.h"
#include "llm/text_window.h"
#include "tools/conversation_place.h"
#include "tools/language_commands.h"
#include "tools/language_session.h"
#include "tools/text_argument.h"
#include "tools/text_table.h"

namespace hearth::tools {
namespace {

std::atomic<bool> isInterrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free);

void noteInterrupt(int /*signal*/) {
  isInterrupted = true;
}

// While it lives, an interrupt ends the answer and not the program.
class InterruptedAnswer {
 public:
  InterruptedAnswer() {
    isInterrupted = false;
    struct sigaction action{};
    action.sa_handler = noteInterrupt;
    sigaction(SIGINT, &action, &old_);
  }
  ~InterruptedAnswer() { sigaction(SIGINT, &old_, nullptr); }
  InterruptedAnswer(const InterruptedAnswer&) = delete;
  InterruptedAnswer& operator=(const InterruptedAnswer&) = delete;

 private:
  struct sigaction old_{};
};

// A conversation with one model.
class Chat {
 public:
  // `place`: where it is saved; null = nowhere.
  Chat(const LanguageOptions& options, LanguageSession* session, llm::ChatPrompt prompt,
       llm::Conversation conversation, const ConversationPlace* place)
      : options_(options),
        session_(*session),
        prompt_(std::move(prompt)),
        conversation_(std::move(conversation)),
        messages_(conversation_.messages),
        place_(place),
        marked_(messages_.size()) {
    findCalls();
  }
  Chat(const Chat&) = delete;
  Chat& operator=(const Chat&) = delete;

  // The call whose result the next text is; null where that is a message of the user.
  const llm::ToolCall* awaited() const {
    return results_ < calls_.size() ? &calls_[results_] : nullptr;
  }

  // Answers a message, or the last result that the model waits for, and saves the conversation. It
  // stays as it was where there is no answer.
  Outcome<void> take(std::string text, const std::function<bool()>& isCancelled) {
    if (const llm::ToolCall* const call = awaited()) {
      messages_.push_back({"tool",
                           std::move(text),
                           {{"name", llm::TemplateValue(call->name)},
                            {"tool_call_id", llm::TemplateValue(idOf(results_))}}});
      if (++results_ < calls_.size()) return save();
    } else {
      messages_.push_back({"user", std::move(text)});
    }
    auto answered = answer(isCancelled);
    results_ = 0;
    if (!answered) {
      const size_t taken = std::max<size_t>(calls_.size(), 1);
      messages_.erase(messages_.end() - static_cast<ptrdiff_t>(taken), messages_.end());
      return std::unexpected(std::move(answered.error()));
    }
    calls_ = *std::move(answered);
    isAnswered_ = true;
    return save();
  }

  // Whether the model has said anything in this process.
  bool isAnswered() const { return isAnswered_; }

  // Computes the saved conversation as the process that resumes it will look for it in the store of
  // prefixes. Where that cannot be kept, that process computes it.
  void keep() {
    if (place_ == nullptr || !isAnswered_ || options_.prefixStore == "off") return;
    std::vector<llm::ChatMessage> messages = messages_;
    messages.push_back({"user", "0"});
    auto tokens = prompt_.tokens(messages, true, special());
    if (!tokens) return;
    tokens->resize(prompt_.commonTokens(*tokens, messages_, special()));
    if (tokens->empty() || tokens->size() >= session_.context()) return;
    if (const auto kept = session_.keep(*tokens); !kept)
      base::logInfo("What was computed of the conversation is not kept. {}", kept.error().sentence);
  }

 private:
  llm::SpecialTokens special() const {
    return options_.hasSpecialTokens ? llm::SpecialTokens::kAreParsed
                                     : llm::SpecialTokens::kAreText;
  }

  // The calls at the end of a conversation that is resumed, and how many of them have results.
  void findCalls() {
    size_t end = messages_.size();
    while (end > 0 && messages_[end - 1].role == "tool") --end;
    if (end == 0) return;
    for (const auto& [name, member] : messages_[end - 1].members) {
      if (name != "tool_calls" || member.asList() == nullptr) continue;
      for (const llm::TemplateValue& call : member.asList()->items) {
        const llm::DictionaryValue* const members = call.asDictionary();
        const llm::TemplateValue* const function =
            members != nullptr ? members->find("function") : nullptr;
        const llm::TemplateValue* const called =
            function != nullptr && function->asDictionary() != nullptr
                ? function->asDictionary()->find("name")
                : nullptr;
        const std::string* const text = called != nullptr ? called->asText() : nullptr;
        calls_.push_back({.name = text != nullptr ? *text : "", .arguments = ""});
      }
    }
    results_ = messages_.size() - end;
    if (results_ < calls_.size()) return;
    calls_.clear();
    results_ = 0;
  }

  Outcome<void> save() {
    if (place_ == nullptr) return {};
    HEARTH_TRY(place_->save({.modelName = session_.modelName(),
                             .modelContent = session_.modelContent(),
                             .conversation = conversation_}));
    return {};
  }

  // The tokens that conversations with the first messages of this one have in common.
  size_t commonTokens(const std::vector<int32_t>& tokens, size_t messages) const {
    if (messages == 0) return 0;
    const auto begin = messages_.begin();
    return prompt_.commonTokens(tokens, {begin, begin + static_cast<ptrdiff_t>(messages)},
                                special());
  }

  Outcome<LanguageSession::Answer> compute(const std::function<bool()>& isCancelled) {
    std::vector<int32_t> tokens;
    const size_t system = conversation_.systemMessages();
    if (options_.keep) {
      HEARTH_ASSIGN(llm::FittedPrompt fitted,
                    llm::fittedPrompt(prompt_, messages_, session_.context(), special()));
      const auto first = messages_.begin() + static_cast<ptrdiff_t>(system);
      messages_.erase(first, first + static_cast<ptrdiff_t>(fitted.dropped));
      if (fitted.dropped > 0) marked_ = system;
      tokens = std::move(fitted.tokens);
    } else {
      HEARTH_ASSIGN(tokens, prompt_.tokens(messages_, true, special()));
    }
    LanguageSession::Beginning beginning;
    beginning.lasting = commonTokens(tokens, system);
    // A template may not take another message where a call has no result.
    if (marked_ != system) beginning.marked = commonTokens(tokens, marked_);
    beginning.marked = std::max(beginning.marked, beginning.lasting);
    return session_.answer(tokens, beginning, !options_.isJson, isCancelled);
  }

  // Adds what the model says. Returns the calls in it.
  Outcome<std::vector<llm::ToolCall>> answer(const std::function<bool()>& isCancelled) {
    HEARTH_ASSIGN(LanguageSession::Answer answer, compute(isCancelled));
    if (options_.isJson) std::cout << session_.toJson(answer).dump(2) << '\n';
    if (options_.hasStats) session_.showStats(answer);
    llm::ChatMessage message{"assistant", std::move(answer.text)};
    if (!answer.calls.empty()) {
      HEARTH_ASSIGN(llm::TemplateValue calls, callsForTemplate(answer.calls));
      message.members.emplace_back("tool_calls", std::move(calls));
    }
    messages_.push_back(std::move(message));
    return std::move(answer.calls);
  }

  // Nine letters and digits, as Mistral's templates ask for.
  static std::string idOf(size_t call) { return base::formatText("call{:05}", call); }

  // The calls as OpenAI's interface has them, with arguments as templates want them.
  static Result<llm::TemplateValue> callsForTemplate(const std::vector<llm::ToolCall>& calls) {
    std::vector<llm::TemplateValue> list;
    for (size_t i = 0; i < calls.size(); ++i) {
      HEARTH_ASSIGN(llm::TemplateValue function,
                    llm::TemplateValue::dictionary(
                        {{"name", calls[i].name}, {"arguments", calls[i].arguments}}));
      HEARTH_ASSIGN(llm::TemplateValue call,
                    llm::TemplateValue::dictionary(
                        {{"id", idOf(i)}, {"type", "function"}, {"function", function}}));
      list.push_back(std::move(call));
    }
    HEARTH_ASSIGN(const llm::TemplateValue all, llm::TemplateValue::list(std::move(list)));
    return llm::toolCallsForTemplate(all);
  }

  const LanguageOptions& options_;
  LanguageSession& session_;
  llm::ChatPrompt prompt_;
  llm::Conversation conversation_;
  std::vector<llm::ChatMessage>& messages_;  // of the conversation
  const ConversationPlace* const place_;
  size_t marked_;                     // messages that the conversation began with
  std::vector<llm::ToolCall> calls_;  // of the last answer
  size_t results_ = 0;                // of these that are there
  bool isAnswered_ = false;           // by this process
};

// A message for each line, or the result of a call, up to the end of standard input.
Outcome<void> talk(Chat* chat) {
  const bool isTerminal = isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1;
  std::string line;
  for (;;) {
    const llm::ToolCall* const call = chat->awaited();
    if (isTerminal) std::cout << (call != nullptr ? call->name : "") << "> " << std::flush;
    if (!std::getline(std::cin, line)) break;
    if (line.empty()) continue;
    Outcome<void> answered;
    if (isTerminal) {
      const InterruptedAnswer interrupted;
      answered = chat->take(line, [] { return isInterrupted.load(); });
    } else {
      answered = chat->take(line, [] { return false; });
    }
    if (answered) continue;
    // Who types may say something else.
    if (!isTerminal) return answered;
    std::cerr << "hearth: " << answered.error().sentence << '\n';
  }
  if (isTerminal) std::cout << '\n';
  return {};
}

}  // namespace

Outcome<std::string> chatTemplateText(const LanguageOptions& options) {
  if (options.chatTemplate.empty()) return std::string();
  // The messages one after the other, as they are.
  if (options.chatTemplate == "none")
    return std::string("{% for message in messages %}{{ message.content }}{% endfor %}");
  return textOfArgument("@" + options.chatTemplate);
}

Outcome<void> chatCommand(const LanguageOptions& options) {
  Watchdog watchdog(options.timeoutSeconds);
  HEARTH_ASSIGN(const std::optional<ConversationPlace> place, ConversationPlace::of(options));
  std::string message;
  if (options.prompt) {
    HEARTH_ASSIGN(message, textOfArgument(options.prompt));
  }
  HEARTH_ASSIGN(const std::string chatTemplate, chatTemplateText(options));
  llm::Conversation conversation;
  if (options.system) {
    HEARTH_ASSIGN(std::string system, textOfArgument(options.system));
    conversation.messages.push_back({"system", std::move(system)});
  }
  // Who has not said anything yet does not wait for it then.
  const auto readiness = options.prompt ? Readiness::kWhenNeeded : Readiness::kAtOnce;
  HEARTH_ASSIGN(const auto session, LanguageSession::open(options, &watchdog, readiness));
  if (place && place->found()) {
    conversation = place->found()->conversation;
    if (!place->found()->isOf(session->modelName(), session->modelContent()))
      std::cerr << base::formatText(
          "hearth: The conversation {} was held with another model, {}; all of it is computed "
          "anew.\n",
          place->name(), printable(place->found()->modelName));
  }
  HEARTH_ASSIGN(llm::ChatPrompt prompt,
                llm::ChatPrompt::create(session->metadata(), session->tokenizer(), chatTemplate));
  if (!options.tools.empty()) {
    HEARTH_ASSIGN(const std::string json, textOfArgument("@" + options.tools));
    HEARTH_ASSIGN(conversation.tools, llm::toolsOfJson(json));
  }
  if (!conversation.tools.isNone()) {
    if (const llm::ToolFormat* const format = prompt.toolFormat()) {
      HEARTH_ASSIGN(std::vector<std::string> names, llm::toolNames(conversation.tools));
      session->readCalls(*format, std::move(names));
    }
    HEARTH_ASSIGN(prompt, prompt.withTools(conversation.tools));
  }
  Chat chat(options, session, std::move(prompt), std::move(conversation),
            place ? &*place : nullptr);
  const Outcome<void> talked =
      options.prompt ? chat.take(std::move(message), [] { return false; }) : talk(&chat);
  if (options.prompt && talked) {
    // The message was the result of one of several calls.
    if (const llm::ToolCall* const call = chat.awaited(); call != nullptr && !chat.isAnswered())
      std::cerr << base::formatText("hearth: The next message is the result of {}.\n",
                                    printable(call->name));
  }
  chat.keep();
  return talked;
}

}  // namespace hearth::tools
