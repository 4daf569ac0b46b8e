// SPDX-License-Identifier: Apache-2.0
#include "frontends/nnapi/compilation.h"

#include <utility>

#include "android/NeuralNetworksTypes.h"
#include "base/deadline.h"

namespace hearth::nnapi {

Compilation::Compilation(const Model& model, DeviceList devices)
    : model_(model.graph()),
      hasUnknownOperation_(model.hasUnknownOperation()),
      explicitDevices_(std::move(devices)) {}

Status Compilation::requireOpen() const {
  if (!isFinished_) return {};
  return fail(ErrorCode::kBadState, "The compilation is finished already.");
}

Status Compilation::setPreference(int32_t preference) {
  HEARTH_TRY(requireOpen());
  if (preference < ANEURALNETWORKS_PREFER_LOW_POWER ||
      preference > ANEURALNETWORKS_PREFER_SUSTAINED_SPEED)
    return fail(ErrorCode::kBadData, "The preference {} is unknown.", preference);
  options_.preference = static_cast<hal::Preference>(preference);
  return {};
}

Status Compilation::setPriority(int32_t priority) {
  HEARTH_TRY(requireOpen());
  if (priority != ANEURALNETWORKS_PRIORITY_LOW && priority != ANEURALNETWORKS_PRIORITY_MEDIUM &&
      priority != ANEURALNETWORKS_PRIORITY_HIGH)
    return fail(ErrorCode::kBadData, "The priority {} is unknown.", priority);
  options_.priority = static_cast<hal::Priority>(priority);
  return {};
}

Status Compilation::setTimeout(uint64_t duration) {
  HEARTH_TRY(requireOpen());
  if (explicitDevices_.size() != 1)
    return fail(ErrorCode::kBadData,
                "A time-out needs a compilation for exactly one device; this one has {}.",
                explicitDevices_.empty() ? "no list of devices" : "several");
  timeout_ = duration;
  return {};
}

Status Compilation::setCaching(const char* directory, const uint8_t* token) {
  HEARTH_TRY(requireOpen());
  // No device here has cache files yet; what is packed is shared by content, without a token.
  if (directory == nullptr || token == nullptr)
    return fail(ErrorCode::kUnexpectedNull, "The cache folder or the token is null.");
  return {};
}

Status Compilation::finish() {
  HEARTH_TRY(requireOpen());
  isFinished_ = true;
  if (hasUnknownOperation_)
    return fail(ErrorCode::kBadData, "The model has an operation of an extension of no device.");
  if (timeout_ != 0) options_.deadline = base::Deadline::after(timeout_);
  const bool isExplicit = !explicitDevices_.empty();
  const DeviceList devices = isExplicit ? explicitDevices_ : allDevices();
  runtime::ModelPlanOptions planOptions;
  planOptions.prepare = options_;
  if (!isExplicit) planOptions.fallback = referenceDevice();
  HEARTH_ASSIGN(runtime::ModelPlan plan, runtime::planModel(model_, devices, planOptions));
  compiled_ = std::make_shared<CompiledModel>(model_, std::move(plan), options_.priority,
                                              isExplicit, devices.size());
  return {};
}

Result<std::shared_ptr<const CompiledModel>> Compilation::compiled() const {
  if (compiled_ != nullptr) return compiled_;
  return fail(ErrorCode::kBadState, "{}",
              isFinished_ ? "The compilation failed." : "The compilation is not finished.");
}

}  // namespace hearth::nnapi
