// SPDX-License-Identifier: Apache-2.0
// `hearth conformance`.
#include <unistd.h>

#include <iostream>

#include "base/format.h"
#include "tools/commands.h"
#include "tools/conformance/conformance.h"

namespace hearth::tools {
namespace {

constexpr size_t kCasesBetweenProgress = 50;

Outcome<conformance::DeviceFactory> findDevice(const std::string& name) {
  std::string known;
  for (conformance::DeviceFactory& device : conformance::allDevices()) {
    if (device.name == name) return std::move(device);
    known += (known.empty() ? "" : ", ") + device.name;
  }
  return usage("There is no device {}; there are {}.", name, known);
}

}  // namespace

Outcome<void> conformanceCommand(const ConformanceOptions& options) {
  auto device = findDevice(options.device);
  if (!device) return std::unexpected(device.error());
  conformance::RunOptions run;
  run.files = options.files;
  run.filter = options.filter;
  run.workers.processes = options.processes;
  run.workers.timeoutSeconds = options.caseTimeoutSeconds;
  const bool showsProgress = ::isatty(STDERR_FILENO) != 0;
  const auto report = conformance::runConformance(*device, run, [&](size_t done, size_t all) {
    if (showsProgress && (done % kCasesBetweenProgress == 0 || done == all))
      std::cerr << "\r" << done << " of " << all << (done == all ? "\n" : "") << std::flush;
  });
  if (!report) return std::unexpected(Failure(report.error()));
  std::cout << (options.isJson ? conformance::reportAsJson(*report)
                               : conformance::describeReport(*report, options.isVerbose));
  if (report->failed != 0)
    return std::unexpected(
        Failure(kExitFailure,
                base::formatText("{} of {} cases fail.", report->failed, report->cases.size())));
  return {};
}

}  // namespace hearth::tools
