// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/weights/plan_record.h"

#include <gtest/gtest.h>

namespace hearth::cpu {
namespace {

PlanOrigin origin() {
  PlanOrigin made;
  made.build.driver.fill(1);
  made.build.xnnpack.fill(2);
  made.build.packing.fill(3);
  made.build.architecture = "x86-64";
  made.build.cpuFeatures = {"avx2", "avx512vnni"};
  made.options.fill(4);
  made.pools.fill(5);
  return made;
}

TEST(PlanRecord, ComesBack) {
  PlanRecord record;
  EXPECT_TRUE(record.add(origin()));
  const PlanRecord back = PlanRecord::parse(record.encoded());
  EXPECT_FALSE(back.empty());
  EXPECT_EQ(back.difference(origin()), "");
}

TEST(PlanRecord, NamesWhatDiffers) {
  PlanRecord record;
  record.add(origin());
  PlanOrigin other = origin();
  other.pools.fill(9);
  EXPECT_EQ(record.difference(other), "model changed");
  other = origin();
  other.build.packing.fill(9);
  EXPECT_EQ(record.difference(other), "packing changed");
  other.build.cpuFeatures = {"avx2"};
  EXPECT_EQ(record.difference(other), "CPU lost avx512vnni");
  other.build.cpuFeatures = {"amx-int8", "avx2", "avx512vnni"};
  EXPECT_EQ(record.difference(other), "CPU gained amx-int8");
  other = origin();
  other.build.xnnpack.fill(9);
  EXPECT_EQ(record.difference(other), "library changed: XNNPACK");
  other = origin();
  other.build.driver.fill(9);
  EXPECT_EQ(record.difference(other), "library changed: hearth-cpu");
  other = origin();
  other.options.fill(9);
  EXPECT_EQ(record.difference(other), "options changed");
}

PlanOrigin originOnBoard() {
  PlanOrigin made = origin();
  made.build.driver.fill(6);
  made.build.packing.fill(7);
  made.build.architecture = "arm64";
  made.build.cpuFeatures = {"dotprod", "fp16"};
  return made;
}

TEST(PlanRecord, NamesTheArchitectureThatHasPackedForAnotherOne) {
  PlanRecord record;
  record.add(origin());
  EXPECT_EQ(record.difference(originOnBoard()), "packed for x86-64, not for arm64");
  const PlanRecord back = PlanRecord::parse(record.encoded());
  EXPECT_EQ(back.difference(originOnBoard()), "packed for x86-64, not for arm64");
  // Also where this machine cannot tell that it is the same model.
  PlanOrigin unknown = originOnBoard();
  unknown.pools.fill(0);
  EXPECT_EQ(record.difference(unknown), "packed for x86-64, not for arm64");

  // Both have packed: each finds its own, and hears of the model where that changed.
  record.add(originOnBoard());
  EXPECT_EQ(record.difference(originOnBoard()), "");
  EXPECT_EQ(record.difference(origin()), "");
  EXPECT_EQ(record.difference(unknown), "model changed");
  unknown.build.packing.fill(8);
  unknown.build.cpuFeatures = {"dotprod", "fp16", "i8mm"};
  EXPECT_EQ(record.difference(unknown), "CPU gained i8mm");
}

TEST(PlanRecord, OriginsWithoutAnArchitectureAreOfOlderBuilds) {
  PlanRecord record;
  PlanOrigin older = origin();
  older.build.architecture = "";
  record.add(older);
  PlanOrigin wanted = origin();
  wanted.build.driver.fill(9);
  EXPECT_EQ(record.difference(wanted), "library changed: hearth-cpu");
}

TEST(PlanRecord, KeepsTheLatest) {
  PlanRecord record;
  for (uint8_t i = 0; i < 20; ++i) {
    PlanOrigin made = origin();
    made.pools.fill(i);
    EXPECT_TRUE(record.add(made));
    EXPECT_FALSE(record.add(made));
  }
  PlanOrigin latest = origin();
  latest.pools.fill(19);
  EXPECT_EQ(record.difference(latest), "");
  PlanOrigin first = origin();
  first.pools.fill(0);
  EXPECT_EQ(record.difference(first), "model changed");
}

TEST(PlanRecord, NonsenseIsEmpty) {
  const auto parse = [](std::string_view text) {
    return PlanRecord::parse({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  };
  for (const char* text : {"", "x", "{}", "[1,null,{}]", R"([{"driver":"00"}])", "[[[[[[", "\xff"})
    EXPECT_TRUE(parse(text).empty()) << text;
}

}  // namespace
}  // namespace hearth::cpu
