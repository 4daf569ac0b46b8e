// SPDX-License-Identifier: Apache-2.0
// Operators of a program for built-in operations, and functions that find its operators.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "frontends/tflite/testing/model_writer.h"
#include "frontends/tflite_c/declarations.h"
#include "frontends/tflite_c/testing/library.h"

namespace hearth::tflite_c::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using tflite::ModelWriter;
using tflite::schema::BuiltinOperator;
using tflite::schema::TensorType;

constexpr int kAddCode = 0;
constexpr int kSoftmaxCode = 25;
constexpr int kCustomCode = 32;
constexpr int kNegCode = 59;

// -x + [1, 2, 3], and a custom operation behind it if it has a name.
std::vector<uint8_t> modelWith(const std::string& custom = {}) {
  ModelWriter model;
  const int32_t input = model.addTensor(TensorType::FLOAT32, {3});
  const int32_t addend = model.addConstant<float>(TensorType::FLOAT32, {3}, {1, 2, 3});
  const int32_t one = model.addTensor(TensorType::FLOAT32, {3});
  int32_t output = model.addTensor(TensorType::FLOAT32, {3});
  model.addOperator(BuiltinOperator::NEG, {input}, {one});
  model.addOperator(BuiltinOperator::ADD, {one, addend}, {output}, tflite::schema::AddOptionsT());
  if (!custom.empty()) {
    const int32_t last = model.addTensor(TensorType::FLOAT32, {3});
    model.addCustom(custom, {output}, {last}, {9});
    output = last;
  }
  model.setArguments({input}, {output});
  return model.write();
}

int invocations = 0;

TfLiteStatus prepareSame(TfLiteContext* context, TfLiteNode* node) {
  const auto copy = function<TfLiteIntArray*(const TfLiteIntArray*)>("TfLiteIntArrayCopy");
  return context->ResizeTensor(context, &context->tensors[node->outputs->data[0]],
                               copy(context->tensors[node->inputs->data[0]].dims));
}

// Ten more than the input.
TfLiteStatus addTen(TfLiteContext* context, TfLiteNode* node) {
  ++invocations;
  const TfLiteTensor& input = context->tensors[node->inputs->data[0]];
  for (size_t i = 0; i < input.bytes / sizeof(float); ++i)
    static_cast<float*>(context->tensors[node->outputs->data[0]].data)[i] =
        static_cast<const float*>(input.data)[i] + 10;
  return kTfLiteOk;
}

TfLiteRegistration tenMore() {
  TfLiteRegistration registration{};
  registration.prepare = prepareSame;
  registration.invoke = addTen;
  registration.version = 1;
  return registration;
}

// Of a built-in operation `buffer` is its parameters, and has no length.
void* initParameters(TfLiteContext* /*context*/, const char* buffer, size_t length) {
  return new int(buffer == nullptr ? -1 : static_cast<int>(length));
}
void freeParameters(TfLiteContext* /*context*/, void* state) {
  delete static_cast<int*>(state);
}

std::vector<float> run(Program* program, const std::vector<float>& values) {
  EXPECT_EQ(program->allocate(), kOk) << program->messages();
  EXPECT_EQ(program->copyIn(program->input(0), values.data(), values.size() * sizeof(float)), kOk);
  EXPECT_EQ(program->invoke(), kOk) << program->messages();
  const TensorStruct& output = *program->output(0);
  const auto* const data = static_cast<const float*>(output.data);
  return {data, data + output.bytes / sizeof(float)};
}

void addBuiltin(Program* program, int code, const TfLiteRegistration& registration, int first = 1,
                int last = 1) {
  function<void(void*, int, const TfLiteRegistration*, int, int)>(
      "TfLiteInterpreterOptionsAddBuiltinOp")(program->options(), code, &registration, first, last);
}

bool createSelected(Program* program, void** interpreter) {
  *interpreter = function<void*(const void*, const void*)>(
      "TfLiteInterpreterCreateWithSelectedOps")(program->model(), program->options());
  return *interpreter != nullptr;
}

TEST(ProgramResolver, BuiltinOperationsAreThePrograms) {
  invocations = 0;
  Program program(modelWith());
  TfLiteRegistration registration = tenMore();
  registration.init = initParameters;
  registration.free = freeParameters;
  addBuiltin(&program, kNegCode, registration);
  // Of another version, and without invoke: Hearth computes it.
  addBuiltin(&program, kAddCode, registration, 7, 9);
  addBuiltin(&program, kSoftmaxCode, {});
  ASSERT_TRUE(program.create()) << program.messages();
  EXPECT_THAT(run(&program, {1, 2, 3}), ElementsAre(12, 14, 16));
  EXPECT_EQ(invocations, 1);
}

