// SPDX-License-Identifier: Apache-2.0
// The whole conformance run, which the command and the test share.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/conformance/case_workers.h"

namespace hearth::conformance {

struct RunOptions {
  std::vector<std::string> files;
  std::string filter;  // a case runs when its name or spec contains it, or names an operation of it
  size_t stride = 1;   // of the cases that are chosen so, the first of each so many runs
  WorkerOptions workers;
};

struct CaseReport {
  std::string file;
  std::string name;
  std::string spec;
  std::vector<std::string> operations;
  CaseResult result;
};

struct Report {
  std::string device;
  std::vector<CaseReport> cases;
  size_t passed = 0;
  size_t failed = 0;
};

// Runs the chosen cases on one device. An error when a file cannot be read.
Result<Report> runConformance(const DeviceFactory& device, const RunOptions& options,
                              const std::function<void(size_t done, size_t all)>& onProgress);

// The failures (with `verbose` all cases), a line for each operation, and the last line "N passed,
// N failed".
std::string describeReport(const Report& report, bool verbose);
// The report as JSON.
std::string reportAsJson(const Report& report);

}  // namespace hearth::conformance
