// SPDX-License-Identifier: Apache-2.0
// Delegates that programs make, as structures and through the opaque interface.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "frontends/tflite/testing/model_writer.h"
#include "frontends/tflite_c/declarations.h"
#include "frontends/tflite_c/testing/library.h"
#include "tflite_abi/builtin_params.h"

namespace hearth::tflite_c::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using tflite::ModelWriter;
using tflite::schema::BuiltinOperator;
using tflite::schema::TensorType;

constexpr int kAddCode = 0;
constexpr int kNegCode = 59;

// -(-x + [1, 2, 3]), with an addition that is fused with a RELU.
std::vector<uint8_t> chain() {
  ModelWriter model;
  const int32_t input = model.addTensor(TensorType::FLOAT32, {3});
  const int32_t addend = model.addConstant<float>(TensorType::FLOAT32, {3}, {1, 2, 3});
  const int32_t one = model.addTensor(TensorType::FLOAT32, {3});
  const int32_t two = model.addTensor(TensorType::FLOAT32, {3});
  const int32_t output = model.addTensor(TensorType::FLOAT32, {3});
  model.addOperator(BuiltinOperator::NEG, {input}, {one});
  tflite::schema::AddOptionsT options;
  options.fused_activation_function = tflite::schema::ActivationFunctionType::RELU;
  model.addOperator(BuiltinOperator::ADD, {one, addend}, {two}, options);
  model.addOperator(BuiltinOperator::NEG, {two}, {output});
  model.setArguments({input}, {output});
  return model.write();
}

// What a delegate and its kernels have seen.
struct Record {
  int takenCode = kNegCode;
  int made = 0;
  int prepared = 0;
  int invoked = 0;
  int previewed = 0;
  int previewedOfWrong = -1;  // of a list with a node that does not exist
  int prepareResult = kOk;
  int invokeResult = kOk;
  int kernelResult = kOk;     // of its prepare
  bool isDynamic = false;     // outputs get their memory in invoke
  void* cancelled = nullptr;  // the interpreter whose run invoke cancels
  std::vector<float> buffer;  // that kernels read where an input has a handle
  std::vector<int> freedHandles;
  std::vector<int> plan;
  std::vector<int> activations;  // of ADD
  std::vector<int> kernelInputs;
};

// A kernel that computes a chain of NEG or ADD: each partition here is one node.
struct KernelState {
  Record* record;
  int code;
  int scratch = -1;
};

TfLiteIntArray* copyOf(const TfLiteIntArray* dims) {
  return function<TfLiteIntArray*(const TfLiteIntArray*)>("TfLiteIntArrayCopy")(dims);
}

void* initKernel(TfLiteContext* context, const char* buffer, size_t /*length*/) {
  const auto& params = *reinterpret_cast<const TfLiteDelegateParams*>(buffer);
  auto& record = *static_cast<Record*>(params.delegate->data_);
  TfLiteNode* node = nullptr;
  TfLiteRegistration* registration = nullptr;
  if (params.nodes_to_replace->size != 1 ||
      context->GetNodeAndRegistration(context, params.nodes_to_replace->data[0], &node,
                                      &registration) != kTfLiteOk)
    return nullptr;
  ++record.made;
  record.kernelInputs.push_back(params.input_tensors->size);
  return new KernelState{&record, registration->builtin_code};
}

void freeKernel(TfLiteContext* /*context*/, void* state) {
  auto* const kernel = static_cast<KernelState*>(state);
  if (kernel != nullptr) --kernel->record->made;
  delete kernel;
}

TfLiteStatus prepareKernel(TfLiteContext* context, TfLiteNode* node) {
  auto* const kernel = static_cast<KernelState*>(node->user_data);
  if (kernel == nullptr) return kTfLiteError;
  ++kernel->record->prepared;
  if (kernel->record->kernelResult != kOk) return kTfLiteError;
  const TfLiteIntArray* dims = context->tensors[node->inputs->data[0]].dims;
  if (kernel->scratch < 0 && context->AddTensors(context, 1, &kernel->scratch) != kTfLiteOk)
    return kTfLiteError;
  TfLiteTensor& scratch = context->tensors[kernel->scratch];
  scratch.type = kTfLiteFloat32;
  scratch.allocation_type = kTfLiteArenaRw;
  if (context->ResizeTensor(context, &scratch, copyOf(dims)) != kTfLiteOk) return kTfLiteError;
  std::free(node->temporaries);
  node->temporaries = function<TfLiteIntArray*(int)>("TfLiteIntArrayCreate")(1);
  node->temporaries->data[0] = kernel->scratch;
  TfLiteTensor& output = context->tensors[node->outputs->data[0]];
  if (!kernel->record->isDynamic) return context->ResizeTensor(context, &output, copyOf(dims));
  output.allocation_type = kTfLiteDynamic;
  output.data = nullptr;
  return kTfLiteOk;
}

