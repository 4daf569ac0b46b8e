// SPDX-License-Identifier: Apache-2.0
#include "llm/cache_layout.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <numeric>

namespace hearth::llm {
namespace {

// Fewer pages are copied in less time than they are mapped.
constexpr size_t kLeastMappedPages = 3;
// Of one block: Linux gives a process 65530 mappings.
constexpr size_t kMostMappings = 2048;

}  // namespace

Result<CacheLayout> CacheLayout::create(const std::vector<CacheMemory::Tensor>& tensors,
                                        const CacheTensors& names, size_t capacity) {
  CacheLayout layout;
  layout.capacity_ = capacity;
  layout.page_ = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  base::Sha256 hash;
  hash.update(&layout.page_, sizeof layout.page_);
  for (const auto& [info, data] : tensors) {
    const auto& shape = info.dimensions;
    HEARTH_ASSIGN(const size_t axis, names.tokenAxis(info, capacity));
    const size_t count =
        std::accumulate(shape.begin(), shape.begin() + static_cast<ptrdiff_t>(axis), size_t{1},
                        std::multiplies<size_t>());
    if (info.byteSize % (count * capacity) != 0)
      return fail(ErrorCode::kUnsupported, "The cache {} has tokens that are no whole bytes.",
                  info.name);
    layout.caches_.push_back({data, count, info.byteSize / (count * capacity)});
    hash.update(info.name.c_str(), info.name.size() + 1);
    const auto type = static_cast<uint32_t>(info.type);
    const auto rank = static_cast<uint32_t>(shape.size());
    hash.update(&type, sizeof type);
    hash.update(&rank, sizeof rank);
    hash.update(shape.data(), shape.size() * sizeof shape[0]);
    hash.update(&axis, sizeof axis);
    const size_t place = reinterpret_cast<uintptr_t>(data) % layout.page_;
    hash.update(&place, sizeof place);
  }
  layout.digest_ = hash.finish();
  return layout;
}

// Calls `visit` with the memory of each run of bytes, its offset in the block and its size. Returns
// the size of the block.
template <typename Visit>
size_t CacheLayout::forEachRun(size_t begin, size_t end, Visit visit) const {
  size_t offset = 0;
  for (const Cache& cache : caches_) {
    const size_t size = cache.stride * (end - begin);
    for (size_t i = 0; i < cache.count; ++i, offset += size) {
      char* const memory = cache.data + (i * capacity_ + begin) * cache.stride;
      if (size >= kLeastMappedPages * page_)
        offset += (reinterpret_cast<uintptr_t>(memory) - offset) % page_;
      visit(memory, offset, size);
    }
  }
  return offset;
}

size_t CacheLayout::bytes(size_t begin, size_t end) const {
  return forEachRun(begin, end, [](char*, size_t, size_t) {});
}

void CacheLayout::save(size_t begin, size_t end, std::span<uint8_t> block) const {
  forEachRun(begin, end, [&](const char* memory, size_t offset, size_t size) {
    std::memcpy(block.data() + offset, memory, size);
  });
}

void CacheLayout::load(size_t begin, size_t end, std::span<const uint8_t> block, int file) const {
  size_t mappings = 0;
  forEachRun(begin, end, [&](char* memory, size_t offset, size_t size) {
    const uint8_t* const bytes = block.data() + offset;
    size_t first = size;  // of the bytes that are mapped
    size_t last = size;
    if (file >= 0 && size >= kLeastMappedPages * page_ && mappings < kMostMappings) {
      first = (page_ - offset % page_) % page_;
      last = size - (offset + size) % page_;
      void* const mapped =
          ::mmap(memory + first, last - first, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, file, static_cast<off_t>(offset + first));
      if (mapped == MAP_FAILED)
        first = last = size;
      else
        ++mappings;
    }
    std::memcpy(memory, bytes, first);
    std::memcpy(memory + last, bytes + last, size - last);
  });
}

}  // namespace hearth::llm
