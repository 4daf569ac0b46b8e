// SPDX-License-Identifier: Apache-2.0
// Tensors of strings for operators and delegates of programs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "frontends/tflite/testing/model_writer.h"
#include "frontends/tflite_c/declarations.h"
#include "frontends/tflite_c/testing/library.h"
#include "memory/packed_strings.h"

namespace hearth::tflite_c::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using tflite::ModelWriter;
using tflite::schema::BuiltinOperator;
using tflite::schema::TensorType;

// What comes before the words; the words, one of them a constant; and whether each is "b".
std::vector<uint8_t> wordsModel(const std::string& name, std::vector<int32_t> shape) {
  ModelWriter model;
  const int32_t input = model.addTensor(TensorType::STRING, {2});
  const int32_t suffix = model.addStrings({1}, {"!"});
  const int32_t copy = model.addTensor(TensorType::STRING, {2});
  const int32_t output = model.addTensor(TensorType::STRING, shape);
  const int32_t isWord = model.addTensor(TensorType::BOOL, shape);
  model.tensor(isWord).shape_signature = {-1};
  model.addOperator(BuiltinOperator::RESHAPE, {input, model.ints({2})}, {copy});
  model.addCustom(name, {copy, suffix}, {output});
  model.addOperator(BuiltinOperator::EQUAL, {output, model.addStrings({1}, {"b!"})}, {isWord});
  model.setArguments({input}, {output, isWord});
  return model.write();
}

int invokeWith(Program* program, const std::vector<std::string_view>& texts) {
  const std::vector<uint8_t> bytes = *memory::packStrings(texts);
  TensorStruct* const input = program->input(0);
  EXPECT_EQ(function<int(size_t, TensorStruct*)>("TfLiteTensorRealloc")(bytes.size(), input), kOk);
  std::memcpy(input->data, bytes.data(), bytes.size());
  return program->invoke();
}

std::vector<std::string> stringsOf(const void* tensor) {
  std::vector<std::string> strings;
  const int count = function<int(const void*)>("TfLiteOpaqueTensorGetStringCount")(tensor);
  for (int i = 0; i < count; ++i) {
    const char* text = nullptr;
    int length = 0;
    EXPECT_EQ((function<int(const void*, int, const char**, int*)>("TfLiteOpaqueTensorGetString")(
                  tensor, i, &text, &length)),
              kOk);
    strings.emplace_back(text, static_cast<size_t>(length));
  }
  return strings;
}

std::vector<int> flagsOf(const TensorStruct& tensor) {
  const auto* const data = static_cast<const uint8_t*>(tensor.data);
  return {data, data + tensor.bytes};
}

int write(void* tensor, const std::vector<std::string>& texts) {
  std::vector<const char*> begins;
  std::vector<int> lengths;
  for (const std::string& text : texts) {
    begins.push_back(text.data());
    lengths.push_back(static_cast<int>(text.size()));
  }
  return function<int(void*, const char* const*, int, const int*)>(
      "TfLiteOpaqueTensorWriteStrings")(tensor, begins.data(), static_cast<int>(texts.size()),
                                        lengths.data());
}

int invocations = 0;

// Writes each string that is not empty, with the constant behind it. Kernels of delegates have
// their inputs in the order of the tensors.
TfLiteStatus addSuffixes(TfLiteContext* context, TfLiteNode* node) {
  ++invocations;
  std::vector<std::string> suffix;
  std::vector<std::string> texts;
  for (int i = 0; i < node->inputs->size; ++i) {
    const TfLiteTensor& input = context->tensors[node->inputs->data[i]];
    (input.allocation_type == kTfLiteMmapRo ? suffix : texts) = stringsOf(&input);
  }
  if (suffix.size() != 1) return kTfLiteError;
  std::erase(texts, "");
  for (std::string& text : texts) text += suffix[0];
  return static_cast<TfLiteStatus>(write(&context->tensors[node->outputs->data[0]], texts));
}

TfLiteRegistration registrationOf(TfLiteStatus (*invoke)(TfLiteContext*, TfLiteNode*)) {
  TfLiteRegistration registration{};
  registration.version = 1;
  registration.invoke = invoke;
  return registration;
}

void addCustom(Program* program, const char* name, const TfLiteRegistration& registration) {
  function<void(void*, const char*, const TfLiteRegistration*, int, int)>(
      "TfLiteInterpreterOptionsAddCustomOp")(program->options(), name, &registration, 1, 1);
}

