// SPDX-License-Identifier: Apache-2.0
// What a `.litertlm` file says about the tensors that a language model keeps between runs: the
// message ExecutorMetadata of LiteRT-LM (runtime/proto/executor_metadata.proto).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace hearth::llm {

// A cache. Its names are those of tensors, empty where the file has none.
struct StateBuffer {
  enum class Type {
    kUnspecified,
    kGlobalKeys,
    kGlobalValues,
    kLocalKeys,
    kLocalValues,
    kLinearAttention
  };

  std::string prefillInput;
  std::string prefillOutput;
  std::string decodeInput;
  std::string decodeOutput;
  Type type = Type::kUnspecified;
  std::optional<uint32_t> sequenceAxis;  // along which the tokens lie
};

struct ExecutorMetadata {
  std::vector<StateBuffer> stateBuffers;
  uint32_t slidingWindow = 0;  // of the local attention, in tokens; 0: the file does not say
};

// "global keys", "linear attention", …
std::string_view stateBufferTypeName(StateBuffer::Type type);

// Fields that are not known are skipped. Error: kBadData.
Result<ExecutorMetadata> readExecutorMetadata(std::span<const uint8_t> message);

}  // namespace hearth::llm
