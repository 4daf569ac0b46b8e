// SPDX-License-Identifier: Apache-2.0
#include "frontends/delegate/delegate.h"

#include <algorithm>
#include <cstdlib>
#include <mutex>

#include "base/caught.h"
#include "base/log.h"
#include "base/trace.h"
#include "frontends/delegate/node_reader.h"
#include "frontends/delegate/node_selection.h"

namespace hearth::delegate {
namespace {

// Runs `body`; reports a failure to the runtime and returns its code for one.
template <typename Body>
TfLiteStatus reported(TfLiteContext* context, Body&& body) noexcept {
  const Status status = base::caught(body);
  if (status) return kTfLiteOk;
  base::logged("reporting a failure", [&] {
    context->ReportError(context, "Hearth: %s", status.error().toString().c_str());
  });
  return kTfLiteError;
}

}  // namespace

Delegate::Delegate(DelegateOptions options)
    : options_(std::make_shared<const DelegateOptions>(std::move(options))) {
  handle_.data_ = this;
  // Shapes may change after the graph was taken, and the rest of it may have dynamic tensors.
  handle_.flags = kTfLiteDelegateFlagsAllowDynamicTensors;
  handle_.Prepare = [](TfLiteContext* context, TfLiteDelegate* delegate) {
    return reported(context, [&] { return from(delegate)->apply(context); });
  };
}

TfLiteRegistration Delegate::registration() {
  TfLiteRegistration registration{};
  registration.init = [](TfLiteContext* context, const char* buffer, size_t) -> void* {
    const auto* const params = reinterpret_cast<const TfLiteDelegateParams*>(buffer);
    Kernel* kernel = nullptr;
    base::logged("taking over a partition", [&] {
      kernel =
          from(params->delegate)->takeKernel(context, listOf(params->nodes_to_replace)).release();
    });
    return kernel;
  };
  registration.free = [](TfLiteContext*, void* kernel) {
    delete static_cast<Kernel*>(kernel);
  };
  registration.prepare = [](TfLiteContext* context, TfLiteNode* node) {
    return reported(context, [&]() -> Status {
      if (node->user_data == nullptr)
        return fail(ErrorCode::kOpFailed, "The runtime partitioned its graph in another way.");
      return static_cast<Kernel*>(node->user_data)->prepare(context);
    });
  };
  registration.invoke = [](TfLiteContext* context, TfLiteNode* node) {
    return reported(context,
                    [&] { return static_cast<Kernel*>(node->user_data)->invoke(context); });
  };
  constexpr int32_t kDelegateCode = 51;
  registration.builtin_code = kDelegateCode;
  registration.custom_name = "HearthDelegate";
  registration.version = 1;
  return registration;
}

std::unique_ptr<Kernel> Delegate::takeKernel(TfLiteContext* context, const Nodes& nodes) {
  const std::lock_guard lock(mutex_);
  auto found = waiting_.extract({context, nodes});
  return found.empty() ? nullptr : std::move(found.mapped());
}

Status Delegate::apply(TfLiteContext* context) {
  const base::TraceSpan span("delegate", "take a graph");
  NodeSelection selection(context, options_);
  // An error of Hearth is no error of the runtime: all nodes stay with it.
  if (const Status selected = base::caught([&] { return selection.select(); }); !selected) {
    base::logWarn("The whole graph stays with the runtime: {}", selected.error().toString());
    return {};
  }
  const Nodes nodes = selection.nodes();
  NodeSelection::Kernels kernels = selection.takeKernels();
  base::logInfo("Hearth runs {} of {} nodes of a graph in {} partitions.", nodes.size(),
                selection.nodeCount(), kernels.size());
  if (nodes.empty()) return {};
  const std::unique_ptr<TfLiteIntArray, decltype(&std::free)> array(
      static_cast<TfLiteIntArray*>(
          std::malloc(sizeof(TfLiteIntArray) + nodes.size() * sizeof(int32_t))),
      &std::free);
  if (array == nullptr)
    return fail(ErrorCode::kOutOfMemory, "There is no memory for a list of {} nodes.",
                nodes.size());
  array->size = static_cast<int32_t>(nodes.size());
  std::ranges::copy(nodes, array->data);
  {
    const std::lock_guard lock(mutex_);
    for (auto& [partition, kernel] : kernels)
      waiting_.insert_or_assign({context, partition}, std::move(kernel));
  }
  const TfLiteStatus status = context->ReplaceNodeSubsetsWithDelegateKernels(
      context, registration(), array.get(), &handle_);
  if (status == kTfLiteOk) return {};
  const std::lock_guard lock(mutex_);
  std::erase_if(waiting_, [context](const auto& entry) { return entry.first.first == context; });
  return fail(ErrorCode::kOpFailed, "The runtime does not let the delegate take {} nodes.",
              nodes.size());
}

}  // namespace hearth::delegate