TfLiteStatus invokeKernel(TfLiteContext* context, TfLiteNode* node) {
  const auto& kernel = *static_cast<KernelState*>(node->user_data);
  ++kernel.record->invoked;
  if (kernel.record->cancelled != nullptr)
    function<int(void*)>("TfLiteInterpreterCancel")(kernel.record->cancelled);
  if (kernel.record->invokeResult != kOk) {
    context->ReportError(context, "the device has gone, code %d", 7);
    return kTfLiteError;
  }
  TfLiteTensor& output = context->tensors[node->outputs->data[0]];
  const TfLiteTensor& first = context->tensors[node->inputs->data[0]];
  if (kernel.record->isDynamic &&
      context->ResizeTensor(context, &output, copyOf(first.dims)) != kTfLiteOk)
    return kTfLiteError;
  auto* const scratch = static_cast<float*>(context->tensors[kernel.scratch].data);
  const size_t count = first.bytes / sizeof(float);
  const auto* const values = static_cast<const float*>(
      first.buffer_handle < 0 ? first.data : kernel.record->buffer.data());
  for (size_t i = 0; i < count; ++i) {
    scratch[i] = values[i];
    if (kernel.code == kAddCode)
      scratch[i] = std::max(
          0.0f,
          scratch[i] + static_cast<const float*>(context->tensors[node->inputs->data[1]].data)[i]);
    else
      scratch[i] = -scratch[i];
  }
  std::memcpy(output.data, scratch, count * sizeof(float));
  return kTfLiteOk;
}

TfLiteStatus prepareDelegate(TfLiteContext* context, TfLiteDelegate* delegate) {
  auto& record = *static_cast<Record*>(delegate->data_);
  TfLiteIntArray* plan = nullptr;
  if (context->GetExecutionPlan(context, &plan) != kTfLiteOk) return kTfLiteError;
  record.plan.assign(plan->data, plan->data + plan->size);
  std::vector<int> taken;
  for (const int index : record.plan) {
    TfLiteNode* node = nullptr;
    TfLiteRegistration* registration = nullptr;
    if (context->GetNodeAndRegistration(context, index, &node, &registration) != kTfLiteOk)
      return kTfLiteError;
    if (registration->builtin_code == kAddCode)
      record.activations.push_back(*static_cast<const int*>(node->builtin_data));
    if (registration->builtin_code == record.takenCode && node->delegate == nullptr)
      taken.push_back(index);
  }
  TfLiteIntArray* const nodes =
      function<TfLiteIntArray*(int)>("TfLiteIntArrayCreate")(static_cast<int>(taken.size()));
  std::ranges::copy(taken, nodes->data);
  TfLiteDelegateParams* partitions = nullptr;
  TfLiteIntArray* const wrong = function<TfLiteIntArray*(int)>("TfLiteIntArrayCreate")(1);
  wrong->data[0] = 1 << 20;
  EXPECT_EQ(
      context->PreviewDelegatePartitioning(context, wrong, &partitions, &record.previewedOfWrong),
      kTfLiteError);
  EXPECT_EQ(partitions, nullptr);
  std::free(wrong);
  TfLiteStatus status =
      context->PreviewDelegatePartitioning(context, nodes, &partitions, &record.previewed);
  TfLiteRegistration registration{};
  registration.init = initKernel;
  registration.free = freeKernel;
  registration.prepare = prepareKernel;
  registration.invoke = invokeKernel;
  registration.custom_name = "TestKernel";
  registration.version = 1;
  if (status == kTfLiteOk)
    status = context->ReplaceNodeSubsetsWithDelegateKernels(context, registration, nodes, delegate);
  std::free(nodes);
  if (record.prepareResult != kOk) context->ReportError(context, "no device %s", "here");
  return status != kTfLiteOk ? status : static_cast<TfLiteStatus>(record.prepareResult);
}

