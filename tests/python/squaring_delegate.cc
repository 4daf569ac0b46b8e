// SPDX-License-Identifier: Apache-2.0
// An external delegate for delegate_test.py. It computes SQUARE of float32, or MUL of a tensor with
// itself, times the option "factor", and counts what happens to it. The option "fail" makes a call
// fail: "creation", "preparation" or "invocation".
#include <cstdlib>
#include <cstring>
#include <vector>

#include "tflite_abi/structures.h"

namespace {

constexpr int32_t kMul = 18;
constexpr int32_t kSquare = 92;

struct Counts {
  int created;
  int destroyed;
  int offered;   // graphs
  int taken;     // nodes
  int released;  // kernels
  int invoked;   // kernels
} counts;

int (*onDestruction)(const char* what) = nullptr;

struct Squaring {
  TfLiteDelegate structure{};
  float factor = 1;
  bool failsToPrepare = false;
  bool failsToInvoke = false;
};

TfLiteIntArray* arrayOf(const std::vector<int32_t>& values) {
  auto* const made = static_cast<TfLiteIntArray*>(
      std::malloc(sizeof(TfLiteIntArray) + values.size() * sizeof(int32_t)));
  made->size = static_cast<int32_t>(values.size());
  std::memcpy(made->data, values.data(), values.size() * sizeof(int32_t));
  return made;
}

void* initKernel(TfLiteContext* /*context*/, const char* buffer, size_t /*length*/) {
  return reinterpret_cast<const TfLiteDelegateParams*>(buffer)->delegate->data_;
}

void freeKernel(TfLiteContext* /*context*/, void* /*state*/) {
  ++counts.released;
}

TfLiteStatus prepareKernel(TfLiteContext* context, TfLiteNode* node) {
  const TfLiteIntArray* const dims = context->tensors[node->inputs->data[0]].dims;
  return context->ResizeTensor(context, &context->tensors[node->outputs->data[0]],
                               arrayOf({dims->data, dims->data + dims->size}));
}

TfLiteStatus invokeKernel(TfLiteContext* context, TfLiteNode* node) {
  const auto& squaring = *static_cast<Squaring*>(node->user_data);
  ++counts.invoked;
  if (squaring.failsToInvoke) {
    context->ReportError(context, "the square of %d is gone", 7);
    return kTfLiteError;
  }
  const TfLiteTensor& input = context->tensors[node->inputs->data[0]];
  const auto* const from = static_cast<const float*>(input.data);
  auto* const to = static_cast<float*>(context->tensors[node->outputs->data[0]].data);
  for (size_t i = 0; i < input.bytes / sizeof(float); ++i)
    to[i] = from[i] * from[i] * squaring.factor;
  return kTfLiteOk;
}

bool isSquare(const TfLiteNode& node, int32_t code) {
  if (code != kMul) return code == kSquare;
  // The parameters begin with the activation.
  return node.inputs->data[0] == node.inputs->data[1] &&
         *static_cast<const int32_t*>(node.builtin_data) == 0;
}

TfLiteStatus prepare(TfLiteContext* context, TfLiteDelegate* delegate) {
  ++counts.offered;
  if (static_cast<Squaring*>(delegate->data_)->failsToPrepare) {
    context->ReportError(context, "no %s here", "accelerator");
    return kTfLiteError;
  }
  TfLiteIntArray* plan = nullptr;
  if (context->GetExecutionPlan(context, &plan) != kTfLiteOk) return kTfLiteError;
  TfLiteRegistration kernel{};
  kernel.init = initKernel;
  kernel.free = freeKernel;
  kernel.prepare = prepareKernel;
  kernel.invoke = invokeKernel;
  kernel.custom_name = "Squaring";
  kernel.version = 1;
  std::vector<int32_t> nodes;
  for (int32_t i = 0; i < plan->size; ++i) {
    TfLiteNode* node = nullptr;
    TfLiteRegistration* registration = nullptr;
    if (context->GetNodeAndRegistration(context, plan->data[i], &node, &registration) != kTfLiteOk)
      return kTfLiteError;
    if (isSquare(*node, registration->builtin_code) && node->delegate == nullptr &&
        context->tensors[node->inputs->data[0]].type == kTfLiteFloat32)
      nodes.push_back(plan->data[i]);
  }
  counts.taken += static_cast<int>(nodes.size());
  TfLiteIntArray* const list = arrayOf(nodes);
  const TfLiteStatus status =
      context->ReplaceNodeSubsetsWithDelegateKernels(context, kernel, list, delegate);
  std::free(list);
  return status;
}

}  // namespace

#define HEARTH_EXPORTED extern "C" __attribute__((visibility("default")))

HEARTH_EXPORTED TfLiteDelegate* tflite_plugin_create_delegate(const char* const* names,
                                                              const char* const* values,
                                                              size_t count,
                                                              void (*report)(const char*)) {
  auto* const made = new Squaring;
  made->structure.data_ = made;
  made->structure.Prepare = prepare;
  made->structure.flags = kTfLiteDelegateFlagsAllowDynamicTensors;
  bool isRefused = false;
  for (size_t i = 0; i < count; ++i) {
    if (std::strcmp(names[i], "factor") == 0) {
      made->factor = std::strtof(values[i], nullptr);
    } else if (std::strcmp(names[i], "fail") == 0) {
      isRefused = std::strcmp(values[i], "creation") == 0;
      made->failsToPrepare = std::strcmp(values[i], "preparation") == 0;
      made->failsToInvoke = std::strcmp(values[i], "invocation") == 0;
    }
  }
  if (isRefused) {
    report("It was asked to fail.");
    delete made;
    return nullptr;
  }
  ++counts.created;
  return &made->structure;
}

HEARTH_EXPORTED void tflite_plugin_destroy_delegate(TfLiteDelegate* delegate) {
  if (onDestruction != nullptr) onDestruction("delegate");
  ++counts.destroyed;
  delete static_cast<Squaring*>(delegate->data_);
}

HEARTH_EXPORTED void set_destroy_callback(int (*callback)(const char* what)) {
  onDestruction = callback;
}

// Returns what has happened since the last call.
HEARTH_EXPORTED Counts take_counts() {
  const Counts result = counts;
  counts = {};
  return result;
}
