// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "drivers/cpu/testing/compared_models.h"

namespace hearth::cpu {
namespace {

struct MatmulCase {
  Dimensions left, right, product;
  bool isRightTransposed;
  const char* kernel = "xnnpack";
};

class BatchMatmulTest : public testing::TestWithParam<MatmulCase> {};

TEST_P(BatchMatmulTest, EqualsTheReference) {
  const MatmulCase& c = GetParam();
  ModelBuilder builder;
  const uint32_t left = builder.input(kFloat, c.left);
  const uint32_t right = builder.input(kFloat, c.right);
  builder.operation(OperationType::kBatchMatmul,
                    {left, right, builder.scalar(false), builder.scalar(c.isRightTransposed)},
                    {builder.output(kFloat, c.product)});
  EXPECT_EQ(differenceFromReference(builder.model(), {floatsFor(c.left, 1), floatsFor(c.right, 2)},
                                    c.kernel, 1e-6f),
            "");
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, BatchMatmulTest,
    testing::Values(MatmulCase{{5, 7}, {7, 3}, {5, 3}, false},
                    MatmulCase{{5, 7}, {3, 7}, {5, 3}, true},
                    MatmulCase{{4, 17, 33}, {4, 33, 21}, {4, 17, 21}, false},
                    MatmulCase{{2, 3, 17, 64}, {2, 3, 40, 64}, {2, 3, 17, 40}, true},
                    MatmulCase{{2, 3, 5, 8}, {1, 1, 8, 6}, {2, 3, 5, 6}, false},
                    MatmulCase{{2, 3, 5, 8}, {8, 6}, {2, 3, 5, 6}, false},
                    MatmulCase{{2, 3, 5, 8}, {2, 1, 6, 8}, {2, 3, 5, 6}, true},
                    MatmulCase{{1, 3, 5, 8}, {2, 1, 6, 8}, {2, 3, 5, 6}, true, "reference"},
                    MatmulCase{{1, 1, 1}, {1, 1, 1}, {1, 1, 1}, false},
                    // Of more rows than one thread multiplies, and depths beside groups of four.
                    MatmulCase{{98, 7}, {7, 3}, {98, 3}, false},
                    MatmulCase{{2, 98, 7}, {2, 3, 7}, {2, 98, 3}, true},
                    MatmulCase{{3, 98, 6}, {1, 6, 17}, {3, 98, 17}, false}));

}  // namespace
}  // namespace hearth::cpu
