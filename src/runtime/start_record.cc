// SPDX-License-Identifier: Apache-2.0
#include "runtime/start_record.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/descriptor.h"
#include "base/env.h"
#include "base/file_size_signal.h"
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

// Assigns member by member: initialiser lists are copied several times, and a client that asks for
// the report measures how long starts take.
Json tuning(const hal::TuningReport& report) {
  constexpr double kMillion = 1e6;
  Json json = Json::object();
  json["state"] = stageName(report.state);
  json["executions"] = report.executions;
  json["changed_steps"] = report.changedNodes;
  json["first_ms"] = static_cast<double>(report.quickTime) / kMillion;
  json["second_ms"] = static_cast<double>(report.chosenTime) / kMillion;
  return json;
}

Json start(const StartRecord& record) {
  const hal::StartReport& report = record.report;
  Json json = Json::object();
  json["state"] = stateName(report.state);
  json["reason"] = report.reason;
  json["prepare_ms"] = record.prepareMs;
  json["packed_bytes"] =
      std::accumulate(report.packedBytes.begin(), report.packedBytes.end(), uint64_t{0},
                      [](uint64_t total, const auto& entry) { return total + entry.second; });
  json["packed_bytes_by_operation"] = report.packedBytes;
  json["repacked_bytes"] = report.repackedBytes;
  json["repaired_bytes"] = report.repairedBytes;
  json["mapped_bytes"] = report.mappedBytes;
  json["shared_bytes"] = report.sharedBytes;
  json["hashed_bytes"] = report.hashedBytes;
  json["activation_bytes"] = report.activationBytes;
  json["shapes"] = report.shapes;
  json["routed_around"] = report.routedAround;
  json["slow_operations"] = report.slowOperations;
  json["tuning"] = tuning(report.tuning);
  json["cache"] = record.cache;
  json["device_choice"] = record.choice;
  return json;
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

// The time in UTC, in the format of ISO 8601.
std::string timeText() {
  timespec now;
  ::clock_gettime(CLOCK_REALTIME, &now);
  tm parts;
  ::gmtime_r(&now.tv_sec, &parts);
  return base::formatText("{}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", parts.tm_year + 1900,
                          parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min,
                          parts.tm_sec, now.tv_nsec / 1'000'000);
}

}  // namespace

void StartRecord::setReport(hal::StartReport made) {
  report = std::move(made);
  if (!report.cacheProblem.empty()) cache += " Nothing is saved: " + report.cacheProblem;
}

std::string startJson(const StartRecord& record, int indent) {
  return dump(start(record), indent);
}

bool isReportWanted() {
  return !base::envString(base::Env::kReport).empty();
}

void appendToReport(const StartRecord& record) {
  const std::string path = reportPath();
  if (path.empty()) return;
  Json line = Json::object();
  line["time"] = timeText();
  line["pid"] = ::getpid();
  line["model"] = record.model;
  if (!record.part.empty()) line["part"] = record.part;
  line["device"] = record.device;
  line["start"] = start(record);
  const std::string text = dump(line, -1) + "\n";
  const base::Descriptor file(::open(
      path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600));
  const base::FileSizeSignalOff signalOff;
  // One write call on an appending descriptor keeps the line whole.
  if (!file.valid() ||
      ::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    base::logWarn("The start report {} cannot be written: {}.", path, std::strerror(errno));
}

}  // namespace hearth::runtime
