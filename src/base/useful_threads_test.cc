// SPDX-License-Identifier: Apache-2.0
#include "base/useful_threads.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <initializer_list>

namespace hearth::base {
namespace {

namespace fs = std::filesystem;

class UsefulThreadsTest : public testing::Test {
 protected:
  UsefulThreadsTest() {
    std::string name = testing::TempDir() + "useful_threads_XXXXXX";
    if (::mkdtemp(name.data()) != nullptr) folder_ = name;
    files_ = {
        .processors = folder_ / "cpu", .ownGroup = folder_ / "own", .groups = folder_ / "cgroup"};
  }
  ~UsefulThreadsTest() override { fs::remove_all(folder_); }

  void write(const fs::path& path, const std::string& text) const {
    fs::create_directories((folder_ / path).parent_path());
    std::ofstream(folder_ / path) << text;
  }

  // The capacity of each core of a board.
  void makeBoard(std::initializer_list<int> capacities) const {
    int core = 0;
    for (const int capacity : capacities)
      write("cpu/cpu" + std::to_string(core++) + "/cpu_capacity", std::to_string(capacity) + "\n");
  }

  size_t threads(std::initializer_list<size_t> allowed) const {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const size_t core : allowed) CPU_SET(core, &set);
    return usefulThreads(set, files_);
  }

  fs::path folder_;
  ProcessorFiles files_;
};

TEST_F(UsefulThreadsTest, MachinesThatTellNothingUseAllProcessors) {
  EXPECT_EQ(threads({0, 1, 2, 3}), 4u);
  EXPECT_EQ(threads({5}), 1u);
  EXPECT_EQ(threads({}), 1u);
}

TEST_F(UsefulThreadsTest, LittleCoresAreLeftToOthers) {
  // RK3588: four Cortex-A55 and four A76.
  makeBoard({397, 397, 397, 397, 1024, 1024, 1024, 1024});
  EXPECT_EQ(threads({0, 1, 2, 3, 4, 5, 6, 7}), 4u);
  EXPECT_EQ(threads({2, 3, 4}), 1u);
  // What may use only little cores uses them.
  EXPECT_EQ(threads({0, 1, 2}), 3u);
}

TEST_F(UsefulThreadsTest, MiddleCoresCount) {
  // One fast core, three with most of its capacity, four little ones.
  makeBoard({250, 250, 250, 250, 871, 871, 871, 1024});
  EXPECT_EQ(threads({0, 1, 2, 3, 4, 5, 6, 7}), 4u);
  makeBoard({512, 511, 1024});
  EXPECT_EQ(threads({0, 1, 2}), 2u);
}

TEST_F(UsefulThreadsTest, ACoreThatTellsNothingMakesAllAlike) {
  makeBoard({397, 1024});
  EXPECT_EQ(threads({0, 1, 2}), 3u);
  write("cpu/cpu2/cpu_capacity", "much\n");
  EXPECT_EQ(threads({0, 1, 2}), 3u);
}

TEST_F(UsefulThreadsTest, QuotasOfAllGroupsAroundCount) {
  write("own", "0::/machine/payload\n");
  EXPECT_EQ(threads({0, 1, 2, 3}), 4u);
  write("cgroup/machine/payload/cpu.max", "max 100000\n");
  EXPECT_EQ(threads({0, 1, 2, 3}), 4u);
  write("cgroup/machine/cpu.max", "250000 100000\n");
  EXPECT_EQ(threads({0, 1, 2, 3}), 3u);
  EXPECT_EQ(threads({0, 1}), 2u);
  write("cgroup/machine/payload/cpu.max", "50000 100000\n");
  EXPECT_EQ(threads({0, 1, 2, 3}), 1u);
  // A container sees its own group as the root.
  write("own", "12:cpu,cpuacct:/old\n0::/\n");
  EXPECT_EQ(threads({0, 1, 2, 3}), 4u);
  write("cgroup/cpu.max", "200000 100000\n");
  EXPECT_EQ(threads({0, 1, 2, 3}), 2u);
}

TEST_F(UsefulThreadsTest, NonsenseRestrictsNothing) {
  for (const char* own : {"", "0::", "0::relative\n", "1:cpu:/\n"}) {
    write("own", own);
    EXPECT_EQ(threads({0, 1}), 2u) << own;
  }
  write("own", "0::/\n");
  for (const char* quota : {"", "max", "100000", "100000 0", "-5 100000", "x y"}) {
    write("cgroup/cpu.max", quota);
    EXPECT_EQ(threads({0, 1}), 2u) << quota;
  }
  write("cgroup/cpu.max", "0 100000");
  EXPECT_EQ(threads({0, 1}), 1u);
}

}  // namespace
}  // namespace hearth::base
