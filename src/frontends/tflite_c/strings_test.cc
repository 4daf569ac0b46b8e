// SPDX-License-Identifier: Apache-2.0
// Tensors of strings, for a program that opens the library.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "frontends/tflite/testing/model_writer.h"
#include "frontends/tflite_c/testing/library.h"
#include "memory/packed_strings.h"

namespace hearth::tflite_c::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using tflite::ModelWriter;
using tflite::schema::BuiltinOperator;
using tflite::schema::TensorType;

// [2] -> each is "yes"; and its words, with an open dimension.
ModelWriter textModel() {
  ModelWriter model;
  const int32_t input = model.addTensor(TensorType::STRING, {2});
  const int32_t isYes = model.addTensor(TensorType::BOOL, {2});
  model.addOperator(BuiltinOperator::EQUAL, {input, model.addStrings({1}, {"yes"})}, {isYes});
  const int32_t column = model.addTensor(TensorType::STRING, {2, 1});
  model.addOperator(BuiltinOperator::RESHAPE, {input, model.ints({2, 1})}, {column});
  const int32_t words = model.addTensor(TensorType::STRING, {2, 1});
  model.addCustom("tftext:WhitespaceTokenizer", {input}, {words});
  model.setArguments({input}, {isYes, column, words});
  return model;
}

int realloc(size_t bytes, TensorStruct* tensor) {
  return function<int(size_t, TensorStruct*)>("TfLiteTensorRealloc")(bytes, tensor);
}

int setBytes(Program* program, const std::vector<uint8_t>& bytes) {
  TensorStruct* const input = program->input(0);
  EXPECT_EQ(realloc(bytes.size(), input), kOk);
  std::memcpy(input->data, bytes.data(), bytes.size());
  return program->invoke();
}

int runWith(Program* program, const std::vector<std::string_view>& texts) {
  return setBytes(program, *memory::packStrings(texts));
}

std::vector<std::string> stringsOf(const TensorStruct& tensor) {
  const auto packed =
      memory::PackedStrings::of({static_cast<const uint8_t*>(tensor.data), tensor.bytes}).value();
  std::vector<std::string> strings;
  for (size_t i = 0; i < packed.count(); ++i) strings.emplace_back(packed[i]);
  return strings;
}

std::vector<int> shapeOf(const TensorStruct& tensor) {
  return {tensor.dims->data, tensor.dims->data + tensor.dims->size};
}

TEST(StringTensors, AreWrittenAndRead) {
  Program program(textModel().write());
  ASSERT_TRUE(program.create()) << program.messages();
  ASSERT_EQ(program.allocate(), kOk) << program.messages();
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(runWith(&program, {"no way", "yes"}), kOk) << program.messages();
    EXPECT_EQ(static_cast<const uint8_t*>(program.output(0)->data)[0], 0);
    EXPECT_EQ(static_cast<const uint8_t*>(program.output(0)->data)[1], 1);
    EXPECT_THAT(stringsOf(*program.output(1)), ElementsAre("no way", "yes"));
    EXPECT_THAT(stringsOf(*program.output(2)), ElementsAre("no", "way", "yes", ""));
    EXPECT_THAT(shapeOf(*program.output(2)), ElementsAre(2, 2));
    ASSERT_EQ(runWith(&program, {"", std::string_view("a\0b", 3)}), kOk) << program.messages();
    EXPECT_THAT(stringsOf(*program.output(1)), ElementsAre("", std::string("a\0b", 3)));
    EXPECT_THAT(shapeOf(*program.output(2)), ElementsAre(2, 1));
  }
}

TEST(StringTensors, TakeOtherShapes) {
  Program program(textModel().write());
  ASSERT_TRUE(program.create()) << program.messages();
  ASSERT_EQ(program.allocate(), kOk) << program.messages();
  ASSERT_EQ(runWith(&program, {"a", "b"}), kOk) << program.messages();
  ASSERT_EQ(program.resize(0, {2}), kOk);
  ASSERT_EQ(program.allocate(), kOk);
  ASSERT_EQ(runWith(&program, {"a", "c"}), kOk) << program.messages();
  EXPECT_THAT(stringsOf(*program.output(1)), ElementsAre("a", "c"));
}

TEST(StringTensors, BytesThatAreNoStringsAreErrors) {
  Program program(textModel().write());
  ASSERT_TRUE(program.create()) << program.messages();
  ASSERT_EQ(program.allocate(), kOk) << program.messages();
  EXPECT_EQ(program.invoke(), kError);
  EXPECT_THAT(program.messages(), HasSubstr("has 2 elements and holds 0 strings"));
  EXPECT_EQ(runWith(&program, {"a", "b", "c"}), kError);
  EXPECT_THAT(program.messages(), HasSubstr("has 2 elements and holds 3 strings"));
  EXPECT_EQ(setBytes(&program, {255, 255, 255, 127, 8, 0, 0, 0}), kError);
  EXPECT_THAT(program.messages(), HasSubstr("holds no strings"));
  EXPECT_EQ(runWith(&program, {"a", "b"}), kOk) << program.messages();
}

}  // namespace
}  // namespace hearth::tflite_c::testing
