// SPDX-License-Identifier: Apache-2.0
#include "llm/compiled_model.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>

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
  // A token then changes few pages of the caches, and sessions share those of a stored prefix.
  CompileOptions byToken = options;
  byToken.kvLayout = HEARTH_KV_BY_TOKEN;
  signatures_ = model_.compileSignatures(keys, byToken);
  return {};
}

}  // namespace hearth::llm
