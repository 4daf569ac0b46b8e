// SPDX-License-Identifier: Apache-2.0
#include "llm/embedder.h"

#include <algorithm>

namespace hearth::llm {

Embedder::Embedder(const Compilation& compilation)
    : tokens_(compilation.inputs().front().byteSize / sizeof(int32_t)),
      rows_(compilation.outputs().front().byteSize / sizeof(float)),
      execution_(compilation.createExecution()) {
  execution_.setInput(0, tokens_);
  execution_.setOutput(0, rows_);
}

Result<std::unique_ptr<Embedder>> Embedder::create(const std::vector<Compilation>& signatures,
                                                   const TensorInfo& input) {
  for (const Compilation& signature : signatures) {
    const std::vector<TensorInfo> inputs = signature.inputs();
    const std::vector<TensorInfo> outputs = signature.outputs();
    if (inputs.size() == 1 && inputs.front().type == HEARTH_TYPE_INT32 &&
        inputs.front().byteSize != 0 && outputs.size() == 1 && outputs.front().name == input.name &&
        outputs.front().type == HEARTH_TYPE_FLOAT32 && input.type == HEARTH_TYPE_FLOAT32 &&
        outputs.front().byteSize == input.byteSize && input.byteSize != 0)
      return std::unique_ptr<Embedder>(new Embedder(signature));
  }
  return fail(ErrorCode::kUnsupported,
              "The model takes {} of {} bytes, and no embedder in the file gives it.", input.name,
              input.byteSize);
}

void Embedder::run(std::span<const int32_t> tokens, const StepLimits& limits) {
  const auto [end, filled] = std::ranges::copy(tokens, tokens_.begin());
  std::fill(filled, tokens_.end(), 0);
  limits.run(&execution_);
}

}  // namespace hearth::llm
