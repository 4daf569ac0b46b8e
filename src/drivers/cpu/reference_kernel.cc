// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/reference_kernel.h"

namespace hearth::cpu {
namespace {

class ReferenceKernel final : public Kernel {
 public:
  ReferenceKernel(const ops::OperationDefinition* definition, ops::OperationContext context,
                  ReferenceArguments arguments)
      : definition_(definition), context_(std::move(context)), arguments_(std::move(arguments)) {}

  Result<size_t> reshape(threads::ThreadPool*) override { return 0; }

  Status setup(std::span<void* const> addresses, void*) override {
    for (size_t i = 0; i < arguments_.inputs.size(); ++i)
      if (arguments_.inputs[i] != ReferenceArguments::kNone)
        context_.inputs[i].data = addresses[arguments_.inputs[i]];
    for (size_t i = 0; i < arguments_.outputs.size(); ++i)
      if (arguments_.outputs[i] != ReferenceArguments::kNone)
        context_.outputs[i].data = addresses[arguments_.outputs[i]];
    return {};
  }

  Status run(threads::ThreadPool* pool) override {
    context_.threadPool = pool;
    return definition_->execute(context_);
  }

 private:
  const ops::OperationDefinition* definition_;
  ops::OperationContext context_;
  const ReferenceArguments arguments_;
};

}  // namespace

Result<std::unique_ptr<Kernel>> makeReferenceKernel(ops::OperationContext context,
                                                    ReferenceArguments arguments) {
  const ops::OperationDefinition* definition = ops::findOperation(context.operation->type);
  if (definition == nullptr)
    return fail(ErrorCode::kUnsupported, "{} has no kernel.", context.describe());
  return std::make_unique<ReferenceKernel>(definition, std::move(context), std::move(arguments));
}

}  // namespace hearth::cpu
