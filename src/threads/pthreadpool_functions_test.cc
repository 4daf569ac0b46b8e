// SPDX-License-Identifier: Apache-2.0
// Every function visits every index exactly once, in tiles of the right position and size.
#include "threads/pthreadpool_functions.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <memory>
#include <vector>

#include "threads/thread_pool.h"

namespace hearth::threads {
namespace {

// Counts visits of the cells of a grid of up to six dimensions, the last kTiled of them tiled.
template <size_t kDims, size_t kTiled>
class Visits {
 public:
  Visits(std::array<size_t, kDims> ranges, std::array<size_t, kTiled> tiles, size_t threads)
      : ranges_(ranges), tiles_(tiles), inUse_(threads) {
    size_t cells = 1;
    for (size_t range : ranges) cells *= range;
    visits_ = std::vector<std::atomic<int>>(cells);
  }

  template <typename... Index>
  static void task(void* self, Index... index) {
    static_cast<Visits*>(self)->visit({index...});
  }

  template <typename... Index>
  static void taskWithThread(void* self, size_t thread, Index... index) {
    auto& visits = *static_cast<Visits*>(self);
    if (thread >= visits.inUse_.size()) {
      visits.wrongThread_ = true;
      return;
    }
    if (visits.inUse_[thread].exchange(true)) visits.wrongThread_ = true;
    visits.visit({index...});
    visits.inUse_[thread] = false;
  }

  // No processor has a thousand kinds of cores, so each is told by its number or as kFallback.
  static constexpr uint32_t kFallback = 5000, kGreatest = 1000;
  template <typename... Index>
  static void taskOnCore(void* self, uint32_t core, Index... index) {
    auto& visits = *static_cast<Visits*>(self);
    if (core > kGreatest && core != kFallback) visits.wrongCore_ = true;
    visits.visit({index...});
  }
  template <typename... Index>
  static void taskOnCoreWithThread(void* self, uint32_t core, size_t thread, Index... index) {
    if (core > kGreatest && core != kFallback) static_cast<Visits*>(self)->wrongCore_ = true;
    taskWithThread(self, thread, index...);
  }

  void check() const {
    EXPECT_FALSE(wrongCore_);
    EXPECT_FALSE(wrongTile_);
    EXPECT_FALSE(wrongThread_);
    for (size_t cell = 0; cell < visits_.size(); ++cell)
      ASSERT_EQ(visits_[cell], 1) << "cell " << cell << " of " << visits_.size();
  }

 private:
  void visit(std::array<size_t, kDims + kTiled> index) {
    std::array<size_t, kDims> sizes;
    sizes.fill(1);
    for (size_t t = 0; t < kTiled; ++t) {
      const size_t d = kDims - kTiled + t;
      sizes[d] = index[kDims + t];
      if (index[d] % tiles_[t] != 0 || index[d] >= ranges_[d] ||
          sizes[d] != std::min(tiles_[t], ranges_[d] - index[d])) {
        wrongTile_ = true;
        return;
      }
    }
    mark(index, sizes, 0, 0);
  }

  void mark(const std::array<size_t, kDims + kTiled>& start, const std::array<size_t, kDims>& sizes,
            size_t d, size_t cell) {
    if (d == kDims) {
      ++visits_[cell];
      return;
    }
    for (size_t i = 0; i < sizes[d]; ++i)
      mark(start, sizes, d + 1, cell * ranges_[d] + start[d] + i);
  }

  std::array<size_t, kDims> ranges_;
  std::array<size_t, kTiled> tiles_;
  std::vector<std::atomic<int>> visits_;
  std::vector<std::atomic<bool>> inUse_;
  std::atomic<bool> wrongCore_{false};
  std::atomic<bool> wrongTile_{false};
  std::atomic<bool> wrongThread_{false};
};

// The parameter is the number of threads; 0 stands for a null pool.
class PthreadpoolFunctions : public testing::TestWithParam<size_t> {
 protected:
  void SetUp() override {
    if (GetParam() == 0) return;
    auto pool = ThreadPool::create(GetParam());
    ASSERT_TRUE(pool) << pool.error().toString();
    pool_ = std::move(*pool);
  }

  pthreadpool_t handle() { return pool_ == nullptr ? nullptr : pool_->nativeHandle(); }
  size_t threads() const { return pool_ == nullptr ? 1 : pool_->threadCount(); }

  template <size_t kDims, size_t kTiled, typename Call>
  void check(std::array<size_t, kDims> ranges, std::array<size_t, kTiled> tiles, Call&& call) {
    for (int repeat = 0; repeat < 3; ++repeat) {
      Visits<kDims, kTiled> visits(ranges, tiles, threads());
      call(handle(), &visits);
      visits.check();
    }
  }

