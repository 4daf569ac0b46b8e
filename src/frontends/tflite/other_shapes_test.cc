// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite/other_shapes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>
#include <string>
#include <utility>

#include "frontends/tflite/testing/import_testing.h"

namespace hearth::tflite {
namespace {

using graph::Dimensions;

// The mean of the rows of [1, 4]; -1 in the signature is a dimension that the file leaves open.
ImportedGraph meanOfRows(ModelWriter::Shape signature) {
  ModelWriter model;
  const int32_t rows = model.addTensor(TensorType::FLOAT32, {1, 4});
  model.tensor(rows).shape_signature = std::move(signature);
  const int32_t mean = model.addTensor(TensorType::FLOAT32, {4});
  model.addOperator(BuiltinOperator::MEAN, {rows, model.ints({0})}, {mean},
                    schema::ReducerOptionsT());
  model.setArguments({rows}, {mean});
  const auto file = ModelFile::fromPool(poolOf(model.write()));
  return *(*file)->importSubgraph(0, Shapes::kOpen);
}

// What becomes of it with these rows: the shapes of input and output, or why that cannot be.
std::string followed(ModelWriter::Shape signature, const Dimensions& rows) {
  ImportedGraph graph = meanOfRows(std::move(signature));
  const Status status = followShapes(std::span(&rows, 1), &graph);
  if (!status) return status.error().toString();
  return graph::describeDimensions(graph.inputs[0].dimensions) + " -> " +
         graph::describeDimensions(graph.outputs[0].dimensions);
}

TEST(OtherShapes, FillInWhatTheFileLeavesOpen) {
  EXPECT_EQ(followed({-1, 4}, {3, 4}), "[3,4] -> [4]");
}

// A larger batch is several of one where the file says one, and their mean is another.
TEST(OtherShapes, MayNotMixWhatTheFileSays) {
  EXPECT_THAT(followed({1, 4}, {3, 4}), HasSubstr("may mix"));
  EXPECT_THAT(followed({-1, 4}, {3, 5}), HasSubstr("may mix"));
}

}  // namespace
}  // namespace hearth::tflite
