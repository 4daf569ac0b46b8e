// SPDX-License-Identifier: Apache-2.0
// Runs conformance vectors on a device of this build or of a driver library.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "tools/conformance/conformance.h"

int main(int argc, char** argv) {
  using namespace hearth;
  CLI::App app("Runs NNAPI conformance vectors (*.nntv) on a device.");
  conformance::RunOptions options;
  std::string deviceName = "nnapi-reference";
  bool asJson = false;
  bool isVerbose = false;
  app.add_option("files", options.files, "Files of vectors")->required();
  app.add_option("--device", deviceName, "Name of the device")->capture_default_str();
  app.add_option("--filter", options.filter,
                 "Run only cases whose name or spec contains this, or that use this operation");
  app.add_option("--processes", options.workers.processes, "Cases run at the same time")
      ->capture_default_str();
  app.add_option("--timeout", options.workers.timeoutSeconds, "Seconds that one case may take")
      ->capture_default_str();
  app.add_flag("--json", asJson, "Print the report as JSON");
  app.add_flag("--verbose", isVerbose, "Print every case");
  CLI11_PARSE(app, argc, argv);

  for (const conformance::DeviceFactory& device : conformance::allDevices()) {
    if (device.name != deviceName) continue;
    const bool showsProgress = ::isatty(STDERR_FILENO) != 0;
    auto report = conformance::runConformance(device, options, [&](size_t done, size_t all) {
      if (showsProgress && (done % 50 == 0 || done == all))
        std::fprintf(stderr, "\r%zu of %zu%s", done, all, done == all ? "\n" : "");
    });
    if (!report) {
      std::fprintf(stderr, "hearth_conformance: %s\n", report.error().toString().c_str());
      return 1;
    }
    const std::string text = asJson ? conformance::reportAsJson(*report)
                                    : conformance::describeReport(*report, isVerbose);
    std::fwrite(text.data(), 1, text.size(), stdout);
    return report->failed == 0 ? 0 : 1;
  }
  std::fprintf(stderr, "hearth_conformance: There is no device %s.\n", deviceName.c_str());
  return 2;
}