TfLiteDelegate delegateOf(Record* record, int64_t flags = 1) {
  TfLiteDelegate delegate{};
  delegate.data_ = record;
  delegate.Prepare = prepareDelegate;
  delegate.flags = flags;
  return delegate;
}

void add(Program* program, TfLiteDelegate* delegate) {
  function<void(void*, TfLiteDelegate*)>("TfLiteInterpreterOptionsAddDelegate")(program->options(),
                                                                                delegate);
}

std::vector<float> run(Program* program, const std::vector<float>& values) {
  EXPECT_EQ(program->allocate(), kOk) << program->messages();
  EXPECT_EQ(program->copyIn(program->input(0), values.data(), values.size() * sizeof(float)), kOk);
  if (program->invoke() != kOk) return {};
  const TensorStruct& output = *program->output(0);
  const auto* const data = static_cast<const float*>(output.data);
  return {data, data + output.bytes / sizeof(float)};
}

TEST(ProgramDelegates, AStructureComputesWhatItTakes) {
  Record record;
  TfLiteDelegate delegate = delegateOf(&record);
  {
    Program program(chain());
    add(&program, &delegate);
    ASSERT_TRUE(program.create()) << program.messages();
    EXPECT_THAT(record.plan, ElementsAre(0, 1, 2));
    EXPECT_THAT(record.activations, ElementsAre(1));
    EXPECT_EQ(record.previewed, 2);
    EXPECT_EQ(record.previewedOfWrong, 0);
    EXPECT_EQ(record.made, 2);
    EXPECT_THAT(run(&program, {1, 1, 5}), ElementsAre(-0.0f, -1, -0.0f)) << program.messages();
    EXPECT_EQ(record.invoked, 2);
    EXPECT_THAT(run(&program, {-1, 0, 1}), ElementsAre(-2, -2, -2));
    EXPECT_EQ(record.invoked, 4);
    // Another shape, which the kernels are prepared for.
    const int before = record.prepared;
    ASSERT_EQ(program.resize(0, {1}), kOk);
    EXPECT_EQ(program.allocate(), kOk) << program.messages();
    EXPECT_GT(record.prepared, before);
  }
  EXPECT_EQ(record.made, 0);
}

// What a delegate sees of two nodes' parameters.
struct SeenParameters {
  tflite_abi::ConvParams convolution{};
  tflite_abi::DimensionsParams shape{};
};

TEST(ProgramDelegates, SeeTheParametersOfNodes) {
  ModelWriter model;
  const int32_t input = model.addTensor(TensorType::FLOAT32, {1, 2, 2, 1});
  const int32_t filter = model.addConstant<float>(TensorType::FLOAT32, {1, 1, 1, 1}, {2});
  const int32_t bias = model.addConstant<float>(TensorType::FLOAT32, {1}, {0});
  const int32_t middle = model.addTensor(TensorType::FLOAT32, {1, 2, 2, 1});
  const int32_t output = model.addTensor(TensorType::FLOAT32, {4});
  tflite::schema::Conv2DOptionsT convolution;
  convolution.padding = tflite::schema::Padding::VALID;
  convolution.stride_w = convolution.stride_h = 1;
  model.addOperator(BuiltinOperator::CONV_2D, {input, filter, bias}, {middle}, convolution);
  tflite::schema::ReshapeOptionsT reshape;
  reshape.new_shape = {4};
  model.addOperator(BuiltinOperator::RESHAPE, {middle, model.ints({4})}, {output}, reshape);
  model.setArguments({input}, {output});
  SeenParameters seen;
  TfLiteDelegate delegate{};
  delegate.data_ = &seen;
  delegate.flags = kTfLiteDelegateFlagsAllowDynamicTensors;
  delegate.Prepare = [](TfLiteContext* context, TfLiteDelegate* own) {
    auto& parameters = *static_cast<SeenParameters*>(own->data_);
    for (const int index : {0, 1}) {
      TfLiteNode* node = nullptr;
      TfLiteRegistration* registration = nullptr;
      if (context->GetNodeAndRegistration(context, index, &node, &registration) != kTfLiteOk)
        return kTfLiteError;
      if (index == 0)
        parameters.convolution = *static_cast<const tflite_abi::ConvParams*>(node->builtin_data);
      else
        parameters.shape = *static_cast<const tflite_abi::DimensionsParams*>(node->builtin_data);
    }
    return kTfLiteOk;
  };
  Program program(model.write());
  add(&program, &delegate);
  ASSERT_TRUE(program.create()) << program.messages();
  EXPECT_EQ(seen.convolution.padding, 2);  // 0 is unknown, 1 is SAME
  EXPECT_EQ(seen.convolution.strideWidth, 1);
  EXPECT_EQ(seen.shape.count, 1);
  EXPECT_EQ(seen.shape.values[0], 4);
}