void expectSuffixes(Program* program) {
  ASSERT_TRUE(program->create()) << program->messages();
  ASSERT_EQ(program->allocate(), kOk) << program->messages();
  ASSERT_EQ(invokeWith(program, {"a", "b"}), kOk) << program->messages();
  EXPECT_THAT(stringsOf(program->output(0)), ElementsAre("a!", "b!"));
  EXPECT_THAT(flagsOf(*program->output(1)), ElementsAre(0, 1));
  ASSERT_EQ(invokeWith(program, {"", std::string_view("\0c", 2)}), kOk) << program->messages();
  EXPECT_THAT(stringsOf(program->output(0)), ElementsAre(std::string("\0c!", 3)));
  EXPECT_THAT(flagsOf(*program->output(1)), ElementsAre(0));
  ASSERT_EQ(invokeWith(program, {"", ""}), kOk) << program->messages();
  EXPECT_THAT(stringsOf(program->output(0)), ElementsAre());
}

TEST(ProgramStrings, OperatorsReadAndWriteThem) {
  Program program(wordsModel("Tfc_Suffix", {1}));
  addCustom(&program, "Tfc_Suffix", registrationOf(addSuffixes));
  invocations = 0;
  expectSuffixes(&program);
  EXPECT_EQ(invocations, 3);
}

TEST(ProgramStrings, OpaqueOperatorsReadAndWriteThem) {
  using Step = int (*)(void*, void*);
  void* const custom =
      function<void*(int, const char*, int)>("TfLiteOperatorCreate")(32, "Tfc_Opaque_Suffix", 1);
  function<void(void*, Step)>("TfLiteOperatorSetInvoke")(custom, [](void* context, void* node) {
    const auto input = function<const void*(void*, void*, int)>("TfLiteOpaqueNodeGetInput");
    std::vector<std::string> texts = stringsOf(input(context, node, 0));
    std::erase(texts, "");
    for (std::string& text : texts) text += stringsOf(input(context, node, 1)).at(0);
    return write(function<void*(void*, void*, int)>("TfLiteOpaqueNodeGetOutput")(context, node, 0),
                 texts);
  });
  {
    Program program(wordsModel("Tfc_Opaque_Suffix", {1}));
    function<void(void*, void*)>("TfLiteInterpreterOptionsAddOperator")(program.options(), custom);
    expectSuffixes(&program);
  }
  function<void(void*)>("TfLiteOperatorDelete")(custom);
}

TEST(ProgramStrings, KernelsOfDelegatesReadAndWriteThem) {
  TfLiteDelegate delegate{};
  delegate.flags = kTfLiteDelegateFlagsAllowDynamicTensors;
  delegate.Prepare = [](TfLiteContext* context, TfLiteDelegate* self) {
    TfLiteIntArray* plan = nullptr;
    if (context->GetExecutionPlan(context, &plan) != kTfLiteOk) return kTfLiteError;
    TfLiteIntArray* const taken = function<TfLiteIntArray*(int)>("TfLiteIntArrayCreate")(1);
    taken->data[0] = plan->data[1];
    const TfLiteStatus status = context->ReplaceNodeSubsetsWithDelegateKernels(
        context, registrationOf(addSuffixes), taken, self);
    std::free(taken);
    return status;
  };
  Program program(wordsModel("Tfc_Suffix_Of_Delegate", {1}));
  function<void(void*, TfLiteDelegate*)>("TfLiteInterpreterOptionsAddDelegate")(program.options(),
                                                                                &delegate);
  expectSuffixes(&program);
}

// As a program writes them that does not resize the inputs.
TEST(ProgramStrings, InputsMayBeWrittenWithOtherDimensions) {
  ModelWriter model;
  const int32_t first = model.addTensor(TensorType::STRING, {1});
  const int32_t second = model.addTensor(TensorType::STRING, {1});
  const int32_t output = model.addTensor(TensorType::STRING, {1});
  model.addOperator(BuiltinOperator::ADD, {first, second}, {output});
  model.setArguments({first, second}, {output});
  TfLiteOpaqueDelegateBuilder builder{};
  builder.flags = kTfLiteDelegateFlagsAllowDynamicTensors;
  builder.Prepare = [](TfLiteContext* context, TfLiteDelegate* self, void* /*data*/) {
    TfLiteOperator* const kernel = function<TfLiteOperator*(int, const char*, int, void*)>(
        "TfLiteOperatorCreateWithData")(51, "Concatenation", 1, nullptr);
    using Step = int (*)(void*, void*, void*);
    function<void(void*, Step)>("TfLiteOperatorSetInvokeWithData")(
        kernel, [](void* /*user*/, void* context, void* node) {
          std::vector<std::string> all;
          for (int i = 0; i < 2; ++i)
            for (std::string& text : stringsOf(function<const void*(void*, void*, int)>(
                     "TfLiteOpaqueNodeGetInput")(context, node, i)))
              all.push_back(std::move(text));
          void* const written =
              function<void*(void*, void*, int)>("TfLiteOpaqueNodeGetOutput")(context, node, 0);
          return write(written, {"overwritten"}) == kOk ? write(written, all) : kError;
        });
    TfLiteIntArray* plan = nullptr;
    context->GetExecutionPlan(context, &plan);
    return static_cast<TfLiteStatus>(
        function<int(TfLiteContext*, TfLiteOperator*, const TfLiteIntArray*, TfLiteDelegate*)>(
            "TfLiteOpaqueContextReplaceNodeSubsetsWithDelegateKernels")(context, kernel, plan,
                                                                        self));
  };
  TfLiteDelegate delegate{};
  delegate.opaque_delegate_builder = &builder;
  Program program(model.write());
  ASSERT_TRUE(program.create()) << program.messages();
  ASSERT_EQ((function<int(void*, TfLiteDelegate*)>("TfLiteInterpreterModifyGraphWithDelegate")(
                program.interpreter(), &delegate)),
            kOk)
      << program.messages();
  ASSERT_EQ(program.allocate(), kOk) << program.messages();
  for (const std::vector<std::string>& texts :
       {std::vector<std::string>{"A", std::string("D\0E", 3), "F"}, {"G"}, {"H", "I"}}) {
    EXPECT_EQ(write(program.input(0), texts), kOk);
    EXPECT_EQ(write(program.input(1), {"Z"}), kOk);
    ASSERT_EQ(program.invoke(), kOk) << program.messages();
    std::vector<std::string> expected = texts;
    expected.emplace_back("Z");
    EXPECT_EQ(stringsOf(program.output(0)), expected);
    EXPECT_EQ(program.output(0)->dims->data[0], static_cast<int>(expected.size()));
  }
}

