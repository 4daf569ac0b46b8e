// SPDX-License-Identifier: Apache-2.0
// Delegates and operators of programs in the subgraphs that IF and WHILE call.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "frontends/tflite/testing/model_writer.h"
#include "frontends/tflite_c/declarations.h"
#include "frontends/tflite_c/testing/library.h"

namespace hearth::tflite_c::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using tflite::ModelWriter;
using tflite::schema::BuiltinOperator;
using tflite::schema::TensorType;

constexpr int kNegCode = 59;

// if (condition) -x else x + x; with `isCustom` a custom operation in place of the negation.
std::vector<uint8_t> branches(bool isCustom = false) {
  ModelWriter model;
  model.addTensor(TensorType::BOOL, {});
  model.addTensor(TensorType::FLOAT32, {2});
  model.addTensor(TensorType::FLOAT32, {2});
  tflite::schema::IfOptionsT options;
  options.then_subgraph_index = 1;
  options.else_subgraph_index = 2;
  model.addOperator(BuiltinOperator::IF, {0, 1}, {2}, options);
  model.setArguments({0, 1}, {2});
  for (const char* const name : {"then", "else"}) {
    model.addSubgraph(name);
    model.addTensor(TensorType::FLOAT32, {2});
    model.addTensor(TensorType::FLOAT32, {2});
    if (std::string(name) == "else")
      model.addOperator(BuiltinOperator::ADD, {0, 0}, {1});
    else if (isCustom)
      model.addCustom("Tfc_Branch", {0}, {1});
    else
      model.addOperator(BuiltinOperator::NEG, {0}, {1});
    model.setArguments({0}, {1});
  }
  model.addSubgraph("unused");
  model.addTensor(TensorType::FLOAT32, {2});
  model.setArguments({0}, {0});
  return model.write();
}

// while (x < 0) x = -x + 10; the body is subgraph 2.
std::vector<uint8_t> loop() {
  ModelWriter model;
  model.addTensor(TensorType::FLOAT32, {1});
  model.addTensor(TensorType::FLOAT32, {1});
  tflite::schema::WhileOptionsT options;
  options.cond_subgraph_index = 1;
  options.body_subgraph_index = 2;
  model.addOperator(BuiltinOperator::WHILE, {0}, {1}, options);
  model.setArguments({0}, {1});
  model.addSubgraph("condition");
  model.addTensor(TensorType::FLOAT32, {1});
  const int32_t zero = model.addConstant<float>(TensorType::FLOAT32, {1}, {0});
  const int32_t isBelow = model.addTensor(TensorType::BOOL, {1});
  model.addOperator(BuiltinOperator::LESS, {0, zero}, {isBelow});
  model.setArguments({0}, {isBelow});
  model.addSubgraph("body");
  model.addTensor(TensorType::FLOAT32, {1});
  const int32_t negated = model.addTensor(TensorType::FLOAT32, {1});
  const int32_t ten = model.addConstant<float>(TensorType::FLOAT32, {1}, {10});
  const int32_t sum = model.addTensor(TensorType::FLOAT32, {1});
  model.addOperator(BuiltinOperator::NEG, {0}, {negated});
  model.addOperator(BuiltinOperator::ADD, {negated, ten}, {sum});
  model.setArguments({0}, {sum});
  return model.write();
}

// A delegate that takes NEG wherever it finds it.
struct Record {
  std::vector<std::string> offered;  // names of subgraphs
  int made = 0;
  int invoked = 0;
  int skipped = -1;      // a subgraph that it does not want to be offered
  std::string failsFor;  // the name of a subgraph
  int invokeResult = kOk;
};

TfLiteStatus prepareSame(TfLiteContext* context, TfLiteNode* node) {
  const TfLiteTensor& input = context->tensors[node->inputs->data[0]];
  return context->ResizeTensor(
      context, &context->tensors[node->outputs->data[0]],
      function<TfLiteIntArray*(const TfLiteIntArray*)>("TfLiteIntArrayCopy")(input.dims));
}

TfLiteStatus negate(TfLiteContext* context, TfLiteNode* node) {
  const TfLiteTensor& input = context->tensors[node->inputs->data[0]];
  const auto* const values = static_cast<const float*>(input.data);
  std::transform(values, values + input.bytes / sizeof(float),
                 static_cast<float*>(context->tensors[node->outputs->data[0]].data),
                 [](float value) { return -value; });
  return kTfLiteOk;
}