TEST(ProgramDelegates, InputsMayLieInBuffersOfTheDelegate) {
  const auto set =
      function<int(void*, TensorStruct*, int, TfLiteDelegate*)>("TfLiteInterpreterSetBufferHandle");
  Record record;
  record.buffer = {-1, 0, 1};
  TfLiteDelegate delegate = delegateOf(&record);
  delegate.FreeBufferHandle = [](TfLiteContext*, TfLiteDelegate* own, int32_t* handle) {
    static_cast<Record*>(own->data_)->freedHandles.push_back(*handle);
  };
  {
    Program program(chain());
    ASSERT_TRUE(program.create()) << program.messages();
    EXPECT_EQ(set(program.interpreter(), program.input(0), 4, &delegate), kError);
    EXPECT_EQ(function<int(void*, TfLiteDelegate*)>("TfLiteInterpreterModifyGraphWithDelegate")(
                  program.interpreter(), &delegate),
              kOk);
    EXPECT_THAT(run(&program, {1, 1, 5}), ElementsAre(-0.0f, -1, -0.0f));
    ASSERT_EQ(set(program.interpreter(), program.input(0), 4, &delegate), kOk)
        << program.messages();
    int handle = 0;
    TfLiteDelegate* owner = nullptr;
    const int index =
        function<int(void*, int)>("TfLiteInterpreterGetInputTensorIndex")(program.interpreter(), 0);
    EXPECT_EQ(function<int(void*, int, int*, TfLiteDelegate**)>("TfLiteInterpreterGetBufferHandle")(
                  program.interpreter(), index, &handle, &owner),
              kOk);
    EXPECT_EQ(handle, 4);
    EXPECT_EQ(owner, &delegate);
    EXPECT_THAT(run(&program, {1, 1, 5}), ElementsAre(-2, -2, -2));
    EXPECT_EQ(set(program.interpreter(), program.input(0), 5, &delegate), kOk);
    EXPECT_THAT(record.freedHandles, ElementsAre(4));
    TensorStruct other{};
    EXPECT_EQ(set(program.interpreter(), &other, 6, &delegate), kError);
    EXPECT_EQ(set(program.interpreter(), program.input(0), 6, nullptr), kError);
  }
  EXPECT_THAT(record.freedHandles, ElementsAre(4, 5));
}

TEST(ProgramDelegates, KernelsGetConstantsAndAddedLater) {
  Record record;
  record.takenCode = kAddCode;
  TfLiteDelegate delegate = delegateOf(&record);
  {
    Program program(chain());
    ASSERT_TRUE(program.create()) << program.messages();
    EXPECT_THAT(run(&program, {-1, 0, 1}), ElementsAre(-2, -2, -2));
    EXPECT_EQ(function<int(void*, TfLiteDelegate*)>("TfLiteInterpreterModifyGraphWithDelegate")(
                  program.interpreter(), &delegate),
              kOk)
        << program.messages();
    EXPECT_THAT(record.kernelInputs, ElementsAre(2));
    // Allocated as before.
    EXPECT_EQ(program.invoke(), kOk) << program.messages();
    EXPECT_EQ(record.invoked, 1);
    EXPECT_THAT(run(&program, {-1, 0, 1}), ElementsAre(-2, -2, -2));
  }
  EXPECT_EQ(record.made, 0);
}

TEST(ProgramDelegates, SeveralDelegatesShareAGraph) {
  Record first;
  Record second;
  second.takenCode = kAddCode;
  TfLiteDelegate one = delegateOf(&first);
  TfLiteDelegate two = delegateOf(&second);
  {
    Program program(chain());
    add(&program, &one);
    add(&program, &two);
    ASSERT_TRUE(program.create()) << program.messages();
    EXPECT_EQ(second.plan.size(), 3u);
    EXPECT_THAT(run(&program, {-1, 0, 1}), ElementsAre(-2, -2, -2)) << program.messages();
    EXPECT_EQ(first.invoked, 2);
    EXPECT_EQ(second.invoked, 1);
  }
  EXPECT_EQ(first.made + second.made, 0);
}

