// SPDX-License-Identifier: Apache-2.0
#include "llm/compiled_model.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "llm/prefill_plan.h"
#include "llm/thrown.h"

namespace hearth::llm {
namespace {

// The number of tokens in the name of a prefill signature, "prefill_128" or "prefill_128_0"; 0 for
// another one.
size_t prefillLength(std::string_view key) {
  constexpr std::string_view kPrefix = "prefill_";
  constexpr size_t kMost = size_t{1} << 24;
  if (!key.starts_with(kPrefix)) return 0;
  size_t length = 0;
  for (const char c : key.substr(kPrefix.size())) {
    if (c < '0' || c > '9') break;
    length = std::min(length * 10 + static_cast<size_t>(c - '0'), kMost);
  }
  return length;
}

// The dimension of an input of a prefill signature that has an element for each token; nothing for
// the caches, and inputs that are not known.
std::optional<size_t> axisOfTokens(const TensorInfo& input) {
  const std::string& name = input.name;
  const size_t rank = input.dimensions.size();
  const bool isList =
      name == "tokens" || name == "token_ids" || name == "input_pos" || name == "positions";
  if (isList && rank >= 1) return rank - 1;
  if ((name == "mask" || name == "attn_mask") && rank >= 2) return rank - 2;
  return std::nullopt;
}

}  // namespace

Result<std::shared_ptr<const CompiledModel>> CompiledModel::create(Model model,
                                                                   const CompileOptions& options) {
  std::shared_ptr<CompiledModel> compiled(new CompiledModel(std::move(model)));
  HEARTH_TRY(returned([&] { return compiled->compile(options); }));
  return compiled;
}

Result<std::shared_ptr<const CompiledModel>> CompiledModel::create(const ModelFile& file,
                                                                   const CompileOptions& options) {
  return returned([&]() -> Result<std::shared_ptr<const CompiledModel>> {
    std::shared_ptr<CompiledModel> compiled(new CompiledModel(Model(file.path, file.part)));
    HEARTH_TRY(compiled->compile(options));
    for (const std::string& part : file.embedders) {
      const Model embedder(file.path, part);
      for (Compilation& signature : embedder.compileSignatures(embedder.signatureKeys(), options))
        compiled->embedders_.push_back(std::move(signature));
    }
    return compiled;
  });
}

Status CompiledModel::compile(const CompileOptions& options) {
  std::map<size_t, std::string> prefills;
  std::vector<size_t> lengths;
  bool hasDecode = false;
  for (const std::string& key : model_.signatureKeys()) {
    hasDecode = hasDecode || key == "decode";
    const size_t length = prefillLength(key);
    if (length > 1 && prefills.emplace(length, key).second) lengths.push_back(length);
  }
  if (!hasDecode)
    return fail(ErrorCode::kUnsupported,
                "The model has no signature decode, as language models have.");
  std::vector<std::string> keys = {"decode"};
  for (const size_t length : usefulLengths(std::move(lengths))) keys.push_back(prefills[length]);
  if (!prefills.empty()) shortestPrefill_ = prefills.begin()->second;
  // A token then changes few pages of the caches, and sessions share those of a stored prefix.
  options_ = options;
  options_.kvLayout = HEARTH_KV_BY_TOKEN;
  signatures_ = model_.compileSignatures(keys, options_);
  return {};
}

const Compilation* CompiledModel::shorterPrefill(size_t length) const {
  const std::lock_guard lock(mutex_);
  const auto [found, isNew] = shorter_.try_emplace(length);
  std::optional<Compilation>& compilation = found->second;
  // Embeddings would have to come from a shorter signature, too.
  if (isNew && signatures_.size() > 1 && embedders_.empty()) {
    const Status compiled = returned([&]() -> Status {
      CompileOptions options = options_;
      options.signature = shortestPrefill_;
      for (const TensorInfo& input : signatures_[1].inputs()) {
        const std::optional<size_t> axis = axisOfTokens(input);
        if (!axis) continue;
        options.shapes[input.name] = input.dimensions;
        options.shapes[input.name][*axis] = static_cast<uint32_t>(length);
      }
      compilation = model_.compile(options);
      return {};
    });
    if (!compiled)
      base::logDebug("{} is not used for {} tokens: {}", shortestPrefill_, length,
                     compiled.error().toString());
  }
  return compilation ? &*compilation : nullptr;
}

}  // namespace hearth::llm
