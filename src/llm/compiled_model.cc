// SPDX-License-Identifier: Apache-2.0
#include "llm/compiled_model.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
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
std::optional<size_t> axisOfTokens(const std::string& name, size_t rank) {
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
  HEARTH_TRY(returned([&] { return compiled->compile(options, Prefills::kAtOnce); }));
  return compiled;
}

Result<std::shared_ptr<const CompiledModel>> CompiledModel::create(const ModelFile& file,
                                                                   const CompileOptions& options,
                                                                   Prefills prefills) {
  return returned([&]() -> Result<std::shared_ptr<const CompiledModel>> {
    std::shared_ptr<CompiledModel> compiled(new CompiledModel(Model(file.path, file.part)));
    HEARTH_ASSIGN(compiled->cacheTensors_, CacheTensors::of(file.executor.stateBuffers));
    HEARTH_TRY(compiled->compile(options, prefills));
    for (const std::string& part : file.embedders) {
      const Model embedder(file.path, part);
      for (Compilation& signature : embedder.compileSignatures(embedder.signatureKeys(), options))
        compiled->embedders_.push_back(std::move(signature));
    }
    return compiled;
  });
}

Status CompiledModel::compile(const CompileOptions& options, Prefills prefills) {
  std::map<size_t, std::string> found;
  std::vector<size_t> lengths;
  bool hasDecode = false;
  for (const std::string& key : model_.signatureKeys()) {
    hasDecode = hasDecode || key == "decode";
    const size_t length = prefillLength(key);
    if (length > 1 && found.emplace(length, key).second) lengths.push_back(length);
  }
  if (!hasDecode)
    return fail(ErrorCode::kUnsupported,
                "The model has no signature decode, as language models have.");
  std::vector<std::string> keys = {"decode"};
  for (const size_t length : usefulLengths(std::move(lengths))) {
    if (prefills == Prefills::kAtOnce)
      keys.push_back(found[length]);
    else
      later_.emplace(length, found[length]);
  }
  if (!found.empty()) shortestPrefill_ = found.begin()->second;
  // A token then changes few pages of the caches, and sessions share those of a stored prefix.
  options_ = options;
  options_.kvLayout = HEARTH_KV_BY_TOKEN;
  signatures_ = model_.compileSignatures(keys, options_);
  for (size_t i = 1; i < keys.size(); ++i) {
    CompileOptions own = options_;
    own.signature = keys[i];
    signatures_[i] = withoutScores(std::move(signatures_[i]), std::move(own));
  }
  return {};
}

// Nobody reads the scores behind a prompt's tokens: `decode` gives those behind the last one. Files
// of today have none of them, so that a second compilation is rare.
Compilation CompiledModel::withoutScores(Compilation prefill, CompileOptions options) const {
  std::set<std::string> inputs;
  for (const TensorInfo& input : prefill.inputs()) inputs.insert(input.name);
  const std::vector<TensorInfo> outputs = prefill.outputs();
  for (const TensorInfo& output : outputs)
    if (!cacheTensors_.ofOutput(output.name, inputs.contains(output.name)).empty())
      options.outputs.push_back(output.name);
  // Without caches it is refused later.
  if (options.outputs.empty() || options.outputs.size() == outputs.size()) return prefill;
  return model_.compile(options);
}

std::vector<size_t> CompiledModel::laterLengths() const {
  std::vector<size_t> lengths;
  for (const auto& [length, key] : later_) lengths.push_back(length);
  return lengths;
}

// The shortest signature, with inputs for so many tokens. Their shapes are those of decode's inputs
// but for that: to ask the file for its own would be to translate its signature twice.
void CompiledModel::takeLength(size_t length, CompileOptions* options) const {
  options->signature = shortestPrefill_;
  for (const TensorInfo& input : signatures_.front().inputs()) {
    std::vector<uint32_t> shape = input.dimensions;
    const std::optional<size_t> axis = axisOfTokens(input.name, shape.size());
    if (!axis) continue;
    shape[*axis] = static_cast<uint32_t>(length);
    options->shapes[input.name] = std::move(shape);
  }
}

const Compilation* CompiledModel::prefill(size_t length) const {
  const std::lock_guard lock(mutex_);
  const auto [found, isNew] = prefills_.try_emplace(length);
  std::optional<Compilation>& compilation = found->second;
  if (!isNew) return compilation ? &*compilation : nullptr;
  const Status compiled = returned([&]() -> Status {
    CompileOptions options = options_;
    if (const auto later = later_.find(length); later != later_.end())
      options.signature = later->second;
    // Embeddings would have to come from a shorter signature, too.
    else if (!embedders_.empty() || shortestPrefill_.empty())
      return {};
    else
      takeLength(length, &options);
    compilation = withoutScores(model_.compile(options), options);
    return {};
  });
  if (!compiled)
    base::logDebug("{} is not used for {} tokens: {}", shortestPrefill_, length,
                   compiled.error().toString());
  return compilation ? &*compilation : nullptr;
}

}  // namespace hearth::llm