TEST(ProgramDelegates, OutputsMayDependOnValues) {
  Record record;
  record.isDynamic = true;
  TfLiteDelegate delegate = delegateOf(&record);
  Program program(chain());
  add(&program, &delegate);
  ASSERT_TRUE(program.create()) << program.messages();
  EXPECT_THAT(run(&program, {-1, 0, 1}), ElementsAre(-2, -2, -2)) << program.messages();
}

TEST(ProgramDelegates, FailuresLeaveTheInterpreterUsable) {
  Record record;
  record.prepareResult = kError;
  TfLiteDelegate delegate = delegateOf(&record);
  {
    Program program(chain());
    add(&program, &delegate);
    EXPECT_FALSE(program.create());
    EXPECT_THAT(program.messages(), HasSubstr("no device here"));
    EXPECT_EQ(record.made, 0);
  }
  {
    Program program(chain());
    add(&program, &delegate);
    function<void(void*, bool)>("TfLiteInterpreterOptionsSetEnableDelegateFallback")(
        program.options(), true);
    ASSERT_TRUE(program.create()) << program.messages();
    EXPECT_THAT(run(&program, {-1, 0, 1}), ElementsAre(-2, -2, -2));
  }
  {
    Program program(chain());
    ASSERT_TRUE(program.create());
    const auto modify =
        function<int(void*, TfLiteDelegate*)>("TfLiteInterpreterModifyGraphWithDelegate");
    EXPECT_EQ(modify(program.interpreter(), &delegate), kError);
    EXPECT_EQ(modify(program.interpreter(), nullptr), kError);
    TfLiteDelegate empty{};
    EXPECT_EQ(modify(program.interpreter(), &empty), kError);
    EXPECT_THAT(run(&program, {-1, 0, 1}), ElementsAre(-2, -2, -2));
  }
  EXPECT_EQ(record.invoked, 0);
  EXPECT_EQ(record.made, 0);
  record.prepareResult = kOk;
  // A kernel that cannot be prepared is no kernel.
  record.kernelResult = kError;
  {
    Program program(chain());
    ASSERT_TRUE(program.create());
    EXPECT_EQ(function<int(void*, TfLiteDelegate*)>("TfLiteInterpreterModifyGraphWithDelegate")(
                  program.interpreter(), &delegate),
              kError);
    EXPECT_THAT(run(&program, {-1, 0, 1}), ElementsAre(-2, -2, -2));
    EXPECT_EQ(record.made, 0);
  }
  record.kernelResult = kOk;
  record.invokeResult = kError;
  Program program(chain());
  add(&program, &delegate);
  ASSERT_TRUE(program.create()) << program.messages();
  EXPECT_THAT(run(&program, {-1, 0, 1}), ElementsAre());
  EXPECT_THAT(program.messages(), HasSubstr("the device has gone, code 7"));
}

TEST(ProgramDelegates, StaticSizesLeaveTheTensorsAllocated) {
  Record record;
  TfLiteDelegate delegate = delegateOf(&record, 0);
  Program program(chain());
  add(&program, &delegate);
  ASSERT_TRUE(program.create()) << program.messages();
  ASSERT_NE(program.input(0)->data, nullptr);
  const float values[] = {-1, 0, 1};
  EXPECT_EQ(program.copyIn(program.input(0), values, sizeof(values)), kOk);
  EXPECT_EQ(program.invoke(), kOk) << program.messages();
  EXPECT_EQ(static_cast<const float*>(program.output(0)->data)[2], -2);
  // One for dynamic sizes leaves that to the program.
  TfLiteDelegate dynamic = delegateOf(&record, 1);
  Program other(chain());
  add(&other, &dynamic);
  ASSERT_TRUE(other.create()) << other.messages();
  EXPECT_EQ(other.input(0)->data, nullptr);
}

