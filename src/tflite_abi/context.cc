// SPDX-License-Identifier: Apache-2.0
#include "tflite_abi/context.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include "base/caught.h"
#include "tflite_abi/operator.h"
#include "tflite_abi/tensors.h"

namespace hearth::tflite_abi {
namespace {

TfLiteStatus refuse(TfLiteContext* context, const char* function) {
  context->ReportError(context, "%s cannot be called here.", function);
  return kTfLiteError;
}

// As the structure has it, with a list of dimensions.
TfLiteStatus resizeExplicit(TfLiteContext* context, TfLiteTensor* tensor, int32_t rank,
                            const int32_t* shape) {
  if (rank < 0 || (shape == nullptr && rank != 0)) return kTfLiteError;
  TfLiteIntArray* dims = nullptr;
  const Status made =
      base::caught([&] { dims = makeIntArray({shape, static_cast<size_t>(rank)}); });
  return made ? context->ResizeTensor(context, tensor, dims) : kTfLiteError;
}

TfLiteStatus refuseMetadata(TfLiteContext* context, const char* /*name*/, const char** /*data*/,
                            size_t* /*bytes*/) {
  return refuse(context, "GetModelMetadata");
}

TfLiteStatus acquire(TfLiteContext* context, int32_t subgraph, TfLiteContext** acquired) {
  return Context::of(context)->acquireSubgraph(subgraph, acquired);
}

TfLiteStatus release(TfLiteContext* context, int32_t subgraph) {
  return Context::of(context)->releaseSubgraph(subgraph);
}

}  // namespace

Context::Context() {
  context_.impl_ = this;
  context_.recommended_num_threads = 1;
  context_.ReportError = reportError;
  context_.ResizeTensor = [](TfLiteContext* context, TfLiteTensor* tensor, TfLiteIntArray* dims) {
    return of(context)->resize(tensor, dims);
  };
  context_.GetExecutionPlan = [](TfLiteContext* context, TfLiteIntArray** plan) {
    return of(context)->plan(plan);
  };
  context_.AddTensors = [](TfLiteContext* context, int32_t count, int32_t* first) {
    return of(context)->addTensors(count, first);
  };
  context_.GetNodeAndRegistration = [](TfLiteContext* context, int32_t index, TfLiteNode** node,
                                       TfLiteRegistration** registration) {
    TfLiteOperator* made = nullptr;
    const TfLiteStatus status = of(context)->node(index, node, &made);
    if (status == kTfLiteOk && registration != nullptr) *registration = &made->structure;
    return status;
  };
  context_.ReplaceNodeSubsetsWithDelegateKernels = [](TfLiteContext* context,
                                                      TfLiteRegistration registration,
                                                      const TfLiteIntArray* nodes,
                                                      TfLiteDelegate* delegate) {
    TfLiteStatus status = kTfLiteError;
    base::logged("A delegate's choice of nodes",
                 [&] { status = of(context)->replace(operatorOf(registration), nodes, delegate); });
    return status;
  };
  context_.PreviewDelegatePartitioning = [](TfLiteContext* context, const TfLiteIntArray* nodes,
                                            TfLiteDelegateParams** partitions, int32_t* count) {
    return of(context)->preview(nodes, partitions, count);
  };
  context_.GetExternalContext = [](TfLiteContext*, int32_t) -> void* {
    return nullptr;
  };
  context_.SetExternalContext = [](TfLiteContext*, int32_t, void*) {
  };
  constexpr size_t kResizeTensorExplicit = 5;
  context_.unused_from_profiler[kResizeTensorExplicit] = reinterpret_cast<void*>(&resizeExplicit);
  constexpr size_t kGetModelMetadata = 2;
  context_.unused_at_end[kGetModelMetadata] = reinterpret_cast<void*>(&refuseMetadata);
  context_.unused_at_end[kGetModelMetadata + 1] = reinterpret_cast<void*>(&acquire);
  context_.unused_at_end[kGetModelMetadata + 2] = reinterpret_cast<void*>(&release);
}

Context* Context::of(const TfLiteContext* context) {
  if (context == nullptr || context->ReportError != reportError) return nullptr;
  return static_cast<Context*>(context->impl_);
}

TfLiteStatus Context::plan(TfLiteIntArray** /*plan*/) {
  return refuse(&context_, "GetExecutionPlan");
}

TfLiteStatus Context::node(int32_t /*index*/, TfLiteNode** /*node*/,
                           TfLiteOperator** /*registration*/) {
  return refuse(&context_, "GetNodeAndRegistration");
}

TfLiteStatus Context::replace(const TfLiteOperator& /*registration*/,
                              const TfLiteIntArray* /*nodes*/, TfLiteDelegate* /*delegate*/) {
  return refuse(&context_, "ReplaceNodeSubsetsWithDelegateKernels");
}

TfLiteStatus Context::preview(const TfLiteIntArray* /*nodes*/,
                              TfLiteDelegateParams** /*partitions*/, int32_t* /*count*/) {
  return refuse(&context_, "PreviewDelegatePartitioning");
}

TfLiteStatus Context::addTensors(int32_t /*count*/, int32_t* /*first*/) {
  return refuse(&context_, "AddTensors");
}

TfLiteStatus Context::acquireSubgraph(int32_t /*subgraph*/, TfLiteContext** /*acquired*/) {
  return refuse(&context_, "AcquireSubgraphContext");
}

TfLiteStatus Context::releaseSubgraph(int32_t /*subgraph*/) {
  return refuse(&context_, "ReleaseSubgraphContext");
}

TfLiteStatus Context::skipSubgraph(int32_t /*subgraph*/) {
  return refuse(&context_, "MarkSubgraphAsDelegationSkippable");
}

void Context::reportError(TfLiteContext* context, const char* format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  const int length = std::vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  if (length < 0) return;
  base::logged("A program's message", [&] {
    std::string& message = of(context)->message_;
    if (!message.empty()) message += ' ';
    message += text;
  });
}

TfLiteOperator operatorOf(const TfLiteRegistration& registration) {
  TfLiteOperator made;
  made.builtinCode = registration.builtin_code;
  made.isCustom = registration.custom_name != nullptr;
  if (made.isCustom) made.customName = registration.custom_name;
  made.version = registration.version;
  made.init = registration.init;
  made.release = registration.free;
  made.prepare = registration.prepare;
  made.invoke = registration.invoke;
  return made;
}

Status programStatus(const char* what, const Result<TfLiteStatus>& status,
                     const std::string& message) {
  if (!status)
    return fail(ErrorCode::kOpFailed, "Its {} throws an exception: {}", what,
                status.error().message());
  if (*status == kTfLiteOk) return {};
  return fail(ErrorCode::kOpFailed, "Its {} fails with the status {}. {}", what,
              static_cast<int32_t>(*status), message);
}

}  // namespace hearth::tflite_abi