TfLiteRegistration kernel() {
  TfLiteRegistration registration{};
  registration.custom_name = "Negation";
  registration.version = 1;
  registration.init = [](TfLiteContext* /*context*/, const char* buffer, size_t) -> void* {
    auto* const record = static_cast<Record*>(
        reinterpret_cast<const TfLiteDelegateParams*>(buffer)->delegate->data_);
    ++record->made;
    return record;
  };
  registration.free = [](TfLiteContext* /*context*/, void* state) {
    --static_cast<Record*>(state)->made;
  };
  registration.prepare = prepareSame;
  registration.invoke = [](TfLiteContext* context, TfLiteNode* node) {
    auto& record = *static_cast<Record*>(node->user_data);
    ++record.invoked;
    return record.invokeResult == kOk ? negate(context, node) : kTfLiteError;
  };
  return registration;
}

TfLiteStatus prepareDelegate(TfLiteContext* context, TfLiteDelegate* delegate) {
  auto& record = *static_cast<Record*>(delegate->data_);
  const std::string name =
      function<const char*(TfLiteContext*)>("TfLiteOpaqueContextGetName")(context);
  record.offered.push_back(name);
  TfLiteIntArray* plan = nullptr;
  if (context->GetExecutionPlan(context, &plan) != kTfLiteOk) return kTfLiteError;
  std::vector<int> taken;
  for (int i = 0; i < plan->size; ++i) {
    TfLiteNode* node = nullptr;
    TfLiteRegistration* registration = nullptr;
    if (context->GetNodeAndRegistration(context, plan->data[i], &node, &registration) != kTfLiteOk)
      return kTfLiteError;
    if (registration->builtin_code == kNegCode) taken.push_back(plan->data[i]);
  }
  if (record.skipped >= 0)
    function<int(TfLiteContext*, int)>("TfLiteOpaqueContextMarkSubgraphAsDelegationSkippable")(
        context, record.skipped);
  TfLiteIntArray* const nodes =
      function<TfLiteIntArray*(int)>("TfLiteIntArrayCreate")(static_cast<int>(taken.size()));
  std::ranges::copy(taken, nodes->data);
  const TfLiteStatus status =
      context->ReplaceNodeSubsetsWithDelegateKernels(context, kernel(), nodes, delegate);
  std::free(nodes);
  return record.failsFor == name ? kTfLiteError : status;
}

TfLiteDelegate delegateOf(Record* record) {
  TfLiteDelegate delegate{};
  delegate.data_ = record;
  delegate.Prepare = prepareDelegate;
  delegate.flags = kTfLiteDelegateFlagsAllowDynamicTensors;
  return delegate;
}

void add(Program* program, TfLiteDelegate* delegate) {
  function<void(void*, TfLiteDelegate*)>("TfLiteInterpreterOptionsAddDelegate")(program->options(),
                                                                                delegate);
}

std::vector<float> valuesOf(const TensorStruct& tensor) {
  const auto* const data = static_cast<const float*>(tensor.data);
  return {data, data + tensor.bytes / sizeof(float)};
}

std::vector<float> runBranch(Program* program, bool condition) {
  const std::vector<float> values = {1, 2};
  if (program->allocate() != kOk) return {};
  program->copyIn(program->input(0), &condition, sizeof(condition));
  program->copyIn(program->input(1), values.data(), values.size() * sizeof(float));
  return program->invoke() == kOk ? valuesOf(*program->output(0)) : std::vector<float>();
}

TEST(ProgramSubgraphs, ADelegateComputesInABranch) {
  Record record;
  TfLiteDelegate delegate = delegateOf(&record);
  {
    Program program(branches());
    add(&program, &delegate);
    ASSERT_TRUE(program.create()) << program.messages();
    EXPECT_THAT(record.offered, ElementsAre("main", "then", "else"));
    EXPECT_EQ(record.made, 1);
    EXPECT_THAT(runBranch(&program, false), ElementsAre(2, 4)) << program.messages();
    EXPECT_EQ(record.invoked, 0);
    EXPECT_THAT(runBranch(&program, true), ElementsAre(-1, -2)) << program.messages();
    EXPECT_EQ(record.invoked, 1);
  }
  EXPECT_EQ(record.made, 0);
}

