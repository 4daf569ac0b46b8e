// SPDX-License-Identifier: Apache-2.0
#include "frontends/nnapi/objects/compilation.h"

#include <fcntl.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "android/NeuralNetworksTypes.h"
#include "base/deadline.h"
#include "runtime/start_record.h"

namespace hearth::nnapi {
namespace {

// Appends the start report to the file of HEARTH_REPORT: NNAPI has no function that returns it.
void reportStart(const runtime::Compilation& compilation,
                 std::chrono::steady_clock::time_point begin) {
  if (!runtime::isReportWanted()) return;
  runtime::StartRecord record;
  record.device = compilation.deviceNames();
  record.prepareMs =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  record.cache = compilation.cacheOutcome();
  record.choice = compilation.parts().reason;
  record.setReport(compilation.preparedModel().startReportSoFar());
  runtime::appendToReport(record);
}

Result<std::shared_ptr<const std::vector<base::Descriptor>>> duplicatesOf(
    std::span<const int> files) {
  auto copies = std::make_shared<std::vector<base::Descriptor>>();
  for (const int file : files) {
    copies->emplace_back(::fcntl(file, F_DUPFD_CLOEXEC, 0));
    if (!copies->back().valid())
      return fail(ErrorCode::kBadData, "The descriptor {} of a cache file is not open.", file);
  }
  return copies;
}

}  // namespace

Compilation::Compilation(const Model& model, DeviceList devices)
    : model_(model.graph()), hasUnknownOperation_(model.hasUnknownOperation()) {
  options_.devices = std::move(devices);
}

Status Compilation::requireOpen() const {
  if (!isFinished_) return {};
  return fail(ErrorCode::kBadState, "The compilation is finished already.");
}

Status Compilation::setPreference(int32_t preference) {
  HEARTH_TRY(requireOpen());
  if (preference < ANEURALNETWORKS_PREFER_LOW_POWER ||
      preference > ANEURALNETWORKS_PREFER_SUSTAINED_SPEED)
    return fail(ErrorCode::kBadData, "The preference {} is unknown.", preference);
  options_.prepare.preference = static_cast<hal::Preference>(preference);
  // A client that sets this preference wants the first answer soon, so finish() need not do all the
  // work. The default preference is the same, but only a client that sets it means that.
  options_.preparation.reset();
  if (options_.prepare.preference == hal::Preference::kFastSingleAnswer)
    options_.preparation = hal::Preparation::kJustInTime;
  return {};
}

Status Compilation::setPriority(int32_t priority) {
  HEARTH_TRY(requireOpen());
  if (priority != ANEURALNETWORKS_PRIORITY_LOW && priority != ANEURALNETWORKS_PRIORITY_MEDIUM &&
      priority != ANEURALNETWORKS_PRIORITY_HIGH)
    return fail(ErrorCode::kBadData, "The priority {} is unknown.", priority);
  options_.prepare.priority = static_cast<hal::Priority>(priority);
  return {};
}

Status Compilation::setTimeout(uint64_t duration) {
  HEARTH_TRY(requireOpen());
  if (options_.devices.size() != 1)
    return fail(ErrorCode::kBadData,
                "A time-out needs a compilation for exactly one device; this one has {}.",
                options_.devices.empty() ? "no list of devices" : "several");
  timeout_ = duration;
  return {};
}

Status Compilation::setCaching(const char* directory, const uint8_t* token) {
  HEARTH_TRY(requireOpen());
  runtime::CacheRequest request;
  std::copy_n(token, request.token.size(), request.token.begin());
  request.folder = directory;
  options_.cache = std::make_shared<const runtime::CacheRequest>(std::move(request));
  return {};
}

Status Compilation::setCachingByFiles(std::span<const int> modelFiles,
                                      std::span<const int> dataFiles, const uint8_t* token) {
  HEARTH_TRY(requireOpen());
  runtime::CacheRequest request;
  std::copy_n(token, request.token.size(), request.token.begin());
  request.isByFiles = true;
  HEARTH_ASSIGN(request.modelFiles, duplicatesOf(modelFiles));
  HEARTH_ASSIGN(request.dataFiles, duplicatesOf(dataFiles));
  options_.cache = std::make_shared<const runtime::CacheRequest>(std::move(request));
  return {};
}

Status Compilation::addAttribute(const char* extension, uint16_t code) {
  HEARTH_TRY(requireOpen());
  return fail(ErrorCode::kBadData, "No device knows the attribute {} of the extension \"{}\".",
              code, extension);
}

Status Compilation::finish() {
  HEARTH_TRY(requireOpen());
  isFinished_ = true;
  if (hasUnknownOperation_)
    return fail(ErrorCode::kBadData, "The model has an operation of an extension of no device.");
  const auto begin = std::chrono::steady_clock::now();
  if (timeout_ != 0) options_.prepare.deadline = base::Deadline::after(timeout_);
  HEARTH_ASSIGN(compiled_, runtime::Compilation::create(model_, {}, options_, deviceManager()));
  // A runtime that has this library as a driver reads the files that it has opened when the
  // compilation is finished; NNAPI's drivers have written them by then.
  if (options_.cache != nullptr && options_.cache->isByFiles)
    for (const auto& device : options_.devices) device->flush();
  reportStart(*compiled_, begin);
  return {};
}

Result<std::shared_ptr<const runtime::Compilation>> Compilation::compiled() const {
  if (compiled_ != nullptr) return compiled_;
  return fail(ErrorCode::kBadState, "{}",
              isFinished_ ? "The compilation failed." : "The compilation is not finished.");
}

}  // namespace hearth::nnapi
