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
  }
  return compiled_;
}

std::shared_ptr<const PrefixCache> OpenModel::prefixes() const {
  const std::lock_guard lock(mutex_);
  if (!identity_) return prefixes_;
  auto opened = openPrefixes(options_.compile, *identity_, file_.path);
  identity_.reset();
  if (opened) prefixes_ = *std::move(opened);
  return prefixes_;
}

}  // namespace hearth::llm
