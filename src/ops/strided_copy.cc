// SPDX-License-Identifier: Apache-2.0
#include "ops/strided_copy.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/vector_dispatch.h"
#include "ops/byte_vectors.h"
#include "ops/short_copy.h"
#include "ops/word_vectors.h"
#include "threads/parallel_ranges.h"

namespace hearth::ops {
namespace {

// Tiles keep both the rows read and the rows written in the first-level cache.
constexpr int64_t kTile = 32;

// A block that is neither 1, 2, 4 nor 8 bytes.
struct AnyBlock {
  size_t bytes;
  void copy(const uint8_t* source, uint8_t* target) const { std::memcpy(target, source, bytes); }
};

template <size_t kBytes>
struct FixedBlock {
  void copy(const uint8_t* source, uint8_t* target) const { std::memcpy(target, source, kBytes); }
};

template <typename Block>
void copyRow(Block block, const CopyDimension& loop, const uint8_t* source, uint8_t* target) {
  const int64_t size = loop.size;
  const int64_t sourceStride = loop.sourceStride;
  const int64_t targetStride = loop.targetStride;
  for (int64_t i = 0; i < size; ++i)
    block.copy(source + i * sourceStride, target + i * targetStride);
}

template <typename Block>
void copyPlane(Block block, const CopyDimension& outer, const CopyDimension& inner,
               const uint8_t* source, uint8_t* target) {
  for (int64_t i0 = 0; i0 < outer.size; i0 += kTile) {
    const int64_t iEnd = std::min(outer.size, i0 + kTile);
    for (int64_t j0 = 0; j0 < inner.size; j0 += kTile) {
      CopyDimension row = inner;
      row.size = std::min(kTile, inner.size - j0);
      for (int64_t i = i0; i < iEnd; ++i)
        copyRow(block, row, source + i * outer.sourceStride + j0 * inner.sourceStride,
                target + i * outer.targetStride + j0 * inner.targetStride);
    }
  }
}

// Calls copy(from, to) with the offsets of every pass through the first `outer` loops.
template <typename Copy>
HEARTH_INLINE inline void forEachOffset(const std::vector<CopyDimension>& loops, size_t outer,
                                        const Copy& copy) {
  // The index of the last one, which changes most often, is kept in a register.
  const CopyDimension last = outer == 0 ? CopyDimension{1, 0, 0} : loops[outer - 1];
  const size_t others = outer == 0 ? 0 : outer - 1;
  std::vector<int64_t> index(others, 0);
  int64_t from = 0;
  int64_t to = 0;
  while (true) {
    for (int64_t i = 0; i < last.size; ++i)
      copy(from + i * last.sourceStride, to + i * last.targetStride);
    size_t d = others;
    for (; d > 0; --d) {
      const CopyDimension& loop = loops[d - 1];
      from += loop.sourceStride;
      to += loop.targetStride;
      if (++index[d - 1] < loop.size) break;
      from -= loop.sourceStride * loop.size;
      to -= loop.targetStride * loop.size;
      index[d - 1] = 0;
    }
    if (d == 0) return;
  }
}

// Strides in bytes; the last loop is the innermost.
template <typename Block>
void copyLoops(Block block, const std::vector<CopyDimension>& loops, bool tiled,
               const uint8_t* source, uint8_t* target) {
  const size_t outer = loops.size() - (tiled ? 2 : 1);
  forEachOffset(loops, outer, [&](int64_t from, int64_t to) {
    if (tiled)
      copyPlane(block, loops[outer], loops[outer + 1], source + from, target + to);
    else
      copyRow(block, loops[outer], source + from, target + to);
  });
}

// Copies blocks of 16 bytes and more.
void copyLongBlocks(size_t block, const std::vector<CopyDimension>& loops, const uint8_t* source,
                    uint8_t* target) {
  const std::vector<CopyDimension>* all = &loops;
  base::onWidestVectors([=]() HEARTH_INLINE {
    const CopyDimension row = all->back();
    forEachOffset(*all, all->size() - 1, [=](int64_t from, int64_t to) HEARTH_INLINE {
      for (int64_t i = 0; i < row.size; ++i)
        copyShort(target + to + i * row.targetStride, source + from + i * row.sourceStride, block);
    });
  });
}

// Copies blocks of kBytes bytes; the last loop reads backwards and writes forwards.
template <size_t kBytes>
void copyReversed(const std::vector<CopyDimension>& loops, const uint8_t* source, uint8_t* target) {
  const std::vector<CopyDimension>* all = &loops;
  base::onWidestVectors([=]() HEARTH_INLINE {
    constexpr int64_t kBlocks = sizeof(ByteVector) / kBytes;
    constexpr int64_t kVectors = 4;  // read before the first is written
    const size_t outer = all->size() - 1;
    const int64_t size = all->back().size;
    forEachOffset(*all, outer, [=](int64_t from, int64_t to) HEARTH_INLINE {
      const uint8_t* last = source + from;
      uint8_t* first = target + to;
      int64_t i = 0;
      for (; i + kVectors * kBlocks <= size; i += kVectors * kBlocks) {
        ByteVector vectors[kVectors];
#pragma GCC unroll 4
        for (int64_t v = 0; v < kVectors; ++v)
          vectors[v] = reverseBlocks<kBytes>(
              loadVector(last - (i + (v + 1) * kBlocks - 1) * int64_t{kBytes}));
#pragma GCC unroll 4
        for (int64_t v = 0; v < kVectors; ++v)
          storeVector(vectors[v], first + (i + v * kBlocks) * int64_t{kBytes});
      }
      for (; i + kBlocks <= size; i += kBlocks)
        storeVector(reverseBlocks<kBytes>(loadVector(last - (i + kBlocks - 1) * int64_t{kBytes})),
                    first + i * int64_t{kBytes});
      for (; i < size; ++i)
        std::memcpy(first + i * int64_t{kBytes}, last - i * int64_t{kBytes}, kBytes);
    });
  });
}

// Number of neighbouring bytes in each of the rows read and written. Whole cache lines are read and
// written at a time, which matters where all rows fall into the same lines of the cache.
constexpr int64_t kWide = 64;
constexpr int64_t kNarrow = sizeof(ByteVector);

// The same in words: tiles are squares, whose rows are a cache line.
constexpr int64_t kWord = sizeof(uint32_t);
constexpr int64_t kWordTile = 16;

// Whether the last two loops transpose blocks of one byte or word and are large enough for tiles.
bool isTransposition(size_t block, const std::vector<CopyDimension>& loops) {
  const CopyDimension& outer = loops[loops.size() - 2];
  const CopyDimension& inner = loops.back();
  const auto step = static_cast<int64_t>(block);
  if (outer.sourceStride != step || inner.targetStride != step) return false;
  if (block == 1) return outer.size >= kNarrow && inner.size >= kWide;
  return step == kWord && outer.size >= kWordTile && inner.size >= kWordTile;
}

// Bytes; the sizes are multiples of kNarrow (outer) and kWide (inner).
struct ByteTiles {
  static constexpr int64_t kOuter = kNarrow;
  static constexpr int64_t kInner = kWide;
  HEARTH_INLINE static void transpose(const CopyDimension& outer, const CopyDimension& inner,
                                      const uint8_t* source, uint8_t* target) {
    // A few rows are written for a while before the next ones: all rows may fall into the same
    // lines of the cache. What is read meanwhile stays in it.
    constexpr int64_t kRead = 256 << 10;
    const int64_t stride = std::max<int64_t>(std::abs(inner.sourceStride), 1);
    const int64_t run = std::max<int64_t>(kRead / stride / kWide, 1) * kWide;
    for (int64_t begin = 0; begin < inner.size; begin += run) {
      const int64_t end = std::min(begin + run, inner.size);
      for (int64_t i = 0; i < outer.size; i += kNarrow) {
        for (int64_t j = begin; j < end; j += kWide) {
          uint8_t rows[kNarrow][kWide];
          for (int64_t part = 0; part < kWide; part += kNarrow)
            transposeSquare(source + i + (j + part) * inner.sourceStride, inner.sourceStride,
                            &rows[0][part], kWide);
          for (int64_t row = 0; row < kNarrow; ++row)
            std::memcpy(target + (i + row) * outer.targetStride + j, rows[row], kWide);
        }
      }
    }
  }
};

// Words; the sizes are multiples of kWordTile.
struct WordTiles {
  static constexpr int64_t kOuter = kWordTile;
  static constexpr int64_t kInner = kWordTile;
  HEARTH_INLINE static void transpose(const CopyDimension& outer, const CopyDimension& inner,
                                      const uint8_t* source, uint8_t* target) {
    // The rows written lie in pages of their own, and processors do not fetch their lines ahead.
    constexpr int64_t kAhead = 2 * kWordTile * kWord;
    constexpr int64_t kSide = 4;
    for (int64_t i = 0; i < outer.size; i += kWordTile) {
      for (int64_t j = 0; j < inner.size; j += kWordTile) {
        const uint8_t* const from = source + i * kWord + j * inner.sourceStride;
        uint8_t* const to = target + i * outer.targetStride + j * kWord;
        for (int64_t row = 0; row < kWordTile; ++row)
          __builtin_prefetch(to + row * outer.targetStride + kAhead, 1);
        for (int64_t row = 0; row < kWordTile; row += kSide)
          for (int64_t word = 0; word < kWordTile; word += kSide)
            transposeWords(from + row * kWord + word * inner.sourceStride, inner.sourceStride,
                           to + row * outer.targetStride + word * kWord, outer.targetStride);
      }
    }
  }
};

template <typename Tiles, size_t kBlock>
void copyTransposed(FixedBlock<kBlock> block, const std::vector<CopyDimension>& loops,
                    const uint8_t* source, uint8_t* target) {
  constexpr auto kStep = static_cast<int64_t>(kBlock);
  const size_t plane = loops.size() - 2;
  const CopyDimension outer = loops[plane];
  const CopyDimension inner = loops[plane + 1];
  CopyDimension wholeOuter = outer;
  CopyDimension wholeInner = inner;
  wholeOuter.size -= outer.size % Tiles::kOuter;
  wholeInner.size -= inner.size % Tiles::kInner;
  CopyDimension restOuter = outer;
  CopyDimension restInner = inner;
  restOuter.size -= wholeOuter.size;
  restInner.size -= wholeInner.size;
  forEachOffset(loops, plane, [&](int64_t from, int64_t to) {
    const uint8_t* read = source + from;
    uint8_t* write = target + to;
    base::onWidestVectors(
        [=]() HEARTH_INLINE { Tiles::transpose(wholeOuter, wholeInner, read, write); });
    copyPlane(block, wholeOuter, restInner, read + wholeInner.size * inner.sourceStride,
              write + wholeInner.size * kStep);
    copyPlane(block, restOuter, inner, read + wholeOuter.size * kStep,
              write + wholeOuter.size * outer.targetStride);
  });
}

void mergeAdjacent(std::vector<CopyDimension>* loops) {
  std::vector<CopyDimension> merged;
  for (const CopyDimension& loop : *loops) {
    if (!merged.empty() && merged.back().sourceStride == loop.sourceStride * loop.size &&
        merged.back().targetStride == loop.targetStride * loop.size) {
      merged.back() = {merged.back().size * loop.size, loop.sourceStride, loop.targetStride};
    } else {
      merged.push_back(loop);
    }
  }
  *loops = std::move(merged);
}

// Loops in bytes, in the order in which they run, over blocks of `block` bytes.
void copyBlocks(size_t block, const std::vector<CopyDimension>& loops, bool tiled,
                const uint8_t* source, uint8_t* target) {
  const CopyDimension& last = loops.back();
  const auto step = static_cast<int64_t>(block);
  const bool isReversed = !tiled && last.sourceStride == -step && last.targetStride == step;
  if (tiled && isTransposition(block, loops)) {
    if (block == 1) return copyTransposed<ByteTiles>(FixedBlock<1>{}, loops, source, target);
    return copyTransposed<WordTiles>(FixedBlock<kWord>{}, loops, source, target);
  }
  const auto copy = [&]<size_t kBlock>(FixedBlock<kBlock> fixed) {
    if (isReversed) return copyReversed<kBlock>(loops, source, target);
    copyLoops(fixed, loops, tiled, source, target);
  };
  switch (block) {
    case 1:
      return copy(FixedBlock<1>{});
    case 2:
      return copy(FixedBlock<2>{});
    case 4:
      return copy(FixedBlock<4>{});
    case 8:
      return copy(FixedBlock<8>{});
    default:
      if (!tiled && block >= 16) return copyLongBlocks(block, loops, source, target);
      return copyLoops(AnyBlock{block}, loops, tiled, source, target);
  }
}

}  // namespace

void copyStrided(size_t elementSize, std::vector<CopyDimension> loops, const void* source,
                 void* target, threads::ThreadPool* pool) {
  for (const CopyDimension& loop : loops)
    if (loop.size == 0) return;
  std::erase_if(loops, [](const CopyDimension& loop) { return loop.size == 1; });
  std::stable_sort(loops.begin(), loops.end(), [](const auto& a, const auto& b) {
    return std::abs(a.targetStride) > std::abs(b.targetStride);
  });
  mergeAdjacent(&loops);
  size_t block = elementSize;
  if (!loops.empty() && loops.back().sourceStride == 1 && loops.back().targetStride == 1) {
    block *= static_cast<size_t>(loops.back().size);
    loops.pop_back();
  }
  for (CopyDimension& loop : loops) {
    loop.sourceStride *= static_cast<int64_t>(elementSize);
    loop.targetStride *= static_cast<int64_t>(elementSize);
  }
  // The loop with the smallest source step goes next to the innermost: the two form the plane that
  // is copied in tiles.
  bool tiled = false;
  if (loops.size() > 1 && block <= 16) {
    const auto nearest = std::min_element(
        loops.begin(), loops.end() - 1, [](const CopyDimension& a, const CopyDimension& b) {
          return std::abs(a.sourceStride) < std::abs(b.sourceStride);
        });
    if (std::abs(nearest->sourceStride) < std::abs(loops.back().sourceStride)) {
      std::rotate(nearest, nearest + 1, loops.end() - 1);
      tiled = true;
    }
  }
  const auto* from = static_cast<const uint8_t*>(source);
  auto* to = static_cast<uint8_t*>(target);
  if (loops.empty()) {
    threads::forRanges(pool, block, threads::kBytesPerTask, [&](uint64_t begin, uint64_t end) {
      std::memcpy(to + begin, from + begin, end - begin);
    });
    return;
  }
  // With two loops only, the longer one is divided, in whole tiles.
  const size_t divided = tiled && loops.size() == 2 && loops[1].size > loops[0].size ? 1 : 0;
  const uint64_t unit = tiled && loops.size() == 2 ? kWide : 1;
  const auto size = static_cast<uint64_t>(loops[divided].size);
  uint64_t bytes = block * unit;
  for (size_t i = 0; i < loops.size(); ++i)
    if (i != divided) bytes *= static_cast<uint64_t>(loops[i].size);
  threads::forRanges(pool, (size + unit - 1) / unit, threads::grainOf(bytes),
                     [&](uint64_t begin, uint64_t end) {
                       std::vector<CopyDimension> part = loops;
                       CopyDimension& loop = part[divided];
                       const auto first = static_cast<int64_t>(begin * unit);
                       loop.size = static_cast<int64_t>(std::min(size, end * unit)) - first;
                       copyBlocks(block, part, tiled, from + first * loop.sourceStride,
                                  to + first * loop.targetStride);
                     });
}

void copyPieces(size_t bytes, uint64_t count, const uint8_t* source, uint64_t sourceStride,
                uint8_t* target, uint64_t targetStride) {
  const CopyDimension loop = {static_cast<int64_t>(count), static_cast<int64_t>(sourceStride),
                              static_cast<int64_t>(targetStride)};
  switch (bytes) {
    case 1:
      return copyRow(FixedBlock<1>{}, loop, source, target);
    case 2:
      return copyRow(FixedBlock<2>{}, loop, source, target);
    case 4:
      return copyRow(FixedBlock<4>{}, loop, source, target);
    case 8:
      return copyRow(FixedBlock<8>{}, loop, source, target);
    default:
      base::onWidestVectors([=]() HEARTH_INLINE {
        for (int64_t i = 0; i < loop.size; ++i)
          copyShort(target + i * loop.targetStride, source + i * loop.sourceStride, bytes);
      });
  }
}

void fillElements(size_t elementSize, const void* value, void* target, uint64_t count) {
  auto* bytes = static_cast<uint8_t*>(target);
  if (count == 0) return;
  if (elementSize == 1) {
    std::memset(bytes, *static_cast<const uint8_t*>(value), count);
    return;
  }
  std::memcpy(bytes, value, elementSize);
  // Every pass doubles the part that is written, by copying it.
  uint64_t done = elementSize;
  const uint64_t total = count * elementSize;
  while (done < total) {
    const uint64_t step = std::min({done, total - done, uint64_t{1} << 14});
    std::memcpy(bytes + done, bytes, step);
    done += step;
  }
}

void copySlice(size_t elementSize, const graph::Dimensions& dimensions,
               std::span<const SliceRange> ranges, const void* source, void* target,
               threads::ThreadPool* pool) {
  const std::vector<int64_t> strides = rowMajorStrides(dimensions);
  std::vector<CopyDimension> loops(ranges.size());
  int64_t start = 0;
  int64_t targetStride = 1;
  for (size_t i = ranges.size(); i-- > 0;) {
    const SliceRange& range = ranges[i];
    // An empty slice may begin past the end, where nothing may be addressed.
    if (range.size == 0) return;
    loops[i] = {range.size, range.stride * strides[i], targetStride};
    start += range.begin * strides[i];
    targetStride *= range.size;
  }
  copyStrided(elementSize, std::move(loops),
              static_cast<const uint8_t*>(source) + static_cast<size_t>(start) * elementSize,
              target, pool);
}

void copyBlock(size_t elementSize, const graph::Dimensions& block, const void* source,
               const graph::Dimensions& dimensions, std::span<const int64_t> begin, void* target,
               threads::ThreadPool* pool) {
  const std::vector<int64_t> from = rowMajorStrides(block);
  const std::vector<int64_t> to = rowMajorStrides(dimensions);
  std::vector<CopyDimension> loops;
  int64_t start = 0;
  for (size_t i = 0; i < block.size(); ++i) {
    // An empty block may begin past the end, where nothing may be addressed.
    if (block[i] == 0) return;
    loops.push_back({block[i], from[i], to[i]});
    start += begin[i] * to[i];
  }
  copyStrided(elementSize, std::move(loops), source,
              static_cast<uint8_t*>(target) + static_cast<size_t>(start) * elementSize, pool);
}

std::vector<int64_t> rowMajorStrides(const graph::Dimensions& dimensions) {
  std::vector<int64_t> strides(dimensions.size(), 1);
  for (size_t i = dimensions.size(); i-- > 1;) strides[i - 1] = strides[i] * dimensions[i];
  return strides;
}

}  // namespace hearth::ops
