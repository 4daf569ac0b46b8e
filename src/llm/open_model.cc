// SPDX-License-Identifier: Apache-2.0
#include "llm/open_model.h"

#include <utility>

#include "llm/prefix_opening.h"

namespace hearth::llm {

OpenModel::OpenModel(OpenModelOptions options, ModelFile file,
                     std::optional<ModelIdentity> identity)
    : options_(std::move(options)), file_(std::move(file)), identity_(std::move(identity)) {}

Result<std::shared_ptr<const OpenModel>> OpenModel::create(OpenModelOptions options) {
  std::optional<ModelIdentity> identity;
  if (options.hasPrefixes && options.compile.cache != HEARTH_CACHE_OFF) {
    HEARTH_ASSIGN(identity, ModelIdentity::of(options.path));
  }
  HEARTH_ASSIGN(ModelFile file, readModelFile(options.path, options.tokenizer,
                                              TokenizerTables::of(options.compile)));
  if (!file.tokenizer)
    return fail(ErrorCode::kUnsupported,
                "{} has no tokenizer; the option `tokenizer` names a file with one.", options.path);
  return std::shared_ptr<const OpenModel>(
      new OpenModel(std::move(options), std::move(file), std::move(identity)));
}

size_t OpenModel::context() const {
  return options_.context != 0 ? options_.context : file_.metadata.maxTokens;
}

Result<const ChatPrompt*> OpenModel::chatPrompt() const {
  const std::lock_guard lock(mutex_);
  if (!prompt_) {
    HEARTH_ASSIGN(prompt_,
                  ChatPrompt::create(file_.metadata, *file_.tokenizer, options_.chatTemplate));
  }
  return &*prompt_;
}

std::shared_ptr<const TokenOrder> OpenModel::tokenOrder() const {
  const std::lock_guard lock(mutex_);
  if (tokenOrder_ == nullptr) tokenOrder_ = std::make_shared<const TokenOrder>(tokenizer());
  return tokenOrder_;
}

Result<std::shared_ptr<const CompiledModel>> OpenModel::compiled() const {
  const std::lock_guard lock(mutex_);
  if (!compiled_) {
    HEARTH_ASSIGN(compiled_, CompiledModel::create(file_, options_.compile));
    // They are of the file that was there before.
    if (prefixes_ != nullptr && !identity_->check()) prefixes_ = nullptr;
  }
  return compiled_;
}

std::shared_ptr<const PrefixCache> OpenModel::prefixes() const {
  const std::lock_guard lock(mutex_);
  if (!identity_ || std::exchange(isStoreTried_, true)) return prefixes_;
  auto opened = openPrefixes(options_.compile, *identity_, file_.path);
  if (opened) prefixes_ = *std::move(opened);
  return prefixes_;
}

std::unique_ptr<Session> OpenModel::storedSession(const std::vector<int32_t>& tokens) const {
  {
    const std::lock_guard lock(mutex_);
    if (compiled_ != nullptr || !identity_ || !isForCpuAlone(options_.compile)) return nullptr;
  }
  auto prefixes = this->prefixes();
  auto stored = prefixes != nullptr ? prefixes->scores(tokens) : std::nullopt;
  if (!stored || (context() != 0 && tokens.size() > context())) return nullptr;
  const auto compile = [model = shared_from_this(),
                        prefixes]() -> Result<std::shared_ptr<const CompiledModel>> {
    HEARTH_ASSIGN(auto compiled, model->compiled());
    if (model->prefixes() != prefixes)
      return fail(ErrorCode::kBadState, "The file {} changed while the model was loaded.",
                  model->path());
    return compiled;
  };
  return Session::createStored(prefixes, *std::move(stored), tokens, context(), compile);
}

Result<std::unique_ptr<Session>> OpenModel::session(std::vector<int32_t> tokens,
                                                    size_t marked) const {
  if (marked == tokens.size() && marked != 0)
    if (auto stored = storedSession(tokens)) return stored;
  HEARTH_ASSIGN(auto compiled, this->compiled());
  HEARTH_ASSIGN(auto session, Session::create(std::move(compiled), context()));
  HEARTH_TRY(session->append(tokens));
  // Models whose caches cannot be kept are computed.
  if (marked != 0)
    if (auto prefixes = this->prefixes())
      static_cast<void>(session->usePrefixes(std::move(prefixes)));
  HEARTH_TRY(session->markPrefix(marked));
  return session;
}

}  // namespace hearth::llm
