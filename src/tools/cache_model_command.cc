// SPDX-License-Identifier: Apache-2.0
// `hearth cache explain` and `hearth cache warm`.
#include <cstdint>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/format.h"
#include "hal/start_reason.h"
#include "hearth/hearth.hpp"
#include "tools/cache_report.h"
#include "tools/commands.h"
#include "tools/input_shapes.h"
#include "tools/media/array.h"
#include "tools/text_table.h"
#include "tools/watchdog.h"

namespace hearth::tools {
namespace {

using Json = nlohmann::ordered_json;

using Shapes = std::map<std::string, std::vector<uint32_t>>;

CompileOptions compileOptions(const CacheOptions& options, const Shapes& shapes,
                              const std::string& signature) {
  CompileOptions made;
  made.shapes = shapes;
  made.signature = signature;
  made.device = options.device;
  made.threads = options.threads;
  made.store = options.store;
  made.weightCache = options.bundle;
  return made;
}

// Explains the start of one signature, with the keys of a start report.
Json explained(const Model& model, const CompileOptions& options) {
  const Json start = Json::parse(model.explainStart(options));
  return {{"signature", options.signature},
          {"state", start["state"]},
          {"reason", start["reason"]},
          {"mapped_bytes", start["mapped_bytes"]}};
}

// Packs the weights that the store lacks. `state` is that of the next start, `packed_bytes` the
// bytes that were missing.
Json warmed(const Model& model, const CompileOptions& options) {
  uint64_t packed = 0;
  {
    const Compilation compilation = model.compile(options);
    packed = compilation.startReport().packedBytes;
  }
  // The second start waits until the first has written everything, like a start of another process.
  const Compilation again = model.compile(options);
  const StartReport report = again.startReport();
  return {{"signature", options.signature},
          {"state", Json::parse(again.startReportJson())["state"]},
          {"reason", report.reason},
          {"mapped_bytes", report.mappedBytes},
          {"packed_bytes", packed}};
}

std::string text(const Json& starts, bool isWarmed) {
  TextTable table(
      isWarmed ? std::vector<std::string>{"signature", "next start", "in the store", "packed now",
                                          "reason"}
               : std::vector<std::string>{"signature", "next start", "in the store", "reason"},
      isWarmed ? "llrrl" : "llrl");
  for (const Json& start : starts) {
    const std::string key = start["signature"].get<std::string>();
    std::vector<std::string> row = {key.empty() ? "-" : printable(key),
                                    start["state"].get<std::string>(),
                                    bytesText(start["mapped_bytes"].get<uint64_t>())};
    if (isWarmed) row.push_back(bytesText(start["packed_bytes"].get<uint64_t>()));
    row.push_back(printable(start["reason"].get<std::string>()));
    table.add(row);
  }
  return table.toString();
}

}  // namespace

Outcome<void> cacheModelCommand(const CacheOptions& options) {
  const bool isWarmed = options.action == CacheAction::kWarm;
  HEARTH_ASSIGN(const Shapes shapes, parseInputShapes(options.shapes));
  Watchdog watchdog(0);
  Json starts = Json::array();
  try {
    watchdog.beginStage("reading the model");
    const Model model(options.model, options.part);
    std::vector<std::string> signatures = model.signatureKeys();
    if (!options.signature.empty()) signatures = {options.signature};
    for (const std::string& signature : signatures) {
      watchdog.beginStage(base::formatText("{} {}", isWarmed ? "packing" : "looking for",
                                           signature.empty() ? "the weights" : signature));
      const CompileOptions chosen = compileOptions(options, shapes, signature);
      starts.push_back(isWarmed ? warmed(model, chosen) : explained(model, chosen));
    }
  } catch (const Exception& exception) {
    Failure failure(exception);
    if (exception.code() == HEARTH_NOT_FOUND) failure.exitCode = kExitUsage;
    return std::unexpected(std::move(failure));
  }
  for (const Json& start : starts) {
    if (!isWarmed || start["state"] == "warm" || start["reason"] == hal::start_reason::kTooSmall)
      continue;
    std::string reason = start["reason"].get<std::string>();
    while (reason.ends_with('.')) reason.pop_back();
    return std::unexpected(
        Failure(kExitFailure, base::formatText("The next start of {} is {} ({}).", options.model,
                                               start["state"].get<std::string>(), reason)));
  }
  const Json partOrNull = options.part.empty() ? Json(nullptr) : Json(options.part);
  if (options.isJson)
    std::cout << Json{{"model", options.model}, {"part", partOrNull}, {"signatures", starts}}.dump(
                     2, ' ', false, Json::error_handler_t::replace)
              << "\n";
  else
    std::cout << text(starts, isWarmed);
  return {};
}

}  // namespace hearth::tools
