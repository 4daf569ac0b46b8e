// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/kernels/shared_kernel.h"

namespace hearth::cpu {
namespace {

class SharedKernel final : public Kernel {
 public:
  SharedKernel(const ops::OperationDefinition* definition, ops::OperationContext context,
               OperationArguments arguments)
      : definition_(definition), context_(std::move(context)), arguments_(std::move(arguments)) {}

  Result<size_t> reshape(threads::ThreadPool*) override { return 0; }

  Status setup(std::span<void* const> addresses, void*) override {
    bindArguments(addresses, arguments_, &context_);
    return {};
  }

  Status run(threads::ThreadPool* pool) override {
    context_.threadPool = pool;
    return definition_->execute(context_);
  }

 private:
  const ops::OperationDefinition* definition_;
  ops::OperationContext context_;
  const OperationArguments arguments_;
};

}  // namespace

void bindArguments(std::span<void* const> addresses, const OperationArguments& arguments,
                   ops::OperationContext* context) {
  for (size_t i = 0; i < arguments.inputs.size(); ++i)
    if (arguments.inputs[i] != OperationArguments::kNone)
      context->inputs[i].data = addresses[arguments.inputs[i]];
  for (size_t i = 0; i < arguments.outputs.size(); ++i)
    if (arguments.outputs[i] != OperationArguments::kNone)
      context->outputs[i].data = addresses[arguments.outputs[i]];
}

Result<std::unique_ptr<Kernel>> makeSharedKernel(ops::OperationContext context,
                                                 OperationArguments arguments) {
  const ops::OperationDefinition* definition = ops::findOperation(context.operation->type);
  if (definition == nullptr)
    return fail(ErrorCode::kUnsupported, "{} has no kernel.", context.describe());
  return std::make_unique<SharedKernel>(definition, std::move(context), std::move(arguments));
}

}  // namespace hearth::cpu
