// SPDX-License-Identifier: Apache-2.0
// Operators that programs define, as structures and through the opaque interface.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "frontends/tflite/testing/model_writer.h"
#include "frontends/tflite_c/testing/library.h"

namespace hearth::tflite_c::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using tflite::ModelWriter;
using tflite::schema::TensorType;

constexpr int kCustom = 32;

// The structures as their headers describe them, as far as these operators read them.
struct Context {
  size_t tensorCount;
  void* getPlan;
  TensorStruct* tensors;
  void* implementation;
  int (*resize)(Context*, TensorStruct*, IntArray*);
  void (*report)(Context*, const char*, ...);
  void* rest[19];
};

struct Node {
  IntArray* inputs;
  IntArray* outputs;
  IntArray* intermediates;
  IntArray* temporaries;
  void* user;
  void* builtin;
  const void* options;
  int optionBytes;
};

struct Registration {
  void* (*init)(Context*, const char*, size_t);
  void (*free)(Context*, void*);
  int (*prepare)(Context*, Node*);
  int (*invoke)(Context*, Node*);
  void* rest[7];
};

IntArray* copyOf(const IntArray* dims) {
  return function<IntArray*(const IntArray*)>("TfLiteIntArrayCopy")(dims);
}

TensorStruct* inputOf(Context* context, Node* node) {
  return &context->tensors[node->inputs->data[0]];
}
TensorStruct* outputOf(Context* context, Node* node) {
  return &context->tensors[node->outputs->data[0]];
}

// output = input * factor; the factor is the first byte of the custom options.
int states = 0;
void* initFactor(Context* /*context*/, const char* buffer, size_t length) {
  ++states;
  return new float(length == 0 ? 1.0f : static_cast<float>(buffer[0]));
}
void freeFactor(Context* /*context*/, void* state) {
  --states;
  delete static_cast<float*>(state);
}
int prepareSame(Context* context, Node* node) {
  return context->resize(context, outputOf(context, node), copyOf(inputOf(context, node)->dims));
}
int multiply(Context* context, Node* node) {
  const TensorStruct& input = *inputOf(context, node);
  const TensorStruct& output = *outputOf(context, node);
  const float factor = *static_cast<float*>(node->user);
  std::transform(static_cast<float*>(input.data),
                 static_cast<float*>(input.data) + input.bytes / sizeof(float),
                 static_cast<float*>(output.data), [&](float value) { return value * factor; });
  return kOk;
}

// NEG before and after the custom operation.
std::vector<uint8_t> modelWith(const std::string& name, std::vector<uint8_t> options = {}) {
  ModelWriter model;
  const int32_t input = model.addTensor(TensorType::FLOAT32, {3});
  const int32_t middle = model.addTensor(TensorType::FLOAT32, {3});
  const int32_t output = model.addTensor(TensorType::FLOAT32, {3});
  model.addOperator(tflite::schema::BuiltinOperator::NEG, {input}, {middle});
  model.addCustom(name, {middle}, {output}, std::move(options));
  model.setArguments({input}, {output});
  return model.write();
}

void addCustom(Program* program, const char* name, const Registration& registration) {
  function<void(void*, const char*, const Registration*, int, int)>(
      "TfLiteInterpreterOptionsAddCustomOp")(program->options(), name, &registration, 1, 1);
}

std::vector<float> valuesOf(const TensorStruct& tensor) {
  const auto* const data = static_cast<const float*>(tensor.data);
  return {data, data + tensor.bytes / sizeof(float)};
}

int runWith(Program* program, std::vector<float> values) {
  if (program->allocate() != kOk) return kError;
  EXPECT_EQ(program->copyIn(program->input(0), values.data(), values.size() * sizeof(float)), kOk);
  return program->invoke();
}

TEST(ProgramOperators, StructuresCompute) {
  {
    Program program(modelWith("Tfc_Factor", {5}));
    addCustom(&program, "Tfc_Factor", {initFactor, freeFactor, prepareSame, multiply, {}});
    ASSERT_TRUE(program.create()) << program.messages();
    for (int i = 0; i < 2; ++i) {
      ASSERT_EQ(runWith(&program, {1, 2, 3}), kOk) << program.messages();
      EXPECT_THAT(valuesOf(*program.output(0)), ElementsAre(-5, -10, -15));
    }
    EXPECT_GT(states, 0);
  }
  EXPECT_EQ(states, 0);
}

