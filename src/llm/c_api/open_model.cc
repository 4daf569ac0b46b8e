// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <new>
#include <utility>

#include "cache/prefix/prefix_store.h"
#include "llm/c_api/handles.h"

namespace hearth::llm::c_api {
namespace {

// As HEARTH_STORE_MODE has it; null for its default.
const char* modeName(hearth_cache_policy policy) {
  switch (policy) {
    case HEARTH_CACHE_OFF:
      return "off";
    case HEARTH_CACHE_READ_ONLY:
      return "read-only";
    case HEARTH_CACHE_READ_WRITE:
      return "read-write";
    case HEARTH_CACHE_STRICT:
      return "strict";
    case HEARTH_CACHE_DEFAULT:
      break;
  }
  return nullptr;
}

}  // namespace

OpenModel::OpenModel(ModelFile file, std::string chatTemplate, CompileOptions compile,
                     size_t context, std::optional<ModelIdentity> identity)
    : file_(std::move(file)),
      chatTemplate_(std::move(chatTemplate)),
      compile_(std::move(compile)),
      context_(context),
      identity_(std::move(identity)) {}

Result<const ChatPrompt*> OpenModel::chatPrompt() const {
  const std::lock_guard lock(mutex_);
  if (!prompt_) {
    HEARTH_ASSIGN(prompt_, ChatPrompt::create(file_.metadata, *file_.tokenizer, chatTemplate_));
  }
  return &*prompt_;
}

Result<std::shared_ptr<const CompiledModel>> OpenModel::compiled() const {
  const std::lock_guard lock(mutex_);
  if (!compiled_) {
    HEARTH_ASSIGN(compiled_, CompiledModel::create(file_, compile_));
  }
  return compiled_;
}

std::shared_ptr<const PrefixCache> OpenModel::prefixes() const {
  const std::lock_guard lock(mutex_);
  if (!identity_) return prefixes_;
  auto opened = openPrefixes();
  identity_.reset();
  if (opened) prefixes_ = *std::move(opened);
  return prefixes_;
}

Result<std::shared_ptr<const PrefixCache>> OpenModel::openPrefixes() const {
  std::map<std::string, std::string> texts;
  if (!compile_.store.empty()) texts["store"] = compile_.store;
  if (const char* const mode = modeName(compile_.cache)) texts["store_mode"] = mode;
  if (!compile_.weightCache.empty()) texts["bundle"] = compile_.weightCache;
  const auto open = [&]() -> cache::StoreResult<std::shared_ptr<cache::PrefixStore>> {
    HEARTH_ASSIGN(const cache::StoreOptions store, cache::StoreOptions::fromTexts(texts));
    HEARTH_ASSIGN(const cache::PrefixStoreOptions prefixes, cache::PrefixStoreOptions::of(store));
    return cache::PrefixStore::open(prefixes);
  };
  const auto store = open();
  if (!store) return fail(ErrorCode::kIo, "{}", store.error().message);
  HEARTH_ASSIGN(const base::Sha256Digest digest, identity_->digest(**store));
  return std::make_shared<const PrefixCache>(*store, digest,
                                             std::filesystem::path(file_.path).filename());
}

char* copyText(std::string_view text) {
  auto* const copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) throw std::bad_alloc();
  std::memcpy(copy, text.data(), text.size());
  copy[text.size()] = '\0';
  return copy;
}

int32_t* copyTokens(const std::vector<int32_t>& tokens) {
  auto* const copy = static_cast<int32_t*>(std::malloc(tokens.size() * sizeof(int32_t) + 1));
  if (copy == nullptr) throw std::bad_alloc();
  if (!tokens.empty()) std::memcpy(copy, tokens.data(), tokens.size() * sizeof(int32_t));
  return copy;
}

}  // namespace hearth::llm::c_api