// From one operator of the program to the next, and as a scalar.
TEST(ProgramStrings, OneStringIsAScalar) {
  ModelWriter model;
  const int32_t input = model.addTensor(TensorType::STRING, {2});
  const int32_t joined = model.addTensor(TensorType::STRING, {});
  const int32_t twice = model.addTensor(TensorType::STRING, {});
  model.addCustom("Tfc_Join", {input}, {joined});
  model.addCustom("Tfc_Join", {joined}, {twice});
  model.setArguments({input}, {twice});
  Program program(model.write());
  const auto join = [](TfLiteContext* context, TfLiteNode* node) {
    std::string all = "<";
    for (const std::string& text : stringsOf(&context->tensors[node->inputs->data[0]])) all += text;
    return static_cast<TfLiteStatus>(write(&context->tensors[node->outputs->data[0]], {all + ">"}));
  };
  addCustom(&program, "Tfc_Join", registrationOf(join));
  ASSERT_TRUE(program.create()) << program.messages();
  ASSERT_EQ(program.allocate(), kOk) << program.messages();
  ASSERT_EQ(invokeWith(&program, {"a", "b"}), kOk) << program.messages();
  EXPECT_THAT(stringsOf(program.output(0)), ElementsAre("<<ab>>"));
  EXPECT_EQ(program.output(0)->dims->size, 0);
}

TEST(ProgramStrings, LiesAreErrors) {
  static std::vector<uint8_t> bytes;
  static std::vector<int> dims;
  const auto lie = [](TfLiteContext* context, TfLiteNode* node) {
    TfLiteTensor* const output = &context->tensors[node->outputs->data[0]];
    TfLiteIntArray* const made =
        function<TfLiteIntArray*(int)>("TfLiteIntArrayCreate")(static_cast<int>(dims.size()));
    std::ranges::copy(dims, made->data);
    if (context->ResizeTensor(context, output, made) != kTfLiteOk) return kTfLiteError;
    if (function<int(size_t, TfLiteTensor*)>("TfLiteTensorRealloc")(bytes.size(), output) != kOk)
      return kTfLiteError;
    std::ranges::copy(bytes, static_cast<uint8_t*>(output->data));
    return kTfLiteOk;
  };
  Program program(wordsModel("Tfc_Lie", {1}));
  addCustom(&program, "Tfc_Lie", registrationOf(lie));
  ASSERT_TRUE(program.create()) << program.messages();
  ASSERT_EQ(program.allocate(), kOk) << program.messages();
  bytes = {1, 0, 0, 0, 12, 0, 0, 0, 255, 255, 255, 127, 'x'};
  dims = {1};
  EXPECT_EQ(invokeWith(&program, {"a", "b"}), kError);
  EXPECT_THAT(program.messages(), HasSubstr("holds no strings"));
  bytes = *memory::packStrings(std::vector<std::string_view>{"one"});
  dims = {3};
  EXPECT_EQ(invokeWith(&program, {"a", "b"}), kError);
  EXPECT_THAT(program.messages(), HasSubstr("has 3 elements and holds 1 strings"));
  dims = {-1};
  EXPECT_EQ(invokeWith(&program, {"a", "b"}), kError);
  dims = {1};
  EXPECT_EQ(invokeWith(&program, {"a", "b"}), kOk) << program.messages();
  EXPECT_THAT(stringsOf(program.output(0)), ElementsAre("one"));
}

}  // namespace
}  // namespace hearth::tflite_c::testing