TEST(ProgramOperators, OpaqueOnesCompute) {
  void* const custom = function<void*(int, const char*, int, void*)>(
      "TfLiteOperatorCreateWithData")(kCustom, "Tfc_Opaque", 1, &states);
  EXPECT_STREQ(function<const char*(void*)>("TfLiteOperatorGetCustomName")(custom), "Tfc_Opaque");
  using Step = int (*)(void*, void*, void*);
  const Step prepare = [](void* user, void* context, void* node) {
    EXPECT_EQ(user, &states);
    const auto* const input =
        function<const void*(void*, void*, int)>("TfLiteOpaqueNodeGetInput")(context, node, 0);
    void* const output =
        function<void*(void*, void*, int)>("TfLiteOpaqueNodeGetOutput")(context, node, 0);
    IntArray* const dims = function<IntArray*(int)>("TfLiteIntArrayCreate")(1);
    dims->data[0] = function<int(const void*, int)>("TfLiteOpaqueTensorDim")(input, 0);
    return function<int(void*, void*, IntArray*)>("TfLiteOpaqueContextResizeTensor")(context,
                                                                                     output, dims);
  };
  const Step invoke = [](void* /*user*/, void* context, void* node) {
    const auto data = function<void*(const void*)>("TfLiteOpaqueTensorData");
    const auto* const input = static_cast<const float*>(data(
        function<const void*(void*, void*, int)>("TfLiteOpaqueNodeGetInput")(context, node, 0)));
    auto* const output = static_cast<float*>(
        data(function<void*(void*, void*, int)>("TfLiteOpaqueNodeGetOutput")(context, node, 0)));
    for (int i = 0; i < 3; ++i) output[i] = input[i] + 100;
    return kOk;
  };
  function<int(void*, Step)>("TfLiteOperatorSetPrepareWithData")(custom, prepare);
  function<int(void*, Step)>("TfLiteOperatorSetInvokeWithData")(custom, invoke);
  {
    Program program(modelWith("Tfc_Opaque"));
    function<void(void*, void*)>("TfLiteInterpreterOptionsAddOperator")(program.options(), custom);
    ASSERT_TRUE(program.create()) << program.messages();
    ASSERT_EQ(runWith(&program, {1, 2, 3}), kOk) << program.messages();
    EXPECT_THAT(valuesOf(*program.output(0)), ElementsAre(99, 98, 97));
  }
  function<void(void*)>("TfLiteOperatorDelete")(custom);
  // Without the operator the model can be looked at, but not run.
  Program program(modelWith("Tfc_Opaque"));
  EXPECT_TRUE(!program.create() || program.allocate() == kError);
  EXPECT_THAT(program.messages(), HasSubstr("Tfc_Opaque"));
}

int positiveCalls = 0;

// Gives the values above 0, whose number only a run knows.
int prepareDynamic(Context* context, Node* node) {
  outputOf(context, node)->allocationType = 4;
  outputOf(context, node)->data = nullptr;
  return kOk;
}
int keepPositive(Context* context, Node* node) {
  ++positiveCalls;
  const std::vector<float> values = valuesOf(*inputOf(context, node));
  IntArray* const dims = function<IntArray*(int)>("TfLiteIntArrayCreate")(1);
  dims->data[0] =
      static_cast<int>(std::ranges::count_if(values, [](float value) { return value > 0; }));
  TensorStruct* const output = outputOf(context, node);
  if (context->resize(context, output, dims) != kOk) return kError;
  std::ranges::copy_if(values, static_cast<float*>(output->data),
                       [](float value) { return value > 0; });
  return kOk;
}

