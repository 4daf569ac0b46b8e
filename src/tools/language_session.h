// SPDX-License-Identifier: Apache-2.0
// What `hearth complete` and `hearth chat` have in common: a language model that answers.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "hearth/hearth.hpp"
#include "llm/generation.h"
#include "llm/json_schema.h"
#include "llm/model_file.h"
#include "llm/model_identity.h"
#include "llm/sampler.h"
#include "llm/session.h"
#include "llm/token_order.h"
#include "llm/tool_calls.h"
#include "tools/failure.h"
#include "tools/language_options.h"
#include "tools/watchdog.h"

namespace hearth::tools {

// How models are compiled with these options.
CompileOptions compileOptions(const StoreFlags& store, uint32_t threads);

// The template that the options name in place of the model's; empty = none.
Outcome<std::string> chatTemplateText(const LanguageOptions& options);

// When a model is made ready.
enum class Readiness {
  kAtOnce,
  kWhenNeeded,  // of a prompt that is there already, the first token may be stored
};

class LanguageSession {
 public:
  // Reads the file and makes the model ready. `options` and `watchdog` must be there as long as the
  // session is used. It lives as long as the process: taking it apart takes a tenth of a short
  // command's time.
  static Outcome<LanguageSession*> open(const LanguageOptions& options, Watchdog* watchdog,
                                        Readiness readiness);

  const llm::LlmMetadata& metadata() const { return file_.metadata; }
  const llm::Tokenizer& tokenizer() const { return *file_.tokenizer; }
  // The most tokens of a text.
  size_t context() const { return session_->context(); }
  // The tokens of a text with the model's start in front, which a text that begins with it itself
  // does not get twice. Errors: those of llm::Tokenizer::encode().
  Result<std::vector<int32_t>> promptTokens(const std::string& text,
                                            llm::SpecialTokens special) const;

  // From now on answers are read for calls of tools with these names.
  void readCalls(const llm::ToolFormat& format, std::vector<std::string> names);

  struct Answer {
    std::string text;                  // without calls
    std::vector<llm::ToolCall> calls;  // of tools
    size_t promptTokens = 0;
    size_t reusedTokens = 0;   // of the prompt, that were computed before
    size_t storedTokens = 0;   // and that an earlier process had computed
    size_t droppedTokens = 0;  // of prompt and answer, to make room
    // What making the model ready took after the first token, which was stored; 0 = before it.
    double readyLaterMs = 0;
    llm::GenerationResult result;
    double prefillTokensPerSecond = 0;  // 0 = not measured
    // Without the first and without making the model ready; 0 = not measured.
    double tokensPerSecond = 0;
  };

  // How much of a prompt is a beginning that others have, too, in tokens.
  struct Beginning {
    size_t marked = 0;   // is taken from the store of prefixes, or kept there
    size_t lasting = 0;  // stays where the context is full
  };

  // Answers the prompt, or what stays of it where it is too long and the options say --keep. All of
  // its tokens are marked where the options say so. With `isShown` the answer is written to
  // standard output as it comes, each call in a line of its own, with a line break at its end. Ends
  // early when `isCancelled` returns true.
  Outcome<Answer> answer(const std::vector<int32_t>& given, Beginning beginning, bool isShown,
                         const std::function<bool()>& isCancelled);

  // Makes the text what these tokens are, computes what the store of prefixes lacks of them and
  // keeps it there. Returns how many were there. Fails where they cannot be kept.
  Outcome<size_t> keep(const std::vector<int32_t>& tokens);

  // SHA-256 of the model's file in hexadecimal digits; empty where it is not known without the
  // store of prefixes.
  const std::string& modelContent();
  // The model's file without its folder.
  std::string modelName() const;

  // Writes figures of an answer to standard error.
  void showStats(const Answer& answer) const;
  nlohmann::ordered_json toJson(const Answer& answer) const;

 private:
  LanguageSession(const LanguageOptions& options, Watchdog* watchdog)
      : options_(options), watchdog_(*watchdog) {}
  Outcome<void> prepare();
  // Compiles the model, and begins a session.
  Outcome<void> makeReady();
  Result<std::shared_ptr<const llm::CompiledModel>> compile();
  Result<std::shared_ptr<const llm::CompiledModel>> compileLater();
  // Begins a session with a prompt whose next token's scores are stored. Returns whether they are.
  bool beginStored(const std::vector<int32_t>& prompt);
  double elapsedMs() const;
  Status openPrefixes();
  Status mark(size_t count);
  llm::GenerationOptions generationOptions(size_t lasting);

  const LanguageOptions& options_;
  Watchdog& watchdog_;
  llm::ModelFile file_;
  std::vector<int32_t> startTokens_;
  llm::GenerationOptions generation_;
  const llm::ToolFormat* callFormat_ = nullptr;  // null = calls are text
  std::vector<std::string> toolNames_;
  std::shared_ptr<const llm::JsonSchema> schema_;      // null = any text
  std::shared_ptr<const llm::TokenOrder> tokenOrder_;  // made for the first answer of a schema
  CompileOptions compile_;
  std::optional<llm::ModelIdentity> identity_;        // absent when no prefixes are kept
  std::shared_ptr<const llm::PrefixCache> prefixes_;  // null until they are opened
  bool isStoreTried_ = false;
  std::optional<std::string> modelContent_;  // once it was asked for
  std::string prefixProblem_;                // why no prefix is found or kept
  std::unique_ptr<llm::Session> session_;
  std::unique_ptr<llm::Sampler> sampler_;
  size_t context_ = 0;  // the most tokens of the session; 0 = as many as the model has room for
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  double readyMs_ = 0;       // until the model is ready, or its first token is found
  double readyLaterMs_ = 0;  // what it took after that
};

}  // namespace hearth::tools