TEST(ProgramResolver, OpaqueOperatorsComputeBuiltinOperations) {
  invocations = 0;
  Program program(modelWith());
  TfLiteOperator* const custom = function<TfLiteOperator*(int, const char*, int)>(
      "TfLiteOperatorCreate")(kNegCode, nullptr, 1);
  function<void(TfLiteOperator*, TfLiteOperatorStep)>("TfLiteOperatorSetPrepare")(custom,
                                                                                  prepareSame);
  function<void(TfLiteOperator*, TfLiteOperatorStep)>("TfLiteOperatorSetInvoke")(custom, addTen);
  function<void(void*, TfLiteOperator*)>("TfLiteInterpreterOptionsAddOperator")(program.options(),
                                                                                custom);
  ASSERT_TRUE(program.create()) << program.messages();
  EXPECT_THAT(run(&program, {1, 2, 3}), ElementsAre(12, 14, 16));
  EXPECT_EQ(invocations, 1);
  function<void(TfLiteOperator*)>("TfLiteOperatorDelete")(custom);
}

TEST(ProgramResolver, SelectedOperationsAreAllThereAre) {
  void* interpreter = nullptr;
  Program nothing(modelWith());
  EXPECT_FALSE(createSelected(&nothing, &interpreter));
  EXPECT_THAT(nothing.messages(), HasSubstr("Didn't find op for builtin opcode 'NEG'"));
  Program one(modelWith());
  addBuiltin(&one, kNegCode, tenMore());
  EXPECT_FALSE(createSelected(&one, &interpreter));
  EXPECT_THAT(one.messages(), HasSubstr("Didn't find op for builtin opcode 'ADD'"));
  Program both(modelWith());
  addBuiltin(&both, kNegCode, tenMore());
  addBuiltin(&both, kAddCode, tenMore());
  ASSERT_TRUE(createSelected(&both, &interpreter)) << both.messages();
  EXPECT_EQ(function<int(void*)>("TfLiteInterpreterAllocateTensors")(interpreter), kOk)
      << both.messages();
  function<void(void*)>("TfLiteInterpreterDelete")(interpreter);
}

// What a program's functions were asked for.
struct Questions {
  std::vector<int> codes;
  std::vector<std::string> names;
  bool knowsAdd = true;
  TfLiteRegistration registration = tenMore();
  TfLiteOperator* custom = nullptr;
};

const TfLiteRegistration* findBuiltin(void* user, int32_t code, int /*version*/) {
  auto& questions = *static_cast<Questions*>(user);
  questions.codes.push_back(code);
  return code == kAddCode && !questions.knowsAdd ? nullptr : &questions.registration;
}

const TfLiteRegistration* findCustom(void* user, const char* name, int /*version*/) {
  auto& questions = *static_cast<Questions*>(user);
  questions.names.emplace_back(name);
  return &questions.registration;
}

TEST(ProgramResolver, FunctionsFindOperators) {
  for (const char* name :
       {"TfLiteInterpreterOptionsSetOpResolver", "TfLiteInterpreterOptionsSetOpResolverV1",
        "TfLiteInterpreterOptionsSetOpResolverV2", "TfLiteInterpreterOptionsSetOpResolverV3"}) {
    SCOPED_TRACE(name);
    Questions questions;
    Program program(modelWith("Tfc_Found"));
    const auto set = function<void(void*, TfLiteFindBuiltinOp, TfLiteFindCustomOp, void*)>(name);
    set(program.options(), findBuiltin, findCustom, &questions);
    ASSERT_TRUE(program.create()) << program.messages();
    EXPECT_THAT(questions.codes, ElementsAre(kNegCode, kAddCode));
    EXPECT_THAT(questions.names, ElementsAre("Tfc_Found"));
    EXPECT_THAT(run(&program, {1, 2, 3}), ElementsAre(31, 32, 33));
    // What they do not find is not there.
    questions.knowsAdd = false;
    Program lacking(modelWith());
    set(lacking.options(), findBuiltin, findCustom, &questions);
    EXPECT_FALSE(lacking.create());
    EXPECT_THAT(lacking.messages(), HasSubstr("builtin opcode 'ADD'"));
  }
}

TEST(ProgramResolver, FunctionsFindOpaqueOperatorsFirst) {
  Questions questions;
  questions.custom = function<TfLiteOperator*(int, const char*, int)>("TfLiteOperatorCreate")(
      kCustomCode, "Tfc_Opaque", 1);
  function<void(TfLiteOperator*, TfLiteOperatorStep)>("TfLiteOperatorSetPrepare")(questions.custom,
                                                                                  prepareSame);
  function<void(TfLiteOperator*, TfLiteOperatorStep)>("TfLiteOperatorSetInvoke")(questions.custom,
                                                                                 addTen);
  {
    Program program(modelWith("Tfc_Opaque"));
    function<void(void*, TfLiteFindBuiltinOperator, TfLiteFindCustomOperator, TfLiteFindBuiltinOp,
                  TfLiteFindCustomOp, void*)>(
        "TfLiteInterpreterOptionsSetOpResolverExternalWithFallback")(
        program.options(), nullptr,
        [](void* user, const char*, int) -> const TfLiteOperator* {
          return static_cast<Questions*>(user)->custom;
        },
        findBuiltin, findCustom, &questions);
    ASSERT_TRUE(program.create()) << program.messages();
    EXPECT_TRUE(questions.names.empty());
    EXPECT_THAT(run(&program, {1, 2, 3}), ElementsAre(31, 32, 33));
  }
  function<void(TfLiteOperator*)>("TfLiteOperatorDelete")(questions.custom);
}

}  // namespace
}  // namespace hearth::tflite_c::testing
