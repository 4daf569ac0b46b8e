// SPDX-License-Identifier: Apache-2.0
// Every case on every device of this build.
#include "tools/conformance/conformance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace hearth::conformance {
namespace {

class Conformance : public testing::TestWithParam<std::string> {};

TEST_P(Conformance, AllCases) {
  const char* data = std::getenv("HEARTH_TEST_DATA");
  if (data == nullptr) GTEST_SKIP() << "HEARTH_TEST_DATA is not set.";
  RunOptions options;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(data) / "conformance"))
    if (entry.path().extension() == ".nntv") options.files.push_back(entry.path().string());
  std::sort(options.files.begin(), options.files.end());
  ASSERT_FALSE(options.files.empty());
  for (const DeviceFactory& device : builtInDevices()) {
    if (device.name != GetParam()) continue;
    const auto report = runConformance(device, options, {});
    ASSERT_TRUE(report) << report.error().toString();
    EXPECT_EQ(report->failed, 0u) << describeReport(*report, false);
    EXPECT_GT(report->passed, 0u);
    RecordProperty("passed", std::to_string(report->passed));
    return;
  }
  FAIL() << "There is no device " << GetParam();
}

std::vector<std::string> deviceNames() {
  std::vector<std::string> names;
  for (const DeviceFactory& device : builtInDevices()) names.push_back(device.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Devices, Conformance, testing::ValuesIn(deviceNames()),
                         [](const testing::TestParamInfo<std::string>& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace hearth::conformance
