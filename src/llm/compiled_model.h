// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "hearth/hearth.hpp"
#include "llm/cache_tensors.h"
#include "llm/model_file.h"

namespace hearth::llm {

// When signatures `prefill…` are compiled.
enum class Prefills {
  kAtOnce,
  kWhenNeeded,  // who finds a prompt computed needs none of them
};

// A language model whose signatures are ready to run: `decode` and those of `prefill…` that are
// worth having. All sessions of a process share it. Thread-safe.
class CompiledModel {
 public:
  // `options` says nothing of signatures and shapes. Errors: kUnsupported for a model without
  // `decode`, and those of a compilation.
  static Result<std::shared_ptr<const CompiledModel>> create(Model model,
                                                             const CompileOptions& options);

  // Opens the parts of a file that compute. Errors: those of opening it, too.
  static Result<std::shared_ptr<const CompiledModel>> create(const ModelFile& file,
                                                             const CompileOptions& options,
                                                             Prefills prefills = Prefills::kAtOnce);

  // Those that are compiled at once. `decode` is the first; the others begin with the shortest.
  const std::vector<Compilation>& signatures() const { return signatures_; }
  // The tokens of the signatures `prefill…` that are compiled when they are needed, as their names
  // say; ascending.
  std::vector<size_t> laterLengths() const;
  // The signature `prefill…` for `length` tokens, compiled at the first call: one of these, or the
  // shortest one for fewer tokens than it has, with the same packed weights. Null where it cannot
  // be compiled, its operations do not follow such a change, or its inputs are not known.
  const Compilation* prefill(size_t length) const;
  // What is a cache, as the file says.
  const CacheTensors& cacheTensors() const { return cacheTensors_; }
  // All signatures of the parts that make embeddings of tokens.
  const std::vector<Compilation>& embedders() const { return embedders_; }

 private:
  explicit CompiledModel(Model model) : model_(std::move(model)) {}
  Status compile(const CompileOptions& options, Prefills prefills);
  void takeLength(size_t length, CompileOptions* options) const;
  // `prefill`, or another compilation of its signature without the scores that it gives.
  Compilation withoutScores(Compilation prefill, CompileOptions options) const;

  Model model_;
  CacheTensors cacheTensors_;
  CompileOptions options_;               // of all signatures
  std::map<size_t, std::string> later_;  // keys of signatures by their tokens
  std::string shortestPrefill_;          // empty: there is none
  std::vector<Compilation> signatures_;
  std::vector<Compilation> embedders_;
  mutable std::mutex mutex_;
  mutable std::map<size_t, std::optional<Compilation>> prefills_;  // by length; guarded by mutex_
};

}  // namespace hearth::llm
