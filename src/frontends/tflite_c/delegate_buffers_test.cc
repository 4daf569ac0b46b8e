// SPDX-License-Identifier: Apache-2.0
// Tensors that lie in buffers of a program's delegate, or get their dimensions from it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <vector>

#include "frontends/tflite/testing/model_writer.h"
#include "frontends/tflite_c/declarations.h"
#include "frontends/tflite_c/testing/library.h"

namespace hearth::tflite_c::testing {
namespace {

using ::testing::ElementsAre;
using tflite::ModelWriter;
using tflite::schema::BuiltinOperator;
using tflite::schema::TensorType;

// A delegate that takes the first operation. Its kernel writes the negated input, or leaves that in
// its buffer where the output has a handle.
struct Record {
  std::vector<float> buffer;
  std::vector<int> copied;  // handles
  std::vector<int> freed;
  int invokeResult = kOk;
};

TfLiteStatus prepareKernel(TfLiteContext* context, TfLiteNode* node) {
  const TfLiteTensor& input = context->tensors[node->inputs->data[0]];
  return context->ResizeTensor(
      context, &context->tensors[node->outputs->data[0]],
      function<TfLiteIntArray*(const TfLiteIntArray*)>("TfLiteIntArrayCopy")(input.dims));
}

TfLiteStatus invokeKernel(TfLiteContext* context, TfLiteNode* node) {
  auto& record = *static_cast<Record*>(node->user_data);
  if (record.invokeResult != kOk) return kTfLiteError;
  const TfLiteTensor& input = context->tensors[node->inputs->data[0]];
  TfLiteTensor& output = context->tensors[node->outputs->data[0]];
  const auto* const data = static_cast<const float*>(input.data);
  std::vector<float> values(data, data + input.bytes / sizeof(float));
  if (input.buffer_handle >= 0 && input.data_is_stale) values = record.buffer;
  for (float& value : values) value = -value;
  if (output.buffer_handle >= 0) {
    record.buffer = values;
    output.data_is_stale = true;
  } else {
    std::ranges::copy(values, static_cast<float*>(output.data));
  }
  return kTfLiteOk;
}

TfLiteDelegate delegateOf(Record* record) {
  TfLiteDelegate delegate{};
  delegate.data_ = record;
  delegate.Prepare = [](TfLiteContext* context, TfLiteDelegate* own) {
    TfLiteRegistration registration{};
    registration.init = [](TfLiteContext*, const char* buffer, size_t) {
      return reinterpret_cast<const TfLiteDelegateParams*>(buffer)->delegate->data_;
    };
    registration.prepare = prepareKernel;
    registration.invoke = invokeKernel;
    TfLiteIntArray* const nodes = function<TfLiteIntArray*(int)>("TfLiteIntArrayCreate")(1);
    nodes->data[0] = 0;
    const TfLiteStatus status =
        context->ReplaceNodeSubsetsWithDelegateKernels(context, registration, nodes, own);
    std::free(nodes);
    return status;
  };
  delegate.CopyFromBufferHandle = [](TfLiteContext*, TfLiteDelegate* own, int32_t handle,
                                     TfLiteTensor* tensor) {
    auto& seen = *static_cast<Record*>(own->data_);
    seen.copied.push_back(handle);
    std::ranges::copy(seen.buffer, static_cast<float*>(tensor->data));
    return kTfLiteOk;
  };
  delegate.FreeBufferHandle = [](TfLiteContext*, TfLiteDelegate* own, int32_t* handle) {
    static_cast<Record*>(own->data_)->freed.push_back(*handle);
  };
  return delegate;
}

// NEG, and behind it another one if `isLonger`.
std::vector<uint8_t> negations(bool isLonger) {
  ModelWriter model;
  const int32_t input = model.addTensor(TensorType::FLOAT32, {2});
  const int32_t output = model.addTensor(TensorType::FLOAT32, {2});
  model.addOperator(BuiltinOperator::NEG, {input}, {output});
  model.setArguments({input}, {output});
  if (isLonger) {
    const int32_t last = model.addTensor(TensorType::FLOAT32, {2});
    model.addOperator(BuiltinOperator::NEG, {output}, {last});
    model.setArguments({input}, {output, last});
  }
  return model.write();
}

// A program with the delegate and its input set.
class DelegateBuffers : public ::testing::Test {
 protected:
  void start(bool isLonger, bool fallsBack = false) {
    delegate_ = delegateOf(&record_);
    program_ = std::make_unique<Program>(negations(isLonger));
    function<void(void*, TfLiteDelegate*)>("TfLiteInterpreterOptionsAddDelegate")(
        program_->options(), &delegate_);
    function<void(void*, bool)>("TfLiteInterpreterOptionsSetEnableDelegateFallback")(
        program_->options(), fallsBack);
    ASSERT_TRUE(program_->create()) << program_->messages();
    ASSERT_EQ(program_->allocate(), kOk) << program_->messages();
    const std::vector<float> values = {1, 2};
    ASSERT_EQ(program_->copyIn(program_->input(0), values.data(), values.size() * sizeof(float)),
              kOk);
  }
  int setHandle(TensorStruct* tensor, int handle, TfLiteDelegate* delegate) {
    return function<int(void*, TensorStruct*, int, TfLiteDelegate*)>(
        "TfLiteInterpreterSetBufferHandle")(program_->interpreter(), tensor, handle, delegate);
  }
  void allowBufferOutputs() {
    function<void(void*, bool)>("TfLiteSetAllowBufferHandleOutput")(program_->interpreter(), true);
  }
  int ensureReadable(int index) {
    return function<int(void*, int)>("TfLiteInterpreterEnsureTensorDataIsReadable")(
        program_->interpreter(), index);
  }
  static std::vector<float> valuesOf(const TensorStruct& tensor) {
    const auto* const data = static_cast<const float*>(tensor.data);
    return {data, data + tensor.bytes / sizeof(float)};
  }