TEST(ProgramSubgraphs, ADelegateComputesInALoop) {
  Record record;
  TfLiteDelegate delegate = delegateOf(&record);
  Program program(loop());
  add(&program, &delegate);
  ASSERT_TRUE(program.create()) << program.messages();
  ASSERT_EQ(program.allocate(), kOk) << program.messages();
  const float start = -3;
  ASSERT_EQ(program.copyIn(program.input(0), &start, sizeof(start)), kOk);
  ASSERT_EQ(program.invoke(), kOk) << program.messages();
  EXPECT_THAT(valuesOf(*program.output(0)), ElementsAre(13));
  EXPECT_EQ(record.invoked, 1);
}

TEST(ProgramSubgraphs, ASubgraphThatADelegateSkipsIsNotOffered) {
  Record record;
  record.skipped = 1;
  TfLiteDelegate delegate = delegateOf(&record);
  Program program(branches());
  add(&program, &delegate);
  ASSERT_TRUE(program.create()) << program.messages();
  EXPECT_THAT(record.offered, ElementsAre("main", "else"));
  EXPECT_THAT(runBranch(&program, true), ElementsAre(-1, -2)) << program.messages();
  EXPECT_EQ(record.invoked, 0);
}

TEST(ProgramSubgraphs, AFailureInOneGivesAllNodesBack) {
  Record record;
  record.failsFor = "else";
  TfLiteDelegate delegate = delegateOf(&record);
  Program program(branches());
  ASSERT_TRUE(program.create()) << program.messages();
  EXPECT_EQ(function<int(void*, TfLiteDelegate*)>("TfLiteInterpreterModifyGraphWithDelegate")(
                program.interpreter(), &delegate),
            kError);
  EXPECT_EQ(record.made, 0);
  EXPECT_THAT(runBranch(&program, true), ElementsAre(-1, -2)) << program.messages();
  EXPECT_EQ(record.invoked, 0);
}

TEST(ProgramSubgraphs, AFailedRunFallsBackThere) {
  Record record;
  record.invokeResult = kError;
  TfLiteDelegate delegate = delegateOf(&record);
  Program program(branches());
  add(&program, &delegate);
  function<void(void*, bool)>("TfLiteInterpreterOptionsSetEnableDelegateFallback")(
      program.options(), true);
  ASSERT_TRUE(program.create()) << program.messages();
  ASSERT_EQ(program.allocate(), kOk);
  const bool condition = true;
  const std::vector<float> values = {1, 2};
  program.copyIn(program.input(0), &condition, sizeof(condition));
  program.copyIn(program.input(1), values.data(), values.size() * sizeof(float));
  EXPECT_EQ(program.invoke(), kTfLiteDelegateError);
  EXPECT_THAT(valuesOf(*program.output(0)), ElementsAre(-1, -2)) << program.messages();
  EXPECT_EQ(record.made, 0);
  EXPECT_THAT(runBranch(&program, true), ElementsAre(-1, -2)) << program.messages();
}

TEST(ProgramSubgraphs, OperatorsComputeInABranch) {
  TfLiteRegistration registration{};
  registration.prepare = prepareSame;
  registration.invoke = negate;
  Program program(branches(true));
  function<void(void*, const char*, const TfLiteRegistration*, int, int)>(
      "TfLiteInterpreterOptionsAddCustomOp")(program.options(), "Tfc_Branch", &registration, 1, 1);
  ASSERT_TRUE(program.create()) << program.messages();
  EXPECT_THAT(runBranch(&program, true), ElementsAre(-1, -2)) << program.messages();
  EXPECT_THAT(runBranch(&program, false), ElementsAre(2, 4)) << program.messages();
}

// What a delegate sees of subgraphs that it asks for.
struct Views {
  std::vector<int> results;
  std::vector<std::string> names;
};