  std::unique_ptr<ThreadPool> pool_;
};

TEST_P(PthreadpoolFunctions, ThreadsCount) {
  EXPECT_EQ(hearth_pthreadpool_get_threads_count(handle()), threads());
}

TEST_P(PthreadpoolFunctions, OneDimension) {
  for (const size_t n : {0, 1, 2, 3, 17, 1009}) {
    using Plain = Visits<1, 0>;
    check<1, 0>({n}, {}, [&](pthreadpool_t pool, Plain* visits) {
      hearth_pthreadpool_parallelize_1d(pool, &Plain::task<size_t>, visits, n, 0);
    });
    check<1, 0>({n}, {}, [&](pthreadpool_t pool, Plain* visits) {
      hearth_pthreadpool_parallelize_1d_with_thread(pool, &Plain::taskWithThread<size_t>, visits, n,
                                                    0);
    });
    for (const size_t tile : {1, 2, 5, 16, 2000}) {
      using Tiled = Visits<1, 1>;
      check<1, 1>({n}, {tile}, [&](pthreadpool_t pool, Tiled* visits) {
        hearth_pthreadpool_parallelize_1d_tile_1d(pool, &Tiled::task<size_t, size_t>, visits, n,
                                                  tile, 0);
      });
    }
  }
}

TEST_P(PthreadpoolFunctions, TwoDimensions) {
  for (const auto& [m, n] : {std::pair<size_t, size_t>{0, 4}, {1, 1}, {3, 1}, {7, 13}, {31, 5}}) {
    using Plain = Visits<2, 0>;
    check<2, 0>({m, n}, {}, [&](pthreadpool_t pool, Plain* visits) {
      hearth_pthreadpool_parallelize_2d(pool, &Plain::task<size_t, size_t>, visits, m, n, 0);
    });
    check<2, 0>({m, n}, {}, [&](pthreadpool_t pool, Plain* visits) {
      hearth_pthreadpool_parallelize_2d_with_thread(pool, &Plain::taskWithThread<size_t, size_t>,
                                                    visits, m, n, 0);
    });
    using Tile1 = Visits<2, 1>;
    check<2, 1>({m, n}, {4}, [&](pthreadpool_t pool, Tile1* visits) {
      hearth_pthreadpool_parallelize_2d_tile_1d(pool, &Tile1::task<size_t, size_t, size_t>, visits,
                                                m, n, 4, 0);
    });
    using Tile2 = Visits<2, 2>;
    check<2, 2>({m, n}, {3, 4}, [&](pthreadpool_t pool, Tile2* visits) {
      hearth_pthreadpool_parallelize_2d_tile_2d(pool, &Tile2::task<size_t, size_t, size_t, size_t>,
                                                visits, m, n, 3, 4, 0);
    });
  }
}

TEST_P(PthreadpoolFunctions, ThreeDimensions) {
  using Plain = Visits<3, 0>;
  check<3, 0>({5, 3, 11}, {}, [](pthreadpool_t pool, Plain* visits) {
    hearth_pthreadpool_parallelize_3d(pool, &Plain::task<size_t, size_t, size_t>, visits, 5, 3, 11,
                                      0);
  });
  using Tile1 = Visits<3, 1>;
  check<3, 1>({5, 3, 11}, {4}, [](pthreadpool_t pool, Tile1* visits) {
    hearth_pthreadpool_parallelize_3d_tile_1d(pool, &Tile1::task<size_t, size_t, size_t, size_t>,
                                              visits, 5, 3, 11, 4, 0);
  });
  check<3, 1>({5, 3, 11}, {4}, [](pthreadpool_t pool, Tile1* visits) {
    hearth_pthreadpool_parallelize_3d_tile_1d_with_thread(
        pool, &Tile1::taskWithThread<size_t, size_t, size_t, size_t>, visits, 5, 3, 11, 4, 0);
  });
  using Tile2 = Visits<3, 2>;
  check<3, 2>({5, 7, 11}, {2, 4}, [](pthreadpool_t pool, Tile2* visits) {
    hearth_pthreadpool_parallelize_3d_tile_2d(
        pool, &Tile2::task<size_t, size_t, size_t, size_t, size_t>, visits, 5, 7, 11, 2, 4, 0);
  });
}

TEST_P(PthreadpoolFunctions, FourToSixDimensions) {
  using Four = Visits<4, 0>;
  check<4, 0>({2, 5, 3, 7}, {}, [](pthreadpool_t pool, Four* visits) {
    hearth_pthreadpool_parallelize_4d(pool, &Four::task<size_t, size_t, size_t, size_t>, visits, 2,
                                      5, 3, 7, 0);
  });
  using Four2 = Visits<4, 2>;
  check<4, 2>({2, 3, 5, 7}, {2, 3}, [](pthreadpool_t pool, Four2* visits) {
    hearth_pthreadpool_parallelize_4d_tile_2d(
        pool, &Four2::task<size_t, size_t, size_t, size_t, size_t, size_t>, visits, 2, 3, 5, 7, 2,
        3, 0);
  });
  using Five = Visits<5, 0>;
  check<5, 0>({2, 1, 3, 2, 5}, {}, [](pthreadpool_t pool, Five* visits) {
    hearth_pthreadpool_parallelize_5d(pool, &Five::task<size_t, size_t, size_t, size_t, size_t>,
                                      visits, 2, 1, 3, 2, 5, 0);
  });
  using Five2 = Visits<5, 2>;
  check<5, 2>({2, 1, 3, 4, 5}, {3, 2}, [](pthreadpool_t pool, Five2* visits) {
    hearth_pthreadpool_parallelize_5d_tile_2d(
        pool, &Five2::task<size_t, size_t, size_t, size_t, size_t, size_t, size_t>, visits, 2, 1, 3,
        4, 5, 3, 2, 0);
  });
  using Six2 = Visits<6, 2>;
  check<6, 2>({2, 3, 1, 2, 5, 3}, {2, 2}, [](pthreadpool_t pool, Six2* visits) {
    hearth_pthreadpool_parallelize_6d_tile_2d(
        pool, &Six2::task<size_t, size_t, size_t, size_t, size_t, size_t, size_t, size_t>, visits,
        2, 3, 1, 2, 5, 3, 2, 2, 0);
  });
}

TEST_P(PthreadpoolFunctions, KindsOfCores) {
  using Two1 = Visits<2, 1>;
  check<2, 1>({7, 11}, {4}, [](pthreadpool_t pool, Two1* visits) {
    hearth_pthreadpool_parallelize_2d_tile_1d_with_uarch(
        pool, &Two1::taskOnCore<size_t, size_t, size_t>, visits, Two1::kFallback, Two1::kGreatest,
        7, 11, 4, 0);
  });
  using Two2 = Visits<2, 2>;
  check<2, 2>({7, 11}, {2, 4}, [](pthreadpool_t pool, Two2* visits) {
    hearth_pthreadpool_parallelize_2d_tile_2d_with_uarch(
        pool, &Two2::taskOnCore<size_t, size_t, size_t, size_t>, visits, Two2::kFallback,
        Two2::kGreatest, 7, 11, 2, 4, 0);
  });
  using Three1 = Visits<3, 1>;
  check<3, 1>({5, 3, 11}, {4}, [](pthreadpool_t pool, Three1* visits) {
    hearth_pthreadpool_parallelize_3d_tile_1d_with_uarch(
        pool, &Three1::taskOnCore<size_t, size_t, size_t, size_t>, visits, Three1::kFallback,
        Three1::kGreatest, 5, 3, 11, 4, 0);
  });
  check<3, 1>({5, 3, 11}, {4}, [](pthreadpool_t pool, Three1* visits) {
    hearth_pthreadpool_parallelize_3d_tile_1d_with_uarch_with_thread(
        pool, &Three1::taskOnCoreWithThread<size_t, size_t, size_t, size_t>, visits,
        Three1::kFallback, Three1::kGreatest, 5, 3, 11, 4, 0);
  });
  using Three2 = Visits<3, 2>;
  check<3, 2>({5, 7, 11}, {2, 4}, [](pthreadpool_t pool, Three2* visits) {
    hearth_pthreadpool_parallelize_3d_tile_2d_with_uarch(
        pool, &Three2::taskOnCore<size_t, size_t, size_t, size_t, size_t>, visits,
        Three2::kFallback, Three2::kGreatest, 5, 7, 11, 2, 4, 0);
  });
  using Four2 = Visits<4, 2>;
  check<4, 2>({2, 3, 5, 7}, {2, 3}, [](pthreadpool_t pool, Four2* visits) {
    hearth_pthreadpool_parallelize_4d_tile_2d_with_uarch(
        pool, &Four2::taskOnCore<size_t, size_t, size_t, size_t, size_t, size_t>, visits,
        Four2::kFallback, Four2::kGreatest, 2, 3, 5, 7, 2, 3, 0);
  });
}

INSTANTIATE_TEST_SUITE_P(Threads, PthreadpoolFunctions, testing::Values(0, 1, 2, 3, 4));

}  // namespace
}  // namespace hearth::threads
