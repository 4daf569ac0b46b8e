// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite_c/interpreter.h"

#include <algorithm>
#include <mutex>

#include "base/cancellation.h"
#include "base/env.h"
#include "base/log.h"
#include "frontends/tflite_c/delegate_device.h"
#include "frontends/tflite_c/own_delegate.h"

namespace hearth::tflite_c {
namespace {

// What the program has added, in each of its forms.
std::vector<AddedOperator> addedTo(const TfLiteInterpreterOptions& options) {
  std::vector<AddedOperator> added = options.added;
  for (const TfLiteOperator* const custom : options.operators)
    added.push_back({*custom, custom->version, custom->version});
  return added;
}

Status checkOperators(const std::vector<AddedOperator>& added) {
  for (const AddedOperator& each : added) {
    if (!each.custom.isCustom || tflite::isKnownCustomOperation(each.custom.customName)) continue;
    if (each.custom.customName.empty())
      return fail(ErrorCode::kBadData, "An operator of the program has no name.");
    if (!each.custom.hasInvoke())
      return fail(ErrorCode::kBadData, "The operator \"{}\" of the program has no invoke.",
                  each.custom.customName);
  }
  return {};
}

}  // namespace

Interpreter::Interpreter(const TfLiteModel& model, const TfLiteInterpreterOptions& options,
                         bool hasOthers)
    : bytes_(model.bytes),
      file_(model.file),
      reporter_(options.reporter),
      isCancellable_(options.isCancellable),
      fallsBack_(options.fallsBack),
      resolver_(options.resolver, addedTo(options), hasOthers),
      signatures_(model.file->signatures()) {}

Result<std::shared_ptr<Interpreter>> Interpreter::create(const TfLiteModel& model,
                                                         const TfLiteInterpreterOptions& options,
                                                         bool hasOthers) {
  if (options.threads < -1)
    return fail(ErrorCode::kBadData,
                "The number of threads is {}; it must be -1, for the default, or more.",
                options.threads);
  HEARTH_TRY(checkOperators(addedTo(options)));
  std::shared_ptr<Interpreter> made(new Interpreter(model, options, hasOthers));
  // One unless the program or its starter asks for more, as programs expect it. 0 asks for no other
  // thread than the caller's.
  HEARTH_ASSIGN(const int64_t threads, base::envInteger(base::Env::kThreads));
  if (options.threads >= 0 || threads == 0)
    made->options_.threads = static_cast<unsigned>(std::max(1, options.threads));
  HEARTH_ASSIGN(made->primary_, SubgraphRunner::create(made->file_, 0));
  if (const Status used = made->primary_->useOperators(made->resolver_, made->options_); !used) {
    made->reporter_.report(used.error().toString());
    return fail(ErrorCode::kUnsupported, "Registration failed.");
  }
  for (TfLiteDelegate* const delegate : options.delegates) {
    const Status applied = made->applyDelegate(delegate);
    if (applied) continue;
    if (!options.fallsBack) return std::unexpected(applied.error());
    made->reporter_.report(applied.error().toString());
  }
  return made;
}

Status Interpreter::applyDelegate(TfLiteDelegate* delegate) {
  if (delegate == nullptr) return fail(ErrorCode::kUnexpectedNull, "The delegate is null.");
  if (const OwnDelegate* const own = OwnDelegate::from(delegate)) return own->addTo(&options_);
  if (auto device = deviceOfDelegate(*delegate)) {
    base::logInfo("A delegate of the program is the device {} here.", device->name());
    // Without a list each device may run what it takes, this one too.
    std::vector<std::shared_ptr<hal::Device>>& devices = options_.compilation.devices;
    if (!devices.empty() && !std::ranges::contains(devices, device))
      devices.insert(devices.begin(), std::move(device));
    return {};
  }
  delegates_.push_back(delegate);
  Status applied = primary_->applyDelegate(delegate, options_);
  if (!applied) delegates_.pop_back();
  return applied;
}

Result<SubgraphRunner*> Interpreter::subgraph(size_t index) {
  if (index == 0) return primary_.get();
  const std::lock_guard lock(mutex_);
  std::unique_ptr<SubgraphRunner>& found = others_[index];
  if (found == nullptr) {
    auto made = SubgraphRunner::create(file_, index);
    const Status used = made ? (*made)->useOperators(resolver_, options_) : Status();
    if (!made || !used) {
      others_.erase(index);
      return std::unexpected(made ? used.error() : made.error());
    }
    found = std::move(*made);
    // What a delegate does not take of this subgraph runs without it.
    for (TfLiteDelegate* const delegate : delegates_)
      if (const Status applied = found->applyDelegate(delegate, options_); !applied)
        reporter_.report(applied.error().toString());
  }
  return found.get();
}

template <typename Body>
Status Interpreter::withClaim(Body body) {
  if (isClaimed_.exchange(true, std::memory_order_acquire)) [[unlikely]]
    return fail(ErrorCode::kBadState,
                "Another thread is using the interpreter; give each thread one of its own.");
  struct Release {
    std::atomic<bool>* flag;
    ~Release() { flag->store(false, std::memory_order_release); }
  } const release{&isClaimed_};
  return body();
}

Status Interpreter::resizeInput(SubgraphRunner* subgraph, size_t position,
                                std::span<const int32_t> dims, bool isStrict) {
  return withClaim([&] { return subgraph->resizeInput(position, dims, isStrict); });
}

Status Interpreter::allocate(SubgraphRunner* subgraph) {
  return withClaim([&] { return subgraph->allocate(options_); });
}

Result<TfLiteStatus> Interpreter::invoke(SubgraphRunner* subgraph) {
  TfLiteStatus outcome = kTfLiteOk;
  HEARTH_TRY(withClaim([&]() -> Status {
    isCancelled_.store(false, std::memory_order_relaxed);
    const base::CancellationScope scope(&isCancelled_);
    const Status run = subgraph->invoke();
    if (!run && !isCancelled_.load(std::memory_order_relaxed)) {
      if (!fallsBack_ || !subgraph->hasDelegates()) return run;
      reporter_.report(run.error().toString());
      HEARTH_TRY(subgraph->removeDelegates(options_));
      HEARTH_TRY(subgraph->invoke());
      outcome = kTfLiteDelegateError;
    }
    if (isCancelled_.load(std::memory_order_relaxed)) outcome = kTfLiteCancelled;
    return {};
  }));
  return outcome;
}

Status Interpreter::resetVariables() {
  return withClaim([&]() -> Status {
    const std::lock_guard lock(mutex_);
    for (const auto& [index, subgraph] : others_) HEARTH_TRY(subgraph->resetVariables());
    return primary_->resetVariables();
  });
}

Status Interpreter::setCustomAllocation(int32_t index, const TfLiteCustomAllocation& allocation,
                                        int64_t flags) {
  return withClaim([&] { return primary_->setCustomAllocation(index, allocation, flags); });
}

Status Interpreter::setBufferHandle(TfLiteTensor* tensor, int32_t handle,
                                    TfLiteDelegate* delegate) {
  return withClaim([&] { return primary_->setBufferHandle(tensor, handle, delegate); });
}

Status Interpreter::allowBufferOutputs(bool allow) {
  return withClaim([&]() -> Status {
    primary_->allowBufferOutputs(allow);
    return {};
  });
}

Status Interpreter::ensureReadable(TfLiteTensor* tensor) {
  return withClaim([&] { return primary_->ensureReadable(tensor); });
}

Status Interpreter::addDelegate(TfLiteDelegate* delegate) {
  return withClaim([&] { return applyDelegate(delegate); });
}

Status Interpreter::cancel() {
  if (!isCancellable_)
    return fail(ErrorCode::kBadState,
                "Cancellation is not enabled; TfLiteInterpreterOptionsEnableCancellation does so.");
  isCancelled_.store(true, std::memory_order_relaxed);
  return {};
}

}  // namespace hearth::tflite_c