TEST(ProgramSubgraphs, ContextsOfSubgraphsCanBeAskedFor) {
  Views views;
  TfLiteDelegate delegate{};
  delegate.data_ = &views;
  delegate.flags = kTfLiteDelegateFlagsAllowDynamicTensors;
  delegate.Prepare = [](TfLiteContext* context, TfLiteDelegate* own) {
    auto& seen = *static_cast<Views*>(own->data_);
    if (!seen.results.empty()) return kTfLiteOk;
    const auto acquire = function<int(TfLiteContext*, int, TfLiteContext**)>(
        "TfLiteOpaqueContextAcquireSubgraphContext");
    const auto release =
        function<int(TfLiteContext*, int)>("TfLiteOpaqueContextReleaseSubgraphContext");
    const auto name = function<const char*(TfLiteContext*)>("TfLiteOpaqueContextGetName");
    for (const int index : {0, 1, 3}) {
      TfLiteContext* acquired = nullptr;
      seen.results.push_back(acquire(context, index, &acquired));
      if (acquired == nullptr) continue;
      EXPECT_EQ(acquired == context, index == 0);
      seen.names.emplace_back(name(acquired));
      seen.results.push_back(release(context, index));
    }
    for (const int index : {-1, 4}) {
      TfLiteContext* acquired = context;
      EXPECT_EQ(acquire(context, index, &acquired), kError);
      EXPECT_EQ(acquired, nullptr);
      EXPECT_EQ(release(context, index), kError);
    }
    EXPECT_EQ(acquire(context, 0, nullptr), kError);
    return kTfLiteOk;
  };
  Program program(branches());
  add(&program, &delegate);
  ASSERT_TRUE(program.create()) << program.messages();
  EXPECT_THAT(views.results, Each(kOk));
  EXPECT_THAT(views.names, ElementsAre("main", "then", "unused"));
  EXPECT_THAT(runBranch(&program, true), ElementsAre(-1, -2)) << program.messages();
}

// Takes the NEG of the subgraph "then" while "main" is offered, and wants no subgraph offered.
TfLiteStatus takeInBranch(TfLiteContext* context, TfLiteDelegate* delegate) {
  auto& record = *static_cast<Record*>(delegate->data_);
  record.offered.emplace_back(
      function<const char*(TfLiteContext*)>("TfLiteOpaqueContextGetName")(context));
  TfLiteContext* branch = nullptr;
  TfLiteIntArray* plan = nullptr;
  if (function<int(TfLiteContext*, int, TfLiteContext**)>(
          "TfLiteOpaqueContextAcquireSubgraphContext")(context, 1, &branch) != kOk ||
      branch->GetExecutionPlan(branch, &plan) != kTfLiteOk)
    return kTfLiteError;
  const TfLiteStatus status =
      branch->ReplaceNodeSubsetsWithDelegateKernels(branch, kernel(), plan, delegate);
  for (const int subgraph : {1, 2})
    function<int(TfLiteContext*, int)>("TfLiteOpaqueContextMarkSubgraphAsDelegationSkippable")(
        context, subgraph);
  function<int(TfLiteContext*, int)>("TfLiteOpaqueContextReleaseSubgraphContext")(context, 1);
  return record.failsFor == "main" ? kTfLiteError : status;
}

TEST(ProgramSubgraphs, ADelegateTakesNodesOfASubgraphThatItAsksFor) {
  Record record;
  TfLiteDelegate delegate = delegateOf(&record);
  delegate.Prepare = takeInBranch;
  {
    Program program(branches());
    add(&program, &delegate);
    ASSERT_TRUE(program.create()) << program.messages();
    EXPECT_THAT(record.offered, ElementsAre("main"));
    EXPECT_EQ(record.made, 1);
    EXPECT_THAT(runBranch(&program, false), ElementsAre(2, 4)) << program.messages();
    EXPECT_EQ(record.invoked, 0);
    EXPECT_THAT(runBranch(&program, true), ElementsAre(-1, -2)) << program.messages();
    EXPECT_EQ(record.invoked, 1);
  }
  EXPECT_EQ(record.made, 0);
}

TEST(ProgramSubgraphs, AFailureGivesNodesOfOtherSubgraphsBack) {
  Record record;
  record.failsFor = "main";
  TfLiteDelegate delegate = delegateOf(&record);
  delegate.Prepare = takeInBranch;
  Program program(branches());
  ASSERT_TRUE(program.create()) << program.messages();
  EXPECT_EQ(function<int(void*, TfLiteDelegate*)>("TfLiteInterpreterModifyGraphWithDelegate")(
                program.interpreter(), &delegate),
            kError);
  EXPECT_EQ(record.made, 0);
  EXPECT_THAT(runBranch(&program, true), ElementsAre(-1, -2)) << program.messages();
  EXPECT_EQ(record.invoked, 0);
}

}  // namespace
}  // namespace hearth::tflite_c::testing
