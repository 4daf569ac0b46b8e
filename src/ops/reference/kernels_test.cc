// SPDX-License-Identifier: Apache-2.0
#include "ops/reference/kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace hearth::ops::reference {
namespace {

bool isControlFlow(OperationType type) {
  return type == OperationType::kIf || type == OperationType::kWhile;
}

// A new operation without a reference kernel, and one that loses its kernel, must be added here.
TEST(ReferenceKernelsTest, OperationsWithoutReferenceKernel) {
  std::vector<std::string> names;
  for (const OperationType type : sharedOperations()) names.emplace_back(graph::nameOf(type));
  std::ranges::sort(names);
  EXPECT_EQ(names, (std::vector<std::string>{
                       "AXIS_ALIGNED_BBOX_TRANSFORM",
                       "BOX_WITH_NMS_LIMIT",
                       "CUSTOM",
                       "DETECTION_POSTPROCESSING",
                       "GENERATE_PROPOSALS",
                       "HASHTABLE_FIND",
                       "HEATMAP_MAX_KEYPOINT",
                       "LSH_PROJECTION",
                       "MULTINOMIAL",
                       "NGRAMS",
                       "QUANTIZED_16BIT_LSTM",
                       "QUANTIZED_LSTM",
                       "QUANTIZED_SEQUENCE_LSTM",
                       "RAGGED_TENSOR_TO_TENSOR",
                       "RANDOM_MULTINOMIAL",
                       "RANDOM_STANDARD_NORMAL",
                       "RANDOM_UNIFORM",
                       "STRING_CONSTANT",
                       "WHITESPACE_TOKENIZER",
                   }));
}

TEST(ReferenceKernelsTest, AllOtherOperationsHaveAReferenceKernel) {
  const auto shared = sharedOperations();
  for (const OperationDefinition* definition : allOperations()) {
    const bool isShared = std::ranges::find(shared, definition->type) != shared.end();
    EXPECT_EQ(findKernel(definition->type) == nullptr, isShared || isControlFlow(definition->type))
        << graph::nameOf(definition->type);
  }
}

}  // namespace
}  // namespace hearth::ops::reference
