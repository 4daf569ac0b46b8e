// SPDX-License-Identifier: Apache-2.0
#include "runtime/start_record.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/descriptor.h"
#include "base/env.h"
#include "base/format.h"
#include "base/log.h"

namespace hearth::runtime {
namespace {

using Json = nlohmann::ordered_json;

const char* stateName(hal::StartReport::State state) {
  switch (state) {
    case hal::StartReport::State::kCold:
      return "cold";
    case hal::StartReport::State::kWarm:
      return "warm";
    case hal::StartReport::State::kUncached:
      break;
  }
  return "uncached";
}

const char* stageName(hal::TuningReport::State state) {
  switch (state) {
    case hal::TuningReport::State::kMeasuring:
      return "measuring";
    case hal::TuningReport::State::kMeasured:
      return "measured";
    case hal::TuningReport::State::kRecalled:
      return "recalled";
    case hal::TuningReport::State::kOff:
      break;
  }
  return "off";
}

Json tuning(const hal::TuningReport& report) {
  constexpr double kMillion = 1e6;
  return {{"state", stageName(report.state)},
          {"executions", report.executions},
          {"changed_steps", report.changedNodes},
          {"first_ms", static_cast<double>(report.quickTime) / kMillion},
          {"second_ms", static_cast<double>(report.chosenTime) / kMillion}};
}

Json start(const StartRecord& record) {
  const hal::StartReport& report = record.report;
  const uint64_t packed =
      std::accumulate(report.packedBytes.begin(), report.packedBytes.end(), uint64_t{0},
                      [](uint64_t total, const auto& entry) { return total + entry.second; });
  return {{"state", stateName(report.state)},
          {"reason", report.reason},
          {"prepare_ms", record.prepareMs},
          {"packed_bytes", packed},
          {"packed_bytes_by_operation", report.packedBytes},
          {"repacked_bytes", report.repackedBytes},
          {"repaired_bytes", report.repairedBytes},
          {"mapped_bytes", report.mappedBytes},
          {"shared_bytes", report.sharedBytes},
          {"hashed_bytes", report.hashedBytes},
          {"activation_bytes", report.activationBytes},
          {"routed_around", report.routedAround},
          {"tuning", tuning(report.tuning)},
          {"cache", record.cache}};
}

std::string dump(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

// The file's name with %p replaced.
std::string reportPath() {
  std::string path = base::envString(base::Env::kReport);
  if (const size_t at = path.find("%p"); at != std::string::npos)
    path.replace(at, 2, std::to_string(::getpid()));
  return path;
}

}  // namespace

std::string startJson(const StartRecord& record, int indent) {
  return dump(start(record), indent);
}

bool isReportWanted() {
  return !base::envString(base::Env::kReport).empty();
}

void appendToReport(const StartRecord& record) {
  const std::string path = reportPath();
  if (path.empty()) return;
  const auto now = std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  const Json line = {{"time", base::formatText("{:%FT%TZ}", now)},
                     {"pid", ::getpid()},
                     {"model", record.model},
                     {"device", record.device},
                     {"start", start(record)}};
  const std::string text = dump(line, -1) + "\n";
  const base::Descriptor file(::open(
      path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600));
  // One write call of an appending descriptor: lines stay whole.
  if (!file.valid() ||
      ::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    base::logWarn("The start report {} cannot be written: {}.", path, std::strerror(errno));
}

}  // namespace hearth::runtime