TEST(ProgramDelegates, AFailedRunFallsBackWhereThatIsEnabled) {
  Record first;
  first.invokeResult = kError;
  Record second = first;
  second.takenCode = kAddCode;
  TfLiteDelegate one = delegateOf(&first);
  TfLiteDelegate two = delegateOf(&second, 0);
  Program program(chain());
  add(&program, &one);
  add(&program, &two);
  function<void(void*, bool)>("TfLiteInterpreterOptionsSetEnableDelegateFallback")(
      program.options(), true);
  ASSERT_TRUE(program.create()) << program.messages();
  EXPECT_EQ(first.made + second.made, 3);
  const float values[] = {-1, 0, 1};
  EXPECT_EQ(program.copyIn(program.input(0), values, sizeof(values)), kOk);
  constexpr int kDelegateError = 2;
  EXPECT_EQ(program.invoke(), kDelegateError);
  EXPECT_THAT(program.messages(), HasSubstr("the device has gone, code 7"));
  EXPECT_EQ(static_cast<const float*>(program.output(0)->data)[0], -2);
  EXPECT_EQ(first.made + second.made, 0);
  const int before = first.invoked + second.invoked;
  EXPECT_THAT(run(&program, {-1, 0, 1}), ElementsAre(-2, -2, -2));
  EXPECT_EQ(first.invoked + second.invoked, before);
  // As a delegate without the fallback would stay, this one is gone for good.
  ASSERT_EQ(program.resize(0, {1}), kOk);
  EXPECT_EQ(program.allocate(), kOk) << program.messages();
  EXPECT_EQ(program.invoke(), kOk) << program.messages();
}

TEST(ProgramDelegates, ACancelledRunEndsBeforeTheNextOperation) {
  Record record;
  TfLiteDelegate delegate = delegateOf(&record);
  Program program(chain());
  add(&program, &delegate);
  EXPECT_EQ(function<int(void*, bool)>("TfLiteInterpreterOptionsEnableCancellation")(
                program.options(), true),
            kOk);
  ASSERT_TRUE(program.create()) << program.messages();
  ASSERT_EQ(program.allocate(), kOk) << program.messages();
  ASSERT_EQ(program.invoke(), kOk) << program.messages();
  ASSERT_EQ(record.invoked, 2);
  record.cancelled = program.interpreter();
  constexpr int kCancelled = 8;
  EXPECT_EQ(program.invoke(), kCancelled);
  EXPECT_EQ(record.invoked, 3);
  record.cancelled = nullptr;
  EXPECT_THAT(run(&program, {-1, 0, 1}), ElementsAre(-2, -2, -2));
}

TEST(ProgramDelegates, StaticSizesAreAskedFor) {
  ModelWriter model;
  const int32_t input = model.addTensor(TensorType::FLOAT32, {4});
  const int32_t output = model.addTensor(TensorType::INT64, {1, 1});
  model.tensor(output).shape_signature = {-1, 1};
  model.addOperator(BuiltinOperator::WHERE, {input}, {output});
  model.setArguments({input}, {output});
  Record record;
  TfLiteDelegate delegate = delegateOf(&record, 0);
  Program program(model.write());
  add(&program, &delegate);
  EXPECT_FALSE(program.create());
  EXPECT_THAT(program.messages(), HasSubstr("static sizes only"));
  EXPECT_TRUE(record.plan.empty());
}

// --- The opaque interface ---

struct OpaqueParams {
  TfLiteOpaqueDelegate* delegate;
  void* data;
  TfLiteIntArray* nodes;
  TfLiteIntArray* inputs;
  TfLiteIntArray* outputs;
};

void* initOpaque(TfLiteOpaqueContext* /*context*/, const char* buffer, size_t /*length*/) {
  const auto& params = *reinterpret_cast<const OpaqueParams*>(buffer);
  auto* const record = static_cast<Record*>(params.data);
  record->made += params.nodes->size;
  return record;
}

void freeOpaque(TfLiteOpaqueContext* /*context*/, void* state) {
  static_cast<Record*>(state)->made = 0;
}

TfLiteStatus invokeOpaque(TfLiteOpaqueContext* context, TfLiteOpaqueNode* node) {
  auto& record = *static_cast<Record*>(
      function<void*(const TfLiteOpaqueNode*)>("TfLiteOpaqueNodeGetUserData")(node));
  ++record.invoked;
  const auto input =
      function<const TfLiteOpaqueTensor*(const TfLiteOpaqueContext*, const TfLiteOpaqueNode*, int)>(
          "TfLiteOpaqueNodeGetInput")(context, node, 0);
  const auto output =
      function<TfLiteOpaqueTensor*(TfLiteOpaqueContext*, const TfLiteOpaqueNode*, int)>(
          "TfLiteOpaqueNodeGetOutput")(context, node, 0);
  const auto data = function<void*(const TfLiteOpaqueTensor*)>("TfLiteOpaqueTensorData");
  const size_t count =
      function<size_t(const TfLiteOpaqueTensor*)>("TfLiteOpaqueTensorByteSize")(input) /
      sizeof(float);
  // All three nodes at once.
  for (size_t i = 0; i < count; ++i)
    static_cast<float*>(data(output))[i] =
        -std::max(0.0f, static_cast<float>(i + 1) - static_cast<const float*>(data(input))[i]);
  return kTfLiteOk;
}