TEST(ProgramOperators, OutputsMayDependOnValues) {
  ModelWriter model;
  const int32_t input = model.addTensor(TensorType::FLOAT32, {3});
  const int32_t output = model.addTensor(TensorType::FLOAT32, {1});
  model.tensor(output).shape_signature = {-1};
  model.addCustom("Tfc_Positive", {input}, {output});
  model.setArguments({input}, {output});
  Program program(model.write());
  addCustom(&program, "Tfc_Positive", {nullptr, nullptr, prepareDynamic, keepPositive, {}});
  ASSERT_TRUE(program.create()) << program.messages();
  ASSERT_EQ(runWith(&program, {1, -2, 3}), kOk) << program.messages();
  EXPECT_THAT(valuesOf(*program.output(0)), ElementsAre(1, 3));
  ASSERT_EQ(runWith(&program, {-1, -2, 3}), kOk) << program.messages();
  EXPECT_THAT(valuesOf(*program.output(0)), ElementsAre(3));
  EXPECT_EQ(positiveCalls, 2);
}

// What one allocates is the next one's input.
TEST(ProgramOperators, OutputsOfUnknownSizeGoToOtherOperators) {
  ModelWriter model;
  const int32_t input = model.addTensor(TensorType::FLOAT32, {3});
  const int32_t middle = model.addTensor(TensorType::FLOAT32, {1});
  const int32_t output = model.addTensor(TensorType::FLOAT32, {1});
  model.addCustom("Tfc_Positive", {input}, {middle});
  model.addCustom("Tfc_Positive", {middle}, {output});
  model.setArguments({input}, {output});
  Program program(model.write());
  addCustom(&program, "Tfc_Positive", {nullptr, nullptr, prepareDynamic, keepPositive, {}});
  ASSERT_TRUE(program.create()) << program.messages();
  positiveCalls = 0;
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(runWith(&program, {-1, -2, 4}), kOk) << program.messages();
    EXPECT_THAT(valuesOf(*program.output(0)), ElementsAre(4));
    ASSERT_EQ(runWith(&program, {1, -2, 3}), kOk) << program.messages();
    EXPECT_THAT(valuesOf(*program.output(0)), ElementsAre(1, 3));
  }
  EXPECT_EQ(positiveCalls, 12);
}

// Each interpreter's operators are its own, whichever was made last.
TEST(ProgramOperators, OfOneNameBelongToTheirInterpreter) {
  Program first(modelWith("Tfc_Shared", {2}));
  Program second(modelWith("Tfc_Shared", {2}));
  addCustom(&first, "Tfc_Shared", {initFactor, freeFactor, prepareSame, multiply, {}});
  const auto addFive = [](Context* context, Node* node) {
    const TensorStruct& input = *inputOf(context, node);
    for (size_t i = 0; i < input.bytes / sizeof(float); ++i)
      static_cast<float*>(outputOf(context, node)->data)[i] =
          static_cast<const float*>(input.data)[i] + 5;
    return kOk;
  };
  addCustom(&second, "Tfc_Shared", {nullptr, nullptr, prepareSame, addFive, {}});
  ASSERT_TRUE(first.create()) << first.messages();
  ASSERT_TRUE(second.create()) << second.messages();
  ASSERT_EQ(runWith(&first, {1, 2, 3}), kOk) << first.messages();
  ASSERT_EQ(runWith(&second, {1, 2, 3}), kOk) << second.messages();
  EXPECT_THAT(valuesOf(*first.output(0)), ElementsAre(-2, -4, -6));
  EXPECT_THAT(valuesOf(*second.output(0)), ElementsAre(4, 3, 2));
}

