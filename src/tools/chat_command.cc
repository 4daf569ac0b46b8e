// SPDX-License-Identifier: Apache-2.0
// `hearth chat`.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <iostream>
#include <nlohmann/json.hpp>

#include "llm/chat_prompt.h"
#include "llm/conversation.h"
#include "llm/text_window.h"
#include "tools/language_commands.h"
#include "tools/language_session.h"
#include "tools/text_argument.h"

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
  Chat(const LanguageOptions& options, LanguageSession* session, llm::ChatPrompt prompt)
      : options_(options), session_(*session), prompt_(std::move(prompt)) {}

  void addSystem(std::string text) { messages_.push_back({"system", std::move(text)}); }

  // The call whose result the next text is; null where that is a message of the user.
  const llm::ToolCall* awaited() const {
    return results_ < calls_.size() ? &calls_[results_] : nullptr;
  }

  // Answers a message, or the last result that the model waits for. The conversation stays as it
  // was where that fails.
  Outcome<void> take(std::string text, const std::function<bool()>& isCancelled) {
    if (const llm::ToolCall* const call = awaited()) {
      messages_.push_back({"tool",
                           std::move(text),
                           {{"name", llm::TemplateValue(call->name)},
                            {"tool_call_id", llm::TemplateValue(idOf(results_))}}});
      if (++results_ < calls_.size()) return {};
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
    return {};
  }

 private:
  Outcome<LanguageSession::Answer> compute(const std::function<bool()>& isCancelled) {
    const auto special =
        options_.hasSpecialTokens ? llm::SpecialTokens::kAreParsed : llm::SpecialTokens::kAreText;
    std::vector<int32_t> tokens;
    if (options_.keep) {
      HEARTH_ASSIGN(llm::FittedPrompt fitted,
                    llm::fittedPrompt(prompt_, messages_, session_.context(), special));
      const auto first = messages_.begin() + (options_.system ? 1 : 0);
      messages_.erase(first, first + static_cast<ptrdiff_t>(fitted.dropped));
      tokens = std::move(fitted.tokens);
    } else {
      HEARTH_ASSIGN(tokens, prompt_.tokens(messages_, true, special));
    }
    size_t marked = 0;
    if (options_.system) marked = prompt_.commonTokens(tokens, {messages_.front()}, special);
    return session_.answer(tokens, marked, !options_.isJson, isCancelled);
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
  std::vector<llm::ChatMessage> messages_;
  std::vector<llm::ToolCall> calls_;  // of the last answer
  size_t results_ = 0;                // of these that are there
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
  std::string message;
  if (options.prompt) {
    HEARTH_ASSIGN(message, textOfArgument(options.prompt));
  }
  HEARTH_ASSIGN(const std::string chatTemplate, chatTemplateText(options));
  std::string system;
  if (options.system) {
    HEARTH_ASSIGN(system, textOfArgument(options.system));
  }
  // Who has not said anything yet does not wait for it then.
  const auto readiness = options.prompt ? Readiness::kWhenNeeded : Readiness::kAtOnce;
  HEARTH_ASSIGN(const auto session, LanguageSession::open(options, &watchdog, readiness));
  HEARTH_ASSIGN(llm::ChatPrompt prompt,
                llm::ChatPrompt::create(session->metadata(), session->tokenizer(), chatTemplate));
  if (!options.tools.empty()) {
    HEARTH_ASSIGN(const std::string json, textOfArgument("@" + options.tools));
    HEARTH_ASSIGN(llm::TemplateValue tools, llm::toolsOfJson(json));
    if (const llm::ToolFormat* const format = prompt.toolFormat()) {
      HEARTH_ASSIGN(std::vector<std::string> names, llm::toolNames(tools));
      session->readCalls(*format, std::move(names));
    }
    HEARTH_ASSIGN(prompt, prompt.withTools(std::move(tools)));
  }
  Chat chat(options, session, std::move(prompt));
  if (options.system) chat.addSystem(std::move(system));
  if (options.prompt) return chat.take(std::move(message), [] { return false; });
  return talk(&chat);
}

}  // namespace hearth::tools
