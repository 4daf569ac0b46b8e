// SPDX-License-Identifier: Apache-2.0
// `hearth conformance`.
#include <unistd.h>

#include <iostream>

#include "base/format.h"
#include "tools/commands.h"
#include "tools/conformance/conformance.h"
#include "tools/conformance/nnapi_device.h"

namespace hearth::tools {
namespace {

constexpr size_t kCasesBetweenProgress = 50;

Outcome<std::vector<conformance::DeviceFactory>> devicesOf(const ConformanceOptions& options) {
  const auto mode = conformance::parseNnapiMode(options.mode);
  if (!mode) return usage("{}", mode.error().message());
  if (options.api == "nnapi") return conformance::nnapiDevices(*mode);
  if (*mode != conformance::NnapiMode::kSync)
    return usage("The mode {} is one of --api nnapi.", options.mode);
  return conformance::allDevices();
}

Outcome<conformance::DeviceFactory> findDevice(const ConformanceOptions& options) {
  auto devices = devicesOf(options);
  if (!devices) return std::unexpected(devices.error());
  std::string known;
  for (conformance::DeviceFactory& device : *devices) {
    if (device.name == options.device) return std::move(device);
    known += (known.empty() ? "" : ", ") + device.name;
  }
  return usage("There is no device {}; there are {}.", options.device, known);
}

}  // namespace

Outcome<void> conformanceCommand(const ConformanceOptions& options) {
  auto device = findDevice(options);
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
