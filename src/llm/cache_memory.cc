// SPDX-License-Identifier: Apache-2.0
#include "llm/cache_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace hearth::llm {
namespace {

size_t roundUp(size_t number, size_t multiple) {
  return (number + multiple - 1) / multiple * multiple;
}

}  // namespace

CacheMemory::~CacheMemory() {
  for (auto& [name, block] : blocks_)
    if (block.mapping != nullptr) munmap(block.mapping, block.mapped);
}

Result<void*> CacheMemory::take(const TensorInfo& tensor) {
  Block& block = blocks_[tensor.name];
  if (block.mapping != nullptr) {
    if (block.info.byteSize == tensor.byteSize) {
      if (block.info.dimensions != tensor.dimensions) block.info.dimensions.clear();
      return block.data;
    }
    return fail(ErrorCode::kBadData,
                "The tensor {} has {} bytes in one signature and {} in another.", tensor.name,
                block.info.byteSize, tensor.byteSize);
  }
  if (tensor.byteSize == 0)
    return fail(ErrorCode::kUnsupported, "The tensor {} has no fixed size.", tensor.name);
  // The padding lies in a page of its own at the latest.
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t size = roundUp(tensor.byteSize + tensor.padding, page);
  void* const mapping = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED)
    return fail(ErrorCode::kOutOfMemory, "There is no memory for {} bytes of the tensor {}.",
                tensor.byteSize, tensor.name);
  block = {mapping, size, mapping, tensor};
  return block.data;
}

void CacheMemory::copyTo(CacheMemory* to, bool isNew) const {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const std::vector<char> zeros(page);
  for (const auto& [name, block] : blocks_) {
    const Block& other = to->blocks_.at(name);
    const auto* const source = static_cast<const char*>(block.data);
    auto* const target = static_cast<char*>(other.data);
    for (size_t begin = 0; begin < block.info.byteSize; begin += page) {
      const size_t bytes = std::min<size_t>(page, block.info.byteSize - begin);
      const char* const there = isNew ? zeros.data() : target + begin;
      if (std::memcmp(source + begin, there, bytes) != 0)
        std::memcpy(target + begin, source + begin, bytes);
    }
  }
}

std::vector<CacheMemory::Tensor> CacheMemory::tensors() const {
  std::vector<Tensor> tensors;
  for (const auto& [name, block] : blocks_)
    tensors.push_back({block.info, static_cast<char*>(block.data)});
  return tensors;
}

}  // namespace hearth::llm
