// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "hearth/hearth.hpp"
#include "llm/step_limits.h"

namespace hearth::llm {

// Computes an input of a decoder's signature from the numbers of tokens: rows of a table in a part
// of the file that is called embedder. Used by one thread at a time.
class Embedder {
 public:
  // Takes the signature of `signatures` whose output has the name and the size of `input`. Error:
  // kUnsupported where there is none that takes token numbers only.
  static Result<std::unique_ptr<Embedder>> create(const std::vector<Compilation>& signatures,
                                                  const TensorInfo& input);
  Embedder(const Embedder&) = delete;
  Embedder& operator=(const Embedder&) = delete;

  // How many tokens it takes.
  size_t length() const { return tokens_.size(); }
  // The input; stays where it is.
  void* memory() { return rows_.data(); }

  // Fills the memory for these tokens, at most length() of them; what is behind them is of token 0.
  // Throws Exception where the run fails.
  void run(std::span<const int32_t> tokens, const StepLimits& limits);

 private:
  explicit Embedder(const Compilation& compilation);

  std::vector<int32_t> tokens_;
  std::vector<float> rows_;
  Execution execution_;  // uses the memory above
};

}  // namespace hearth::llm
