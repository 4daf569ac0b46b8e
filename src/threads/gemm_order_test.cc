// SPDX-License-Identifier: Apache-2.0
// The order with a hint visits every output once and respects XNNPACK's layouts.
#include <gtest/gtest.h>

#include <memory>
#include <mutex>
#include <vector>

#include "threads/gemm_hint.h"
#include "threads/pthreadpool_functions.h"
#include "threads/thread_pool.h"

namespace hearth::threads {
namespace {

struct Tile {
  size_t outer, row, column, rows, columns;
};

class Recorder {
 public:
  static void task2d(void* self, size_t row, size_t column, size_t rows, size_t columns) {
    static_cast<Recorder*>(self)->add({0, row, column, rows, columns});
  }
  static void task3d(void* self, size_t i, size_t row, size_t column, size_t rows, size_t columns) {
    static_cast<Recorder*>(self)->add({i, row, column, rows, columns});
  }
  static void task4d(void* self, size_t i, size_t j, size_t row, size_t column, size_t rows,
                     size_t columns) {
    static_cast<Recorder*>(self)->add({i * 2 + j, row, column, rows, columns});
  }
  const std::vector<Tile>& tiles() const { return tiles_; }

 private:
  void add(const Tile& tile) {
    std::lock_guard lock(mutex_);
    tiles_.push_back(tile);
  }

