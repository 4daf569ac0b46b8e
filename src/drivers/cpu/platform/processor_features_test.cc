// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/platform/processor_features.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "cache/testing/store_test_util.h"

namespace hearth::cpu {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(ProcessorFeaturesTest, NamesAreSortedAndThereOnce) {
  const std::vector<std::string> features = cpuFeatures();
  EXPECT_TRUE(std::ranges::is_sorted(features, std::ranges::less_equal()));
}

// The bits are those of the processors in Linux's interface.
TEST(ProcessorFeaturesTest, ReadsTheAuxiliaryVectorOfBoards) {
  EXPECT_THAT(arm64Features(0, 0), IsEmpty());
  // Cortex-A53: fp, asimd, evtstrm, aes, pmull, sha1, sha2, crc32, cpuid.
  EXPECT_THAT(arm64Features(0x8ff, 0), IsEmpty());
  // Cortex-A76: also atomics, fphp, asimdhp, asimdrdm, lrcpc, dcpop, asimddp.
  EXPECT_THAT(arm64Features(0x119fff, 0), ElementsAre("dotprod", "fp16", "rdm"));
  // Neoverse V1: also sve, asimdfhm; svei8mm, svebf16, i8mm, bf16.
  EXPECT_THAT(arm64Features(0xd19fff, 0x7200),
              ElementsAre("bf16", "dotprod", "fp16", "fp16fml", "i8mm", "rdm", "sve"));
  EXPECT_THAT(arm64Features(0, uint64_t{1} << 37 | 1 << 23 | 1 << 1),
              ElementsAre("sme", "sme2", "sve2"));
}

class CoreKindsTest : public testing::Test {
 protected:
  void addCore(int number, const std::string& text) {
    const std::filesystem::path at =
        folder_.path() / ("cpu" + std::to_string(number)) / "regs/identification";
    std::filesystem::create_directories(at);
    std::ofstream(at / "midr_el1") << text;
  }

  const cache::TempFolder folder_{cache::TempFolder::Place::kMemory};
};

TEST_F(CoreKindsTest, BigAndLittleCoresAreTwoKinds) {
  EXPECT_THAT(arm64CoreKinds(folder_.path()), IsEmpty());
  // Cortex-A76 first, as no machine numbers them, to see that they are sorted; core 2 is offline.
  for (const int core : {0, 1}) addCore(core, "0x00000000414fd0b0\n");
  for (const int core : {3, 4, 5}) addCore(core, "0x00000000412fd050\n");
  EXPECT_THAT(arm64CoreKinds(folder_.path()), ElementsAre(0x412fd050, 0x414fd0b0));
}

TEST_F(CoreKindsTest, NonsenseIsPassedOver) {
  addCore(0, "");
  addCore(1, "0x");
  addCore(2, "414fd0b0\n");
  addCore(3, "0xzz");
  EXPECT_THAT(arm64CoreKinds(folder_.path()), IsEmpty());
}

}  // namespace
}  // namespace hearth::cpu
