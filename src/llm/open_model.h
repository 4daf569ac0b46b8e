// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "hearth/hearth.hpp"
#include "llm/chat_prompt.h"
#include "llm/compiled_model.h"
#include "llm/llm_metadata.h"
#include "llm/model_file.h"
#include "llm/model_identity.h"
#include "llm/prefix_cache.h"
#include "llm/session.h"
#include "llm/token_order.h"
#include "llm/tokenizer.h"

namespace hearth::llm {

struct OpenModelOptions {
  std::string path;
  std::string tokenizer;     // a tokenizer.json in place of the model's own; empty = none
  std::string chatTemplate;  // in place of the model's; empty = none
  CompileOptions compile;    // says nothing of signatures and shapes
  size_t context = 0;        // the most tokens of a text; 0 = what the model says
  bool hasPrefixes = true;   // whether beginnings are kept in the store of prefixes
};

// A language model and what all that talk with it share. Thread-safe.
class OpenModel : public std::enable_shared_from_this<OpenModel> {
 public:
  // Reads metadata and tokenizer. Errors: those of readModelFile() and ModelIdentity::of();
  // kUnsupported for a file without a tokenizer.
  static Result<std::shared_ptr<const OpenModel>> create(OpenModelOptions options);

  const std::string& path() const { return file_.path; }
  const ModelFile& file() const { return file_; }
  const LlmMetadata& metadata() const { return file_.metadata; }
  const Tokenizer& tokenizer() const { return *file_.tokenizer; }
  // The template of the options; empty = none.
  const std::string& ownTemplate() const { return options_.chatTemplate; }
  // The most tokens that a session is to have; 0 = as many as the signatures have room for.
  size_t context() const;

  // Made at the first call. Errors: those of ChatPrompt::create().
  Result<const ChatPrompt*> chatPrompt() const;
  // For answers of a format; made at the first call.
  std::shared_ptr<const TokenOrder> tokenOrder() const;
  // Compiled at the first call; another thread's call waits for it. Errors: those of opening the
  // model and of CompiledModel::create(), after which another call tries again.
  Result<std::shared_ptr<const CompiledModel>> compiled() const;
  // The store of prefixes, opened at the first call; null where there is none, or none that can be
  // used, or where the file changed before it was compiled: answers are the same without it.
  std::shared_ptr<const PrefixCache> prefixes() const;

  // A session with these tokens, the first `marked` of them marked. Compiles the model, unless all
  // are marked and the store has the scores of the next token: then the session does when more is
  // asked for. Errors: those of compiled(), Session::create(), append() and markPrefix().
  Result<std::unique_ptr<Session>> session(std::vector<int32_t> tokens, size_t marked) const;

 private:
  OpenModel(OpenModelOptions options, ModelFile file, std::optional<ModelIdentity> identity);
  // Null where the model has to be compiled for a session with these tokens.
  std::unique_ptr<Session> storedSession(const std::vector<int32_t>& tokens) const;

  OpenModelOptions options_;
  ModelFile file_;
  mutable std::mutex mutex_;
  mutable std::optional<ChatPrompt> prompt_;
  mutable std::shared_ptr<const TokenOrder> tokenOrder_;
  mutable std::shared_ptr<const CompiledModel> compiled_;
  mutable std::optional<ModelIdentity> identity_;  // absent where no store is used
  mutable bool isStoreTried_ = false;
  mutable std::shared_ptr<const PrefixCache> prefixes_;
};

}  // namespace hearth::llm
