// SPDX-License-Identifier: Apache-2.0
#include "llm_server/metrics.h"

#include "base/format.h"

namespace hearth::llm_server {
namespace {

double seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

std::string head(std::string_view name, std::string_view type, std::string_view help) {
  return base::formatText("# HELP hearth_{} {}\n# TYPE hearth_{} {}\n", name, help, name, type);
}

// The value of a label as the format wants it.
std::string escaped(std::string_view text) {
  std::string made;
  for (const char c : text) {
    if (c == '\n') {
      made += "\\n";
      continue;
    }
    if (c == '\\' || c == '"') made += '\\';
    made += c;
  }
  return made;
}

}  // namespace

void Metrics::countReply(int status) {
  const std::lock_guard lock(mutex_);
  ++replies_[status];
}

void Metrics::countAnswer(const std::string& model, const Answer& answer) {
  const std::lock_guard lock(mutex_);
  Tokens& tokens = tokens_[model];
  tokens.reused += answer.reusedTokens;
  tokens.stored += answer.storedTokens;
  tokens.computed += answer.promptTokens - answer.reusedTokens - answer.storedTokens;
  tokens.generated += answer.tokens;
  const double first = seconds(answer.firstToken);
  for (size_t i = 0; i < kFirstTokenSeconds.size(); ++i)
    if (first <= kFirstTokenSeconds[i]) ++firstTokens_[i];
  ++answers_;
  firstTokenSeconds_ += first;
  computingSeconds_ += seconds(answer.computing);
}

std::string Metrics::toText(const std::vector<Figure>& figures) const {
  std::string text;
  for (const Figure& figure : figures)
    text += head(figure.name, figure.type, figure.help) +
            base::formatText("hearth_{} {}\n", figure.name, figure.value);
  const std::lock_guard lock(mutex_);
  text += head("replies_total", "counter", "Replies by the status of HTTP.");
  for (const auto& [status, count] : replies_)
    text += base::formatText("hearth_replies_total{{status=\"{}\"}} {}\n", status, count);
  text += head("prompt_tokens_total", "counter",
               "Tokens of prompts: computed, computed before in a session, or from the store.");
  for (const auto& [model, tokens] : tokens_) {
    const auto line = [&](const char* source, uint64_t count) {
      text += base::formatText("hearth_prompt_tokens_total{{model=\"{}\",source=\"{}\"}} {}\n",
                               escaped(model), source, count);
    };
    line("computed", tokens.computed);
    line("session", tokens.reused);
    line("store", tokens.stored);
  }
  text += head("generated_tokens_total", "counter", "Tokens of answers.");
  for (const auto& [model, tokens] : tokens_)
    text += base::formatText("hearth_generated_tokens_total{{model=\"{}\"}} {}\n", escaped(model),
                             tokens.generated);
  text += head("abandoned_answers_total", "counter", "Answers whose clients went away.") +
          base::formatText("hearth_abandoned_answers_total {}\n", abandoned_.load());
  text += head("computing_seconds_total", "counter", "Time that computing answers took.") +
          base::formatText("hearth_computing_seconds_total {}\n", computingSeconds_);
  text += head("first_token_seconds", "histogram",
               "Time from the arrival of a request to the first token of its answer.");
  for (size_t i = 0; i < kFirstTokenSeconds.size(); ++i)
    text += base::formatText("hearth_first_token_seconds_bucket{{le=\"{}\"}} {}\n",
                             kFirstTokenSeconds[i], firstTokens_[i]);
  text += base::formatText(
      "hearth_first_token_seconds_bucket{{le=\"+Inf\"}} {}\nhearth_first_token_seconds_sum {}\n"
      "hearth_first_token_seconds_count {}\n",
      answers_, firstTokenSeconds_, answers_);
  return text;
}

}  // namespace hearth::llm_server
