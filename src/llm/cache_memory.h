// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "hearth/hearth.hpp"

namespace hearth::llm {

// Memory of zeros for tensors that a signature reads and writes in place. Pages that are never used
// take no memory.
class CacheMemory {
 public:
  CacheMemory() = default;
  ~CacheMemory();
  CacheMemory(const CacheMemory&) = delete;
  CacheMemory& operator=(const CacheMemory&) = delete;

  // The memory of the tensor with this name, made at the first call. It begins with a page, and the
  // tensor's padding can be read behind it, which the caller promises to the execution. Errors:
  // kBadData when it was asked for with another size, kOutOfMemory.
  Result<void*> take(const TensorInfo& tensor);

  // What the tensors are and where they lie, in the order of their names. One that was asked for
  // with several shapes has none.
  struct Tensor {
    TensorInfo info;
    char* data = nullptr;
  };
  std::vector<Tensor> tensors() const;

  // Copies what the tensors hold; `to` has them all, too. Pages that are alike stay untouched
  // there, so they may be shared with a file. `isNew`: nothing was written to `to` yet.
  void copyTo(CacheMemory* to, bool isNew) const;

 private:
  struct Block {
    void* mapping = nullptr;
    size_t mapped = 0;
    void* data = nullptr;
    TensorInfo info;
  };
  std::map<std::string, Block> blocks_;
};

}  // namespace hearth::llm