TfLiteStatus prepareOpaque(TfLiteOpaqueContext* context, TfLiteOpaqueDelegate* delegate,
                           void* data) {
  auto& record = *static_cast<Record*>(data);
  TfLiteIntArray* plan = nullptr;
  if (function<TfLiteStatus(TfLiteOpaqueContext*, TfLiteIntArray**)>(
          "TfLiteOpaqueContextGetExecutionPlan")(context, &plan) != kTfLiteOk)
    return kTfLiteError;
  record.plan.assign(plan->data, plan->data + plan->size);
  for (const int index : record.plan) {
    TfLiteOpaqueNode* node = nullptr;
    TfLiteOperator* registration = nullptr;
    if (function<TfLiteStatus(TfLiteOpaqueContext*, int, TfLiteOpaqueNode**, TfLiteOperator**)>(
            "TfLiteOpaqueContextGetNodeAndRegistration")(context, index, &node, &registration) !=
        kTfLiteOk)
      return kTfLiteError;
    if (function<int(const TfLiteOperator*)>("TfLiteOperatorGetBuiltInCode")(registration) !=
        kAddCode)
      continue;
    record.activations.push_back(*static_cast<const int*>(
        function<void*(const TfLiteOpaqueNode*)>("TfLiteOpaqueNodeGetBuiltinData")(node)));
  }
  const int* inputs = nullptr;
  int count = 0;
  if (function<TfLiteStatus(const TfLiteOpaqueContext*, const int**, int*)>(
          "TfLiteOpaqueContextGetInputs")(context, &inputs, &count) != kTfLiteOk)
    return kTfLiteError;
  record.kernelInputs.assign(inputs, inputs + count);
  TfLiteOperator* const kernel = function<TfLiteOperator*(int, const char*, int)>(
      "TfLiteOperatorCreate")(51, "Opaque kernel", 1);
  function<void(TfLiteOperator*, void*)>("TfLiteOperatorSetInit")(
      kernel, reinterpret_cast<void*>(initOpaque));
  function<void(TfLiteOperator*, void*)>("TfLiteOperatorSetFree")(
      kernel, reinterpret_cast<void*>(freeOpaque));
  function<void(TfLiteOperator*, void*)>("TfLiteOperatorSetInvoke")(
      kernel, reinterpret_cast<void*>(invokeOpaque));
  return function<TfLiteStatus(TfLiteOpaqueContext*, TfLiteOperator*, const TfLiteIntArray*,
                               TfLiteOpaqueDelegate*)>(
      "TfLiteOpaqueContextReplaceNodeSubsetsWithDelegateKernels")(context, kernel, plan, delegate);
}

TEST(ProgramDelegates, AnOpaqueOneTakesTheWholeGraph) {
  Record record;
  TfLiteOpaqueDelegateBuilder builder{};
  builder.data = &record;
  builder.Prepare = prepareOpaque;
  TfLiteOpaqueDelegate* const delegate =
      function<TfLiteOpaqueDelegate*(const TfLiteOpaqueDelegateBuilder*)>(
          "TfLiteOpaqueDelegateCreate")(&builder);
  {
    Program program(chain());
    add(&program, delegate);
    ASSERT_TRUE(program.create()) << program.messages();
    EXPECT_THAT(record.plan, ElementsAre(0, 1, 2));
    EXPECT_THAT(record.activations, ElementsAre(1));
    EXPECT_THAT(record.kernelInputs, ElementsAre(0));
    EXPECT_EQ(record.made, 3);
    EXPECT_THAT(run(&program, {-1, 0, 1}), ElementsAre(-2, -2, -2)) << program.messages();
    EXPECT_EQ(record.invoked, 1);
  }
  EXPECT_EQ(record.made, 0);
  function<void(TfLiteOpaqueDelegate*)>("TfLiteOpaqueDelegateDelete")(delegate);
}

}  // namespace
}  // namespace hearth::tflite_c::testing