  Record record_;
  TfLiteDelegate delegate_{};
  std::unique_ptr<Program> program_;
};

TEST_F(DelegateBuffers, OutputsAreCopiedUnlessTheProgramAllowsOtherwise) {
  start(false);
  TensorStruct* const output = program_->output(0);
  EXPECT_EQ(output->delegate, &delegate_);
  ASSERT_EQ(setHandle(output, 3, &delegate_), kOk) << program_->messages();
  ASSERT_EQ(program_->invoke(), kOk) << program_->messages();
  EXPECT_THAT(record_.copied, ElementsAre(3));
  EXPECT_FALSE(output->dataIsStale);
  EXPECT_THAT(valuesOf(*output), ElementsAre(-1, -2));

  allowBufferOutputs();
  ASSERT_EQ(program_->invoke(), kOk) << program_->messages();
  EXPECT_THAT(record_.copied, ElementsAre(3));
  EXPECT_TRUE(output->dataIsStale);
  record_.buffer = {7, 8};
  EXPECT_EQ(ensureReadable(1), kOk);
  EXPECT_EQ(ensureReadable(1), kOk);
  EXPECT_THAT(record_.copied, ElementsAre(3, 3));
  EXPECT_THAT(valuesOf(*output), ElementsAre(7, 8));
  program_.reset();
  EXPECT_THAT(record_.freed, ElementsAre(3));
}

// Hearth reads what the delegate computes, so it has to be in memory.
TEST_F(DelegateBuffers, OutputsThatOthersReadAreCopied) {
  start(true);
  allowBufferOutputs();
  ASSERT_EQ(setHandle(program_->output(0), 3, &delegate_), kOk) << program_->messages();
  ASSERT_EQ(program_->invoke(), kOk) << program_->messages();
  EXPECT_THAT(record_.copied, ElementsAre(3));
  EXPECT_THAT(valuesOf(*program_->output(1)), ElementsAre(1, 2));
}

TEST_F(DelegateBuffers, ATensorOfAnotherDelegateTakesNoHandle) {
  start(false);
  Record other;
  TfLiteDelegate another = delegateOf(&other);
  EXPECT_EQ(setHandle(program_->output(0), 3, &another), kError);
  EXPECT_EQ(program_->output(0)->delegate, &delegate_);
  EXPECT_EQ(program_->output(0)->bufferHandle, -1);
}

TEST_F(DelegateBuffers, AStaleTensorWithoutABufferIsAnError) {
  start(false);
  program_->output(0)->dataIsStale = true;
  EXPECT_EQ(ensureReadable(1), kError);
}

TEST_F(DelegateBuffers, AFallbackCopiesInputsFirst) {
  start(false, true);
  TensorStruct* const input = program_->input(0);
  ASSERT_EQ(setHandle(input, 5, &delegate_), kOk) << program_->messages();
  record_.buffer = {30, 40};
  input->dataIsStale = true;
  ASSERT_EQ(program_->invoke(), kOk) << program_->messages();
  EXPECT_THAT(valuesOf(*program_->output(0)), ElementsAre(-30, -40));
  EXPECT_TRUE(record_.copied.empty());

  record_.invokeResult = kError;
  EXPECT_EQ(program_->invoke(), kTfLiteDelegateError) << program_->messages();
  EXPECT_THAT(record_.copied, ElementsAre(5));
  EXPECT_THAT(record_.freed, ElementsAre(5));
  EXPECT_THAT(valuesOf(*program_->output(0)), ElementsAre(-30, -40));
  EXPECT_EQ(program_->output(0)->delegate, nullptr);
  EXPECT_EQ(input->bufferHandle, -1);
  EXPECT_EQ(program_->invoke(), kOk) << program_->messages();
}

// As TensorFlow Lite's own test of TfLiteOpaqueContextResizeTensor has it.
TEST(DelegateDimensions, AreTheArrayThatTheProgramGave) {
  TfLiteDelegate delegate{};
  delegate.Prepare = [](TfLiteContext* context, TfLiteDelegate*) {
    TfLiteTensor& output = context->tensors[1];
    TfLiteIntArray* const dims = function<TfLiteIntArray*(int)>("TfLiteIntArrayCreate")(2);
    dims->data[0] = 3;
    dims->data[1] = 4;
    EXPECT_EQ(context->ResizeTensor(context, &output, dims), kTfLiteOk);
    EXPECT_EQ(output.dims, dims);
    EXPECT_EQ(output.bytes, 12 * sizeof(float));
    dims->data[0] = 2;
    EXPECT_EQ(context->ResizeTensor(context, &output, dims), kTfLiteOk);
    EXPECT_EQ(output.dims, dims);
    EXPECT_EQ(output.bytes, 8 * sizeof(float));
    dims->data[0] = -1;
    EXPECT_EQ(context->ResizeTensor(context, &output, dims), kTfLiteError);
    dims->data[0] = 2;
    output.allocation_type = kTfLiteMmapRo;
    EXPECT_EQ(context->ResizeTensor(context, &output, dims), kTfLiteError);
    output.allocation_type = kTfLiteArenaRw;
    EXPECT_EQ(output.dims->data[1], 4);
    return kTfLiteOk;
  };
  Program program(negations(false));
  function<void(void*, TfLiteDelegate*)>("TfLiteInterpreterOptionsAddDelegate")(program.options(),
                                                                                &delegate);
  EXPECT_TRUE(program.create()) << program.messages();
}

}  // namespace
}  // namespace hearth::tflite_c::testing
