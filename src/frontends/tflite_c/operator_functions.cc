// SPDX-License-Identifier: Apache-2.0
// Operators that programs define, and the opaque nodes and contexts that their functions get.
#include <cstdio>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "base/caught.h"
#include "frontends/tflite_c/reporter.h"
#include "frontends/tflite_c/tensor_table.h"
#include "tflite_abi/context.h"
#include "tflite_abi/operator.h"
#include "tflite_abi/tensor_type.h"

namespace {

using hearth::ErrorCode;
using hearth::Result;
using hearth::tflite_abi::Context;

// Gives the list of a node's tensors; kTfLiteError where there is none.
TfLiteStatus giveList(const TfLiteIntArray* list, const int** values, int* count) {
  if (values == nullptr || count == nullptr) return kTfLiteError;
  *values = list == nullptr ? nullptr : list->data;
  *count = list == nullptr ? 0 : list->size;
  return kTfLiteOk;
}

TfLiteStatus giveVector(const std::vector<int32_t>* list, const int** values, int* count) {
  if (list == nullptr || values == nullptr || count == nullptr) return kTfLiteError;
  *values = list->data();
  *count = static_cast<int>(list->size());
  return kTfLiteOk;
}

int elementOf(const TfLiteIntArray* list, int index) {
  return list == nullptr || index < 0 || index >= list->size ? -1 : list->data[index];
}

TfLiteStatus statusOf(const TfLiteOperator* registration) {
  return registration == nullptr ? kTfLiteError : kTfLiteOk;
}

}  // namespace