  std::mutex mutex_;
  std::vector<Tile> tiles_;
};

// `spareRow`: the last row tile of each product may extend one row past the product.
void expectEachOutputOnce(const std::vector<Tile>& tiles, size_t outer, size_t rows, size_t columns,
                          bool spareRow) {
  std::vector<int> visits(outer * (rows + 1) * columns);
  for (const Tile& tile : tiles) {
    ASSERT_LT(tile.outer, outer);
    ASSERT_LE(tile.row + tile.rows, rows + (spareRow ? 1 : 0));
    ASSERT_LE(tile.column + tile.columns, columns);
    for (size_t r = tile.row; r < tile.row + tile.rows; ++r)
      for (size_t c = tile.column; c < tile.column + tile.columns; ++c)
        ++visits[(tile.outer * (rows + 1) + r) * columns + c];
  }
  for (size_t o = 0; o < outer; ++o)
    for (size_t r = 0; r < rows; ++r)
      for (size_t c = 0; c < columns; ++c)
        ASSERT_EQ(visits[(o * (rows + 1) + r) * columns + c], 1) << o << " " << r << " " << c;
}

std::unique_ptr<ThreadPool> poolOf(size_t threads) {
  auto pool = ThreadPool::create(threads);
  EXPECT_TRUE(pool) << pool.error().toString();
  return std::move(*pool);
}

TEST(GemmOrder, VisitsEachOutputOnceInWholeRowTiles) {
  for (const size_t threads : {1, 2, 3, 4}) {
    const auto pool = poolOf(threads);
    for (const size_t rows : {1, 6, 7, 49, 50})
      for (const size_t columns : {1, 33, 64, 65, 130, 1000})
        for (const size_t columnTile : {size_t{16}, size_t{32}, size_t{192}, columns})
          for (const size_t bytes : {1, 100, 3000, 1 << 20}) {
            Recorder recorder;
            GemmHintScope scope({bytes, columns, false});
            hearth_pthreadpool_parallelize_2d_tile_2d(pool->nativeHandle(), Recorder::task2d,
                                                      &recorder, rows, columns, 7, columnTile, 0);
            expectEachOutputOnce(recorder.tiles(), 1, rows, columns, false);
            const size_t unit = columnTile < columns ? std::min<size_t>(columnTile, 64) : 64;
            for (const Tile& tile : recorder.tiles()) {
              ASSERT_EQ(tile.row % 7, 0u);
              ASSERT_EQ(tile.rows, std::min<size_t>(7, rows - tile.row));
              ASSERT_EQ(tile.column % unit, 0u);
            }
          }
  }
}

// Visits `rows` in tiles of 7, and the columns that the hint names.
void visit(size_t threads, const GemmHint& hint, size_t rows, Recorder* recorder) {
  const auto pool = poolOf(threads);
  GemmHintScope scope(hint);
  hearth_pthreadpool_parallelize_2d_tile_2d(pool->nativeHandle(), Recorder::task2d, recorder, rows,
                                            hint.columns, 7, hint.columns, 0);
}

TEST(GemmOrder, KeepsABlockOfColumnsForAllRows) {
  Recorder recorder;
  visit(1, {4096, 1024, false}, 49, &recorder);
  ASSERT_GT(recorder.tiles().size(), 7u);
  size_t lastColumn = 0;
  for (size_t i = 0; i < recorder.tiles().size(); ++i) {
    const Tile& tile = recorder.tiles()[i];
    EXPECT_EQ(tile.row, i % 7 * 7);
    EXPECT_GE(tile.column, lastColumn);
    EXPECT_LE(tile.columns * 4096, size_t{1} << 20);
    lastColumn = tile.column;
  }
}

TEST(GemmOrder, GivesEveryThreadWork) {
  Recorder recorder;
  visit(4, {16, 4096, false}, 1, &recorder);
  EXPECT_GE(recorder.tiles().size(), 8u);
}

TEST(GemmOrder, OuterDimensionsStay) {
  const auto pool = poolOf(3);
  GemmHintScope scope({3000, 200, false});
  Recorder three;
  hearth_pthreadpool_parallelize_3d_tile_2d(pool->nativeHandle(), Recorder::task3d, &three, 5, 23,
                                            200, 4, 200, 0);
  expectEachOutputOnce(three.tiles(), 5, 23, 200, false);
  Recorder four;
  hearth_pthreadpool_parallelize_4d_tile_2d(pool->nativeHandle(), Recorder::task4d, &four, 3, 2, 23,
                                            200, 4, 200, 0);
  expectEachOutputOnce(four.tiles(), 6, 23, 200, false);
}

TEST(GemmOrder, GuardTurnsAOneRowTailIntoTwoRows) {
  const auto pool = poolOf(2);
  for (const size_t bytes : {0, 5000}) {
    GemmHintScope scope({bytes, 96, true});
    for (const size_t rows : {1, 16, 17, 18, 49}) {
      Recorder recorder;
      hearth_pthreadpool_parallelize_3d_tile_2d(pool->nativeHandle(), Recorder::task3d, &recorder,
                                                3, rows, 96, 16, 96, 0);
      const bool guarded = rows == 17 || rows == 49;
      expectEachOutputOnce(recorder.tiles(), 3, rows, 96, guarded);
      bool fullTileSeen = false;
      for (const Tile& tile : recorder.tiles()) {
        fullTileSeen |= tile.row == 0;
        if (tile.row + 1 != rows || rows == 1) continue;
        EXPECT_EQ(tile.rows, 2u);
        // The next product's first row is computed after this tile has overwritten it.
        EXPECT_FALSE(fullTileSeen);
      }
    }
  }
}

TEST(GemmOrder, OtherCallsKeepTheirOrder) {
  const auto pool = poolOf(1);
  for (const bool hinted : {false, true}) {
    Recorder recorder;
    std::unique_ptr<GemmHintScope> scope;
    if (hinted) scope = std::make_unique<GemmHintScope>(GemmHint{4096, 512, true});
    hearth_pthreadpool_parallelize_2d_tile_2d(pool->nativeHandle(), Recorder::task2d, &recorder, 9,
                                              256, 4, 128, 0);
    ASSERT_EQ(recorder.tiles().size(), 6u);
    EXPECT_EQ(recorder.tiles()[1].row, 0u);
    EXPECT_EQ(recorder.tiles()[1].column, 128u);
    EXPECT_EQ(recorder.tiles()[5].rows, 1u);
  }
}

TEST(GemmOrder, InnerHintEndsWithItsScope) {
  GemmHintScope outer({4096, 512, false});
  {
    GemmHintScope inner({4096, 256, false});
  }
  Recorder recorder;
  hearth_pthreadpool_parallelize_2d_tile_2d(nullptr, Recorder::task2d, &recorder, 9, 512, 4, 512,
                                            0);
  EXPECT_GT(recorder.tiles().size(), 3u);
}

}  // namespace
}  // namespace hearth::threads
