// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "hearth/hearth.hpp"
#include "llm/executor_metadata.h"

namespace hearth::llm {

// Which inputs and outputs of a model's signatures are its caches, and where tokens lie in them.
// Immutable; thread-safe.
class CacheTensors {
 public:
  // Of a file that says nothing.
  CacheTensors() = default;
  // What a file says. Error: kBadData where it names a tensor twice.
  static Result<CacheTensors> of(std::span<const StateBuffer> buffers);

  // The name of the cache that an input or output is; empty: it is none. Where the file does not
  // name the tensor, it is a cache if it is both, in one signature.
  std::string ofInput(const std::string& input, bool isOutputToo) const;
  std::string ofOutput(const std::string& output, bool isInputToo) const;

  // How many tokens the text may have at most, as the axes that the file names have that length:
  // `capacity`, or what caches have room for where `capacity` is 0; 0 where nothing says it.
  // Errors: kBadData for an axis that a cache does not have; kUnsupported for a cache with room
  // for fewer tokens, which overwrites those before, and for one that keeps no token for itself, as
  // that of linear attention.
  Result<size_t> capacityOf(std::span<const TensorInfo> caches, size_t capacity) const;

  // The axis of a cache along which its tokens lie, with room for `capacity` of them: that which
  // the file names, or the only one of that length. The cache may have been laid out by token, as
  // HEARTH_KV_BY_TOKEN does. Error: kUnsupported where none can be it, or more than one.
  Result<size_t> tokenAxis(const TensorInfo& cache, size_t capacity) const;

 private:
  struct Cache {
    StateBuffer::Type type = StateBuffer::Type::kUnspecified;
    std::optional<size_t> axis;
  };
  std::optional<size_t> axisOf(const TensorInfo& cache) const;

  std::map<std::string, std::string> inputs_;   // caches by the names of inputs
  std::map<std::string, std::string> outputs_;  // and of outputs
  std::map<std::string, Cache> caches_;
};

}  // namespace hearth::llm