// An operator whose prepare adds a tensor of float32 with one element, through the opaque
// interface, and whose invoke copies its input through that.
TEST(ProgramOperators, TheyMayAddTemporaryTensors) {
  static int scratch = -1;
  const auto prepare = [](void* context, void* node) {
    const auto set = function<int(void*, const int*, int)>("TfLiteOpaqueNodeSetTemporaries");
    EXPECT_EQ(set(node, &scratch, -1), kError);
    EXPECT_EQ(set(node, &scratch, 0), kOk);
    void* const builder = function<void*()>("TfLiteOpaqueTensorBuilderCreate")();
    function<void*(void*, int)>("TfLiteOpaqueTensorBuilderSetType")(builder, 1);
    function<void*(void*, int)>("TfLiteOpaqueTensorBuilderSetAllocationType")(builder, 2);
    const int added = function<int(void*, void*, int*)>("TfLiteOpaqueContextAddTensor")(
        context, builder, &scratch);
    function<void(void*)>("TfLiteOpaqueTensorBuilderDelete")(builder);
    if (added != kOk || set(node, &scratch, 1) != kOk) return kError;
    IntArray* const dims = function<IntArray*(int)>("TfLiteIntArrayCreate")(1);
    dims->data[0] = 3;
    return function<int(void*, void*, IntArray*)>("TfLiteOpaqueContextResizeTensor")(
        context,
        function<void*(void*, int)>("TfLiteOpaqueContextGetOpaqueTensor")(context, scratch), dims);
  };
  const auto invoke = [](void* context, void* node) {
    const auto data = function<void*(const void*)>("TfLiteOpaqueTensorData");
    auto* const between = static_cast<float*>(
        data(function<void*(void*, int)>("TfLiteOpaqueContextGetOpaqueTensor")(context, scratch)));
    const auto* const input = static_cast<const float*>(data(
        function<const void*(void*, void*, int)>("TfLiteOpaqueNodeGetInput")(context, node, 0)));
    auto* const output = static_cast<float*>(
        data(function<void*(void*, void*, int)>("TfLiteOpaqueNodeGetOutput")(context, node, 0)));
    if (between == nullptr) return kError;
    std::copy_n(input, 3, between);
    std::copy_n(between, 3, output);
    return kOk;
  };
  using Step = int (*)(void*, void*);
  void* const custom =
      function<void*(int, const char*, int)>("TfLiteOperatorCreate")(kCustom, "Tfc_Temporary", 1);
  function<void(void*, Step)>("TfLiteOperatorSetPrepare")(custom, prepare);
  function<void(void*, Step)>("TfLiteOperatorSetInvoke")(custom, invoke);
  {
    Program program(modelWith("Tfc_Temporary"));
    function<void(void*, void*)>("TfLiteInterpreterOptionsAddOperator")(program.options(), custom);
    ASSERT_TRUE(program.create()) << program.messages();
    for (int i = 0; i < 2; ++i) {
      ASSERT_EQ(runWith(&program, {1, 2, 3}), kOk) << program.messages();
      EXPECT_THAT(valuesOf(*program.output(0)), ElementsAre(-1, -2, -3));
    }
  }
  function<void(void*)>("TfLiteOperatorDelete")(custom);
}

TEST(ProgramOperators, FailuresAndLiesAreErrors) {
  const auto failing = [](Context* context, Node* /*node*/) {
    context->report(context, "it fails with %d", 7);
    return kError;
  };
  Program program(modelWith("Tfc_Failing"));
  addCustom(&program, "Tfc_Failing", {nullptr, nullptr, prepareSame, failing, {}});
  EXPECT_TRUE(!program.create() || runWith(&program, {1, 2, 3}) == kError);
  EXPECT_THAT(program.messages(), HasSubstr("it fails with 7"));
  EXPECT_THAT(program.messages(), HasSubstr("Tfc_Failing"));

  const auto huge = [](Context* context, Node* node) {
    IntArray* const dims = function<IntArray*(int)>("TfLiteIntArrayCreate")(3);
    std::fill_n(dims->data, 3, INT32_MAX);
    return context->resize(context, outputOf(context, node), dims);
  };
  Program lying(modelWith("Tfc_Lying"));
  addCustom(&lying, "Tfc_Lying", {nullptr, nullptr, huge, multiply, {}});
  EXPECT_TRUE(!lying.create() || lying.allocate() == kError);
  EXPECT_FALSE(lying.messages().empty());

  // Its shape says 1 value, its memory has 1000.
  const auto more = [](Context* context, Node* node) {
    IntArray* const dims = function<IntArray*(int)>("TfLiteIntArrayCreate")(1);
    dims->data[0] = 1;
    TensorStruct* const output = outputOf(context, node);
    if (context->resize(context, output, dims) != kOk) return kError;
    return function<int(size_t, TensorStruct*)>("TfLiteTensorRealloc")(4000, output);
  };
  Program larger(modelWith("Tfc_Larger"));
  addCustom(&larger, "Tfc_Larger", {nullptr, nullptr, prepareDynamic, more, {}});
  ASSERT_TRUE(larger.create()) << larger.messages();
  EXPECT_EQ(runWith(&larger, {1, 2, 3}), kError);
  EXPECT_THAT(larger.messages(), HasSubstr("4000 bytes; its shape needs 4"));
}

}  // namespace
}  // namespace hearth::tflite_c::testing
