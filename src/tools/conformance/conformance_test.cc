// SPDX-License-Identifier: Apache-2.0
// Every case on every device of this build, and some of them behind a host.
#include "tools/conformance/conformance.h"
#include "tools/conformance/testing/conformance_files.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "ipc/host_list.h"

namespace hearth::conformance {
namespace {

// Prime, so that the cases are of all kinds: those of one specification follow each other.
constexpr size_t kStride = 7;
constexpr size_t kLeastCases = 6000;

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

// Both sides, with the sanitizers of this build. All cases run so in tests/cli/serve_test.py,
// without sanitizers.
TEST_P(Conformance, CasesBehindAHost) {
  const char* data = std::getenv("HEARTH_TEST_DATA");
  if (data == nullptr) GTEST_SKIP() << "HEARTH_TEST_DATA is not set.";
  const char* const isLong = std::getenv("HEARTH_TEST_LONG");
  RunOptions options;
  options.files = conformanceFiles(data);
  ASSERT_FALSE(options.files.empty());
  options.stride = isLong != nullptr && std::strcmp(isLong, "1") == 0 ? 1 : kStride;
  const DeviceFactory device{GetParam(), [name = GetParam()] {
                               return ipc::deviceAt({ipc::HostPlace::Kind::kSpawn, HEARTH_TOOL},
                                                    name);
                             }};
  const auto report = runConformance(device, options, {});
  ASSERT_TRUE(report) << report.error().toString();
  EXPECT_EQ(report->failed, 0u) << describeReport(*report, false);
  EXPECT_GT(report->passed, kLeastCases / options.stride);
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
