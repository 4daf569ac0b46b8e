// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontends/tflite/testing/import_testing.h"

namespace hearth::tflite {
namespace {

TEST(LookupTranslators, Rows) {
  FloatModel model({{5, 2}}, {{3, 2}, {3, 2}});
  const int32_t indices = model.addTensor(TensorType::INT32, {3});
  model.setArguments({0, indices}, {1, 2});
  model.addOperator(BuiltinOperator::GATHER, {0, indices}, {1}, schema::GatherOptionsT());
  model.addOperator(BuiltinOperator::EMBEDDING_LOOKUP, {indices, 0}, {2});
  EXPECT_THAT(translate(model),
              ElementsAre("GATHER t0 0 t3 -> t1", "EMBEDDING_LOOKUP t3 t0 -> t2"));
  schema::GatherOptionsT batched;
  batched.axis = 1;
  batched.batch_dims = 1;
  model.subgraph().operators[0]->builtin_options.Set(batched);
  EXPECT_THAT(translate(model),
              ElementsAre("GATHER t0 1 t3 1 -> t1", "EMBEDDING_LOOKUP t3 t0 -> t2"));
}

TEST(LookupTranslators, HashesAndTables) {
  FloatModel model({{3, 2}, {4, 2}}, {{2, 2}});
  const int32_t lookups = model.addTensor(TensorType::INT32, {2});
  const int32_t keys = model.addTensor(TensorType::INT32, {4});
  const int32_t hits = model.addTensor(TensorType::UINT8, {2});
  const int32_t bits = model.addTensor(TensorType::INT32, {3});
  model.addOperator(BuiltinOperator::HASHTABLE_LOOKUP, {lookups, keys, 1}, {2, hits});
  schema::LSHProjectionOptionsT options;
  options.type = schema::LSHProjectionType::SPARSE;
  model.addOperator(BuiltinOperator::LSH_PROJECTION, {0, 1}, {bits}, options);
  model.setArguments({0, 1, lookups, keys}, {2, hits, bits});
  EXPECT_THAT(translate(model),
              ElementsAre("HASHTABLE_LOOKUP t3 t4 t1 -> t2 t5", "LSH_PROJECTION t0 t1 - 3 -> t6"));
}

TEST(LookupTranslators, Buckets) {
  FloatModel model({{3}}, {});
  const int32_t buckets = model.addTensor(TensorType::INT32, {3});
  schema::BucketizeOptionsT options;
  model.addOperator(BuiltinOperator::BUCKETIZE, {0}, {buckets}, options);
  model.setArguments({0}, {buckets});
  EXPECT_THAT(errorOf(model), HasSubstr("boundaries"));
  options.boundaries = {0.5f, 2};
  model.subgraph().operators[0]->builtin_options.Set(options);
  EXPECT_THAT(translate(model), ElementsAre("BUCKETIZE t0 % -> t1"));
}

TEST(LookupTranslators, DifferentElements) {
  FloatModel model({{3}}, {{3}});
  const int32_t places = model.addTensor(TensorType::INT64, {3});
  model.addOperator(BuiltinOperator::UNIQUE, {0}, {1, places});
  model.setArguments({0}, {1, places});
  EXPECT_THAT(translate(model), ElementsAre("UNIQUE t0 -> t1 t2"));
  EXPECT_EQ(import(model).model->main().operands[1].dimensions, graph::Dimensions{0});
}

TEST(LookupTranslators, SparseToDense) {
  ModelWriter model;
  const int32_t indices = model.addTensor(TensorType::INT32, {2, 2});
  const int32_t shape = model.ints({3, 4});
  const int32_t values = model.addTensor(TensorType::FLOAT32, {2});
  const int32_t rest = model.addConstant<float>(TensorType::FLOAT32, {}, {0.5f});
  const int32_t output = model.addTensor(TensorType::FLOAT32, {3, 4});
  model.addOperator(BuiltinOperator::SPARSE_TO_DENSE, {indices, shape, values, rest}, {output});
  model.setArguments({indices, values}, {output});
  EXPECT_THAT(translate(model), ElementsAre("SPARSE_TO_DENSE t0 t1 t2 t3 -> t4"));
}

}  // namespace
}  // namespace hearth::tflite
