// SPDX-License-Identifier: Apache-2.0
// What programs rely on beyond the functions' documentation: sentences, how often the reporter is
// called, and what null stands for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "frontends/tflite/testing/model_writer.h"
#include "frontends/tflite_c/declarations.h"
#include "frontends/tflite_c/testing/library.h"

namespace hearth::tflite_c::testing {
namespace {

using ::testing::HasSubstr;
using tflite::ModelWriter;
using tflite::schema::BuiltinOperator;
using tflite::schema::TensorType;

// The sum of its inputs "x1" and "x2".
std::vector<uint8_t> sum() {
  ModelWriter model;
  const int32_t one = model.addTensor(TensorType::FLOAT32, {2});
  const int32_t two = model.addTensor(TensorType::FLOAT32, {2});
  const int32_t output = model.addTensor(TensorType::FLOAT32, {2});
  model.tensor(one).name = "x1";
  model.tensor(two).name = "x2";
  model.tensor(output).name = "Identity";
  model.addOperator(BuiltinOperator::ADD, {one, two}, {output}, tflite::schema::AddOptionsT());
  model.setArguments({one, two}, {output});
  return model.write();
}

void collect(void* user, const char* format, va_list arguments) {
  char text[1000];
  std::vsnprintf(text, sizeof(text), format, arguments);
  static_cast<std::vector<std::string>*>(user)->emplace_back(text);
}

using Reporter = void (*)(void*, const char*, va_list);

TEST(Conventions, ARunBeforeAnAllocationIsReportedInOneSentence) {
  Program program(sum());
  ASSERT_TRUE(program.create()) << program.messages();
  EXPECT_EQ(program.invoke(), kError);
  EXPECT_EQ(program.messages(), "Invoke called on model that is not ready.\n");
}

TEST(Conventions, WrongModelsAreReportedInTheOriginalsWords) {
  std::vector<std::string> messages;
  const std::vector<char> garbage(20, 'c');
  EXPECT_EQ(
      function<void*(const void*, size_t, Reporter, void*)>("TfLiteModelCreateWithErrorReporter")(
          garbage.data(), garbage.size(), collect, &messages),
      nullptr);
  EXPECT_THAT(messages, ::testing::ElementsAre("The model is not a valid Flatbuffer buffer"));
  messages.clear();
  EXPECT_EQ(function<void*(const char*, Reporter, void*)>(
                "TfLiteModelCreateFromFileWithErrorReporter")("no/such/file", collect, &messages),
            nullptr);
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_THAT(messages[0], HasSubstr("Could not open 'no/such/file'."));
}

TEST(Conventions, AMissingOperatorIsReportedBeforeTheFailedCreation) {
  Program program(sum());
  EXPECT_EQ(function<void*(const void*, const void*)>("TfLiteInterpreterCreateWithSelectedOps")(
                program.model(), program.options()),
            nullptr);
  EXPECT_THAT(program.messages(),
              HasSubstr("Didn't find op for builtin opcode 'ADD' version '1'."));
  EXPECT_EQ(std::ranges::count(program.messages(), '\n'), 2);
}

TEST(Conventions, OperatorsKeepThePointerToTheirName) {
  const char name[] = "Sinh";
  auto* const made =
      function<TfLiteOperator*(int, const char*, int)>("TfLiteOperatorCreate")(32, name, 1);
  EXPECT_EQ(function<const char*(const TfLiteOperator*)>("TfLiteOperatorGetCustomName")(made),
            static_cast<const char*>(name));
  function<void(TfLiteOperator*)>("TfLiteOperatorDelete")(made);
}

TEST(Conventions, TheSignatureWithoutAKeyIsTheModelItself) {
  Program program(sum());
  ASSERT_TRUE(program.create()) << program.messages();
  void* const runner = function<void*(const void*, const char*)>(
      "TfLiteInterpreterGetSignatureRunner")(program.interpreter(), nullptr);
  ASSERT_NE(runner, nullptr) << program.messages();
  EXPECT_EQ(function<size_t(const void*)>("TfLiteSignatureRunnerGetInputCount")(runner), 2u);
  EXPECT_STREQ(
      function<const char*(const void*, int)>("TfLiteSignatureRunnerGetInputName")(runner, 1),
      "x2");
  const auto input =
      function<TensorStruct*(void*, const char*)>("TfLiteSignatureRunnerGetInputTensor");
  EXPECT_EQ(input(runner, "x1"), program.input(0));
  EXPECT_EQ(input(runner, "x3"), nullptr);
  ASSERT_EQ(function<int(void*)>("TfLiteSignatureRunnerAllocateTensors")(runner), kOk);
  const float values[] = {1, 2};
  EXPECT_EQ(program.copyIn(input(runner, "x1"), values, sizeof(values)), kOk);
  EXPECT_EQ(program.copyIn(input(runner, "x2"), values, sizeof(values)), kOk);
  ASSERT_EQ(function<int(void*)>("TfLiteSignatureRunnerInvoke")(runner), kOk);
  const auto output = function<const TensorStruct*(const void*, const char*)>(
      "TfLiteSignatureRunnerGetOutputTensor")(runner, "Identity");
  ASSERT_NE(output, nullptr);
  EXPECT_EQ(static_cast<const float*>(output->data)[1], 4);
  function<void(void*)>("TfLiteSignatureRunnerDelete")(runner);
}

}  // namespace
}  // namespace hearth::tflite_c::testing
