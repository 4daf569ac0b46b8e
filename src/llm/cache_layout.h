// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/sha256.h"
#include "llm/cache_memory.h"
#include "llm/cache_tensors.h"

namespace hearth::llm {

// Where the keys and values of a range of tokens lie in a model's caches: each cache has one axis
// along which the tokens follow each other, of the length of the context. A block of bytes holds
// those of a range, one cache after the other. What is several pages long in a cache lies at the
// same place of a page in the block, so that a file that begins with the block can be mapped there.
// Immutable; the memory of the caches outlives it. One thread at a time changes the caches.
class CacheLayout {
 public:
  // `capacity`: for how many tokens the caches have room. Errors: those of
  // CacheTensors::tokenAxis(), and kUnsupported for tokens that are no whole bytes.
  static Result<CacheLayout> create(const std::vector<CacheMemory::Tensor>& tensors,
                                    const CacheTensors& names, size_t capacity);

  // The names, types and shapes of the caches, and the form of a block.
  const base::Sha256Digest& digest() const { return digest_; }

  // For how many tokens the caches have room.
  size_t capacity() const { return capacity_; }

  // The bytes of a block for the tokens from `begin` up to `end`, which are at most the capacity.
  size_t bytes(size_t begin, size_t end) const;

  // Copies the range from the caches into `block`, which has that size and is all zeros.
  void save(size_t begin, size_t end, std::span<uint8_t> block) const;

  // Gives the caches what `block` holds. Whole pages become copy-on-write mappings of `file`, which
  // begins with the same bytes and is never written again, so that processes share them; the rest
  // is copied. The caches keep the file mapped. With a negative `file`, copies all.
  void load(size_t begin, size_t end, std::span<const uint8_t> block, int file) const;

 private:
  // A cache is `count` arrays one behind the other, with `stride` bytes for each token.
  struct Cache {
    char* data = nullptr;
    size_t count = 0;
    size_t stride = 0;
  };
  template <typename Visit>
  size_t forEachRun(size_t begin, size_t end, Visit visit) const;

  std::vector<Cache> caches_;
  size_t capacity_ = 0;
  size_t page_ = 0;  // of the memory, in bytes
  base::Sha256Digest digest_{};
};

}  // namespace hearth::llm
