// SPDX-License-Identifier: Apache-2.0
// Every case on every device of this build.
#include "tools/conformance/conformance.h"
#include "tools/conformance/testing/conformance_files.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

namespace hearth::conformance {
namespace {

class Conformance : public testing::TestWithParam<std::string> {};

TEST_P(Conformance, AllCases) {
  const char* data = std::getenv("HEARTH_TEST_DATA");
  if (data == nullptr) GTEST_SKIP() << "HEARTH_TEST_DATA is not set.";
  RunOptions options;
  options.files = conformanceFiles(data);
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
