// SPDX-License-Identifier: Apache-2.0
#include "tools/conformance/conformance.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "base/format.h"

namespace hearth::conformance {
namespace {

bool isChosen(const Case& testCase, const std::vector<std::string>& operations,
              const std::string& filter) {
  return filter.empty() || testCase.name.contains(filter) || testCase.spec.contains(filter) ||
         std::find(operations.begin(), operations.end(), filter) != operations.end();
}

struct Counts {
  size_t passed = 0;
  size_t failed = 0;

  void add(const CaseResult& result) { ++(result.hasPassed ? passed : failed); }
};

std::map<std::string, Counts> countByOperation(const Report& report) {
  std::map<std::string, Counts> table;
  for (const CaseReport& entry : report.cases)
    for (const std::string& operation : entry.operations) table[operation].add(entry.result);
  return table;
}

}  // namespace

Result<Report> runConformance(const DeviceFactory& device, const RunOptions& options,
                              const std::function<void(size_t, size_t)>& onProgress) {
  std::vector<NntvFile> files;
  for (const std::string& path : options.files) {
    HEARTH_ASSIGN(NntvFile file, NntvFile::open(path));
    files.push_back(std::move(file));
  }
  Report report;
  report.device = device.name;
  std::vector<CaseTask> tasks;
  size_t chosen = 0;
  for (size_t f = 0; f < files.size(); ++f)
    for (size_t i = 0; i < files[f].caseCount(); ++i) {
      auto testCase = files[f].readCase(i);
      if (!testCase)
        return std::unexpected(
            std::move(testCase.error()).addContext("while reading " + options.files[f]));
      std::vector<std::string> operations = operationsOf(*testCase);
      if (!isChosen(*testCase, operations, options.filter)) continue;
      if (chosen++ % options.stride != 0) continue;
      tasks.push_back({&files[f], i});
      report.cases.push_back({std::filesystem::path(options.files[f]).filename().string(),
                              testCase->name, testCase->spec, std::move(operations), CaseResult()});
    }
  HEARTH_ASSIGN(std::vector<CaseResult> results,
                runInWorkers(device, tasks, options.workers, [&](size_t done) {
                  if (onProgress) onProgress(done, tasks.size());
                }));
  Counts counts;
  for (size_t i = 0; i < results.size(); ++i) {
    counts.add(results[i]);
    report.cases[i].result = std::move(results[i]);
  }
  report.passed = counts.passed;
  report.failed = counts.failed;
  return report;
}

std::string describeReport(const Report& report, bool verbose) {
  std::string text;
  for (const CaseReport& entry : report.cases) {
    if (!verbose && entry.result.hasPassed) continue;
    text += base::formatText("{}: {} {} ({})", entry.result.hasPassed ? "passed" : "failed",
                             entry.file, entry.name, entry.spec);
    if (!entry.result.message.empty()) text += base::formatText(": {}", entry.result.message);
    text += '\n';
  }
  text += base::formatText("{:<36}{:>8}{:>8}\n", "operation", "passed", "failed");
  for (const auto& [name, counts] : countByOperation(report))
    text += base::formatText("{:<36}{:>8}{:>8}\n", name, counts.passed, counts.failed);
  return text + base::formatText("{} passed, {} failed\n", report.passed, report.failed);
}

std::string reportAsJson(const Report& report) {
  nlohmann::json json;
  json["device"] = report.device;
  json["passed"] = report.passed;
  json["failed"] = report.failed;
  json["operations"] = nlohmann::json::object();
  for (const auto& [name, counts] : countByOperation(report))
    json["operations"][name] = {{"passed", counts.passed}, {"failed", counts.failed}};
  json["cases"] = nlohmann::json::array();
  for (const CaseReport& entry : report.cases) {
    nlohmann::json item = {{"file", entry.file},
                           {"name", entry.name},
                           {"spec", entry.spec},
                           {"passed", entry.result.hasPassed},
                           {"kernels", nlohmann::json::array()}};
    for (const OperationKernel& kernel : entry.result.kernels)
      item["kernels"].push_back({{"operation", kernel.operation}, {"kernel", kernel.kernel}});
    if (!entry.result.message.empty()) item["message"] = entry.result.message;
    json["cases"].push_back(std::move(item));
  }
  return json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
}

}  // namespace hearth::conformance
