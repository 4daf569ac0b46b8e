// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/kernels/panel_blocks.h"

#include <gtest/gtest.h>

namespace hearth::cpu {
namespace {

TEST(PanelBlocksTest, OneThreadNeedsNoMoreThanTheCacheDoes) {
  EXPECT_EQ(panelBlocks(100, 0, 1, 1, 16), 1u);
  EXPECT_EQ(panelBlocks(100, 7, 3, 1, 16), 7u);
}

TEST(PanelBlocksTest, SeveralThreadsGetTasks) {
  EXPECT_EQ(panelBlocks(100, 1, 1, 2, 16), 32u);
  EXPECT_EQ(panelBlocks(100, 1, 5, 2, 16), 7u);
  EXPECT_EQ(panelBlocks(100, 9, 5, 2, 16), 9u);
}

TEST(PanelBlocksTest, EachBlockHasAPanel) {
  EXPECT_EQ(panelBlocks(5, 1, 1, 4, 16), 5u);
  EXPECT_EQ(panelBlocks(5, 80, 9, 1, 16), 5u);
}

}  // namespace
}  // namespace hearth::cpu
