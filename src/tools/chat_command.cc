// SPDX-License-Identifier: Apache-2.0
// `hearth chat`.
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <iostream>
#include <nlohmann/json.hpp>

#include "llm/chat_prompt.h"
#include "llm/conversation.h"
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

  // Answers a message. The conversation stays as it was where that fails.
  Outcome<void> answer(std::string text, const std::function<bool()>& isCancelled) {
    messages_.push_back({"user", std::move(text)});
    auto answer = compute(isCancelled);
    if (!answer) {
      messages_.pop_back();
      return std::unexpected(std::move(answer.error()));
    }
    if (options_.isJson) std::cout << session_.toJson(*answer).dump(2) << '\n';
    if (options_.hasStats) session_.showStats(*answer);
    messages_.push_back({"assistant", std::move(answer->text)});
    return {};
  }

 private:
  Outcome<LanguageSession::Answer> compute(const std::function<bool()>& isCancelled) {
    const auto special =
        options_.hasSpecialTokens ? llm::SpecialTokens::kAreParsed : llm::SpecialTokens::kAreText;
    HEARTH_ASSIGN(const std::vector<int32_t> tokens, prompt_.tokens(messages_, true, special));
    size_t marked = 0;
    if (options_.system) marked = prompt_.commonTokens(tokens, {messages_.front()}, special);
    return session_.answer(tokens, marked, !options_.isJson, isCancelled);
  }

  const LanguageOptions& options_;
  LanguageSession& session_;
  llm::ChatPrompt prompt_;
  std::vector<llm::ChatMessage> messages_;
};

// A message for each line, up to the end of standard input.
Outcome<void> talk(Chat* chat) {
  const bool isTerminal = isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1;
  std::string line;
  for (;;) {
    if (isTerminal) std::cout << "> " << std::flush;
    if (!std::getline(std::cin, line)) break;
    if (line.empty()) continue;
    Outcome<void> answered;
    if (isTerminal) {
      const InterruptedAnswer interrupted;
      answered = chat->answer(line, [] { return isInterrupted.load(); });
    } else {
      answered = chat->answer(line, [] { return false; });
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
  HEARTH_ASSIGN(const auto session, LanguageSession::open(options, &watchdog));
  HEARTH_ASSIGN(llm::ChatPrompt prompt,
                llm::ChatPrompt::create(session->metadata(), session->tokenizer(), chatTemplate));
  if (!options.tools.empty()) {
    HEARTH_ASSIGN(const std::string json, textOfArgument("@" + options.tools));
    HEARTH_ASSIGN(llm::TemplateValue tools, llm::toolsOfJson(json));
    HEARTH_ASSIGN(prompt, prompt.withTools(std::move(tools)));
  }
  Chat chat(options, session, std::move(prompt));
  if (options.system) chat.addSystem(std::move(system));
  if (options.prompt) return chat.answer(std::move(message), [] { return false; });
  return talk(&chat);
}

}  // namespace hearth::tools