extern "C" {

TfLiteOperator* TfLiteOperatorCreate(int32_t builtin_code, const char* custom_name, int version) {
  return TfLiteOperatorCreateWithData(builtin_code, custom_name, version, nullptr);
}

TfLiteOperator* TfLiteOperatorCreateWithData(int32_t builtin_code, const char* custom_name,
                                             int version, void* user_data) {
  return hearth::tflite_c::guardedPointer(hearth::tflite_c::Reporter(),
                                          [&]() -> Result<TfLiteOperator*> {
                                            auto made = std::make_unique<TfLiteOperator>();
                                            made->builtinCode = builtin_code;
                                            made->isCustom = custom_name != nullptr;
                                            if (custom_name != nullptr)
                                              made->customName = custom_name;
                                            made->givenName = custom_name;
                                            made->version = version;
                                            made->user = user_data;
                                            return made.release();
                                          });
}

void TfLiteOperatorDelete(TfLiteOperator* registration) {
  delete registration;
}

int32_t TfLiteOperatorGetBuiltInCode(const TfLiteOperator* registration) {
  return registration == nullptr ? -1 : registration->builtinCode;
}

const char* TfLiteOperatorGetCustomName(const TfLiteOperator* registration) {
  if (registration == nullptr || !registration->isCustom) return nullptr;
  return registration->givenName != nullptr ? registration->givenName
                                            : registration->customName.c_str();
}

int TfLiteOperatorGetVersion(const TfLiteOperator* registration) {
  return registration == nullptr ? -1 : registration->version;
}

void* TfLiteOperatorGetUserData(const TfLiteOperator* registration) {
  return registration == nullptr ? nullptr : registration->user;
}

void TfLiteOperatorSetInit(TfLiteOperator* registration, TfLiteOperatorInit init) {
  if (registration != nullptr) registration->init = init;
}

TfLiteStatus TfLiteOperatorSetInitWithData(TfLiteOperator* registration,
                                           TfLiteOperatorInitWithData init) {
  if (registration != nullptr) registration->initWithData = init;
  return statusOf(registration);
}

void TfLiteOperatorSetFree(TfLiteOperator* registration, TfLiteOperatorFree release) {
  if (registration != nullptr) registration->release = release;
}

TfLiteStatus TfLiteOperatorSetFreeWithData(TfLiteOperator* registration,
                                           TfLiteOperatorFreeWithData release) {
  if (registration != nullptr) registration->releaseWithData = release;
  return statusOf(registration);
}

void TfLiteOperatorSetPrepare(TfLiteOperator* registration, TfLiteOperatorStep prepare) {
  if (registration != nullptr) registration->prepare = prepare;
}

TfLiteStatus TfLiteOperatorSetPrepareWithData(TfLiteOperator* registration,
                                              TfLiteOperatorStepWithData prepare) {
  if (registration != nullptr) registration->prepareWithData = prepare;
  return statusOf(registration);
}

void TfLiteOperatorSetInvoke(TfLiteOperator* registration, TfLiteOperatorStep invoke) {
  if (registration != nullptr) registration->invoke = invoke;
}

TfLiteStatus TfLiteOperatorSetInvokeWithData(TfLiteOperator* registration,
                                             TfLiteOperatorStepWithData invoke) {
  if (registration != nullptr) registration->invokeWithData = invoke;
  return statusOf(registration);
}

// No interpreter runs asynchronously, and none shares memory of inputs and outputs.
void TfLiteOperatorSetAsyncKernel(TfLiteOperator* /*registration*/,
                                  TfLiteOperatorKernel /*kernel*/) {}

TfLiteStatus TfLiteOperatorSetAsyncKernelWithData(TfLiteOperator* registration,
                                                  TfLiteOperatorKernelWithData /*kernel*/) {
  return statusOf(registration);
}

void TfLiteOperatorSetInplaceOperator(TfLiteOperator* /*registration*/,
                                      uint64_t /*inplace_operator*/) {}

const TfLiteOpaqueTensor* TfLiteOpaqueNodeGetInput(const TfLiteOpaqueContext* context,
                                                   const TfLiteOpaqueNode* node, int index) {
  return TfLiteOpaqueContextGetOpaqueTensor(context,
                                            TfLiteOpaqueNodeGetInputTensorIndex(node, index));
}

TfLiteOpaqueTensor* TfLiteOpaqueNodeGetOutput(TfLiteOpaqueContext* context,
                                              const TfLiteOpaqueNode* node, int index) {
  return TfLiteOpaqueContextGetOpaqueTensor(context,
                                            TfLiteOpaqueNodeGetOutputTensorIndex(node, index));
}

int TfLiteOpaqueNodeNumberOfInputs(const TfLiteOpaqueNode* node) {
  return node == nullptr || node->inputs == nullptr ? 0 : node->inputs->size;
}

int TfLiteOpaqueNodeNumberOfOutputs(const TfLiteOpaqueNode* node) {
  return node == nullptr || node->outputs == nullptr ? 0 : node->outputs->size;
}

void* TfLiteOpaqueNodeGetUserData(const TfLiteOpaqueNode* node) {
  return node == nullptr ? nullptr : node->user_data;
}

void* TfLiteOpaqueNodeGetBuiltinData(const TfLiteOpaqueNode* node) {
  return node == nullptr ? nullptr : node->builtin_data;
}

TfLiteStatus TfLiteOpaqueNodeGetCustomInitialData(const TfLiteOpaqueNode* node, const void** data,
                                                  int* size) {
  if (node == nullptr || data == nullptr || size == nullptr) return kTfLiteError;
  *data = node->custom_initial_data;
  *size = node->custom_initial_data_size;
  return kTfLiteOk;
}

TfLiteStatus TfLiteOpaqueNodeInputs(const TfLiteOpaqueNode* node, const int** inputs, int* count) {
  return node == nullptr ? kTfLiteError : giveList(node->inputs, inputs, count);
}

TfLiteStatus TfLiteOpaqueNodeOutputs(const TfLiteOpaqueNode* node, const int** outputs,
                                     int* count) {
  return node == nullptr ? kTfLiteError : giveList(node->outputs, outputs, count);
}

TfLiteStatus TfLiteOpaqueNodeSetTemporaries(TfLiteOpaqueNode* node, const int* temporaries,
                                            int count) {
  if (node == nullptr || count < 0 || (temporaries == nullptr && count != 0)) return kTfLiteError;
  TfLiteIntArray* const list = TfLiteIntArrayCreate(count);
  if (list == nullptr) return kTfLiteError;
  for (int i = 0; i < count; ++i) list->data[i] = temporaries[i];
  TfLiteIntArrayFree(node->temporaries);
  node->temporaries = list;
  return kTfLiteOk;
}

TfLiteStatus TfLiteOpaqueNodeTemporaries(const TfLiteOpaqueNode* node, const int** temporaries,
                                         int* count) {
  return node == nullptr ? kTfLiteError : giveList(node->temporaries, temporaries, count);
}

int TfLiteOpaqueNodeGetInputTensorIndex(const TfLiteOpaqueNode* node, int index) {
  return node == nullptr ? -1 : elementOf(node->inputs, index);
}

int TfLiteOpaqueNodeGetOutputTensorIndex(const TfLiteOpaqueNode* node, int index) {
  return node == nullptr ? -1 : elementOf(node->outputs, index);
}

TfLiteStatus TfLiteOpaqueContextGetExecutionPlan(TfLiteOpaqueContext* context,
                                                 TfLiteIntArray** plan) {
  if (context == nullptr || plan == nullptr || context->GetExecutionPlan == nullptr)
    return kTfLiteError;
  return context->GetExecutionPlan(context, plan);
}

TfLiteStatus TfLiteOpaqueContextGetNodeAndRegistration(TfLiteOpaqueContext* context, int index,
                                                       TfLiteOpaqueNode** node,
                                                       TfLiteOperator** registration) {
  Context* const own = Context::of(context);
  return own == nullptr ? kTfLiteError : own->node(index, node, registration);
}

// The registration becomes the library's.
TfLiteStatus TfLiteOpaqueContextReplaceNodeSubsetsWithDelegateKernels(
    TfLiteOpaqueContext* context, TfLiteOperator* registration, const TfLiteIntArray* nodes,
    TfLiteOpaqueDelegate* delegate) {
  const std::unique_ptr<TfLiteOperator> taken(registration);
  Context* const own = Context::of(context);
  if (own == nullptr || registration == nullptr) return kTfLiteError;
  TfLiteStatus status = kTfLiteError;
  hearth::base::logged("A delegate's choice of nodes",
                       [&] { status = own->replace(*registration, nodes, delegate); });
  return status;
}

TfLiteOpaqueTensor* TfLiteOpaqueContextGetOpaqueTensor(const TfLiteOpaqueContext* context,
                                                       int index) {
  if (context == nullptr || index < 0 || static_cast<size_t>(index) >= context->tensors_size ||
      context->tensors == nullptr)
    return nullptr;
  return &context->tensors[index];
}

TfLiteStatus TfLiteOpaqueContextGetInputs(const TfLiteOpaqueContext* context, const int** inputs,
                                          int* count) {
  const Context* const own = Context::of(context);
  return giveVector(own == nullptr ? nullptr : own->inputs(), inputs, count);
}

TfLiteStatus TfLiteOpaqueContextGetOutputs(const TfLiteOpaqueContext* context, const int** outputs,
                                           int* count) {
  const Context* const own = Context::of(context);
  return giveVector(own == nullptr ? nullptr : own->outputs(), outputs, count);
}

TfLiteStatus TfLiteOpaqueContextGetVariables(const TfLiteOpaqueContext* context,
                                             const int** variables, int* count) {
  const Context* const own = Context::of(context);
  return giveVector(own == nullptr ? nullptr : own->variables(), variables, count);
}

size_t TfLiteOpaqueContextGetNumNodes(const TfLiteOpaqueContext* context) {
  const Context* const own = Context::of(context);
  return own == nullptr ? 0 : own->nodeCount();
}

size_t TfLiteOpaqueContextGetNumTensors(const TfLiteOpaqueContext* context) {
  return context == nullptr ? 0 : context->tensors_size;
}

const char* TfLiteOpaqueContextGetName(const TfLiteOpaqueContext* context) {
  const Context* const own = Context::of(context);
  return own == nullptr ? "" : own->name();
}

TfLiteStatus TfLiteOpaqueContextResizeTensor(TfLiteOpaqueContext* context,
                                             TfLiteOpaqueTensor* tensor, TfLiteIntArray* dims) {
  if (context == nullptr || context->ResizeTensor == nullptr) {
    TfLiteIntArrayFree(dims);
    return kTfLiteError;
  }
  return context->ResizeTensor(context, tensor, dims);
}

TfLiteStatus TfLiteOpaqueContextAcquireSubgraphContext(TfLiteOpaqueContext* context, int subgraph,
                                                       TfLiteOpaqueContext** acquired) {
  Context* const own = Context::of(context);
  return own == nullptr ? kTfLiteError : own->acquireSubgraph(subgraph, acquired);
}

TfLiteStatus TfLiteOpaqueContextReleaseSubgraphContext(TfLiteOpaqueContext* context, int subgraph) {
  Context* const own = Context::of(context);
  return own == nullptr ? kTfLiteError : own->releaseSubgraph(subgraph);
}

TfLiteStatus TfLiteOpaqueContextMarkSubgraphAsDelegationSkippable(TfLiteOpaqueContext* context,
                                                                  int subgraph) {
  Context* const own = Context::of(context);
  return own == nullptr ? kTfLiteError : own->skipSubgraph(subgraph);
}

TfLiteStatus TfLiteOpaqueContextGetNodeInitDataMmapInfo(const TfLiteOpaqueContext* /*context*/,
                                                        const TfLiteOpaqueNode* /*node*/,
                                                        int* /*fd*/, int64_t* /*offset*/,
                                                        int64_t* /*size*/) {
  return kTfLiteError;
}

TfLiteStatus TfLiteOpaqueContextGetSizeOfType(TfLiteOpaqueContext* /*context*/, TfLiteType type,
                                              size_t* bytes) {
  const uint32_t bits = hearth::tflite_abi::elementBits(type);
  if (bytes == nullptr || bits == 0) return kTfLiteError;
  *bytes = (bits + 7) / 8;
  return kTfLiteOk;
}

void TfLiteOpaqueContextReportErrorVa(TfLiteOpaqueContext* context, const char* format,
                                      va_list arguments) {
  if (format == nullptr) return;
  char text[1024];
  if (std::vsnprintf(text, sizeof(text), format, arguments) < 0) return;
  if (context != nullptr && context->ReportError != nullptr)
    context->ReportError(context, "%s", text);
  else
    hearth::tflite_c::Reporter().failure(hearth::Error(ErrorCode::kOpFailed, text));
}

void TfLiteOpaqueContextReportError(TfLiteOpaqueContext* context, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  TfLiteOpaqueContextReportErrorVa(context, format, arguments);
  va_end(arguments);
}

}  // extern "C"
