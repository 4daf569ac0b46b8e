// SPDX-License-Identifier: Apache-2.0
// Every case through the C API, in every mode, on both devices, and on what the runtime chooses.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <tuple>

#include "tools/conformance/conformance.h"
#include "tools/conformance/nnapi_device.h"
#include "tools/conformance/testing/conformance_files.h"

namespace hearth::conformance {
namespace {

class NnapiConformance : public testing::TestWithParam<std::tuple<std::string, NnapiMode>> {};

TEST_P(NnapiConformance, AllCases) {
  const char* data = std::getenv("HEARTH_TEST_DATA");
  if (data == nullptr) GTEST_SKIP() << "HEARTH_TEST_DATA is not set.";
  // The many cases that must fail would fill the log.
  ::setenv("HEARTH_LOG", "off", 1);
  const auto& [name, mode] = GetParam();
  RunOptions options;
  options.files = conformanceFiles(data);
  ASSERT_FALSE(options.files.empty());
  for (const DeviceFactory& device : nnapiDevices(mode)) {
    if (device.name != name) continue;
    const auto report = runConformance(device, options, {});
    ASSERT_TRUE(report) << report.error().toString();
    EXPECT_EQ(report->failed, 0u) << describeReport(*report, false);
    EXPECT_GT(report->passed, 0u);
    return;
  }
  FAIL() << "There is no device " << name;
}

std::string titleOf(const testing::TestParamInfo<std::tuple<std::string, NnapiMode>>& info) {
  std::string name = std::get<0>(info.param) + "_" + nameOf(std::get<1>(info.param));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Devices, NnapiConformance,
                         testing::Combine(testing::Values("hearth-cpu", "nnapi-reference"),
                                          testing::ValuesIn(allNnapiModes())),
                         titleOf);
// One mode suffices for the default list, since only the compilation differs.
INSTANTIATE_TEST_SUITE_P(Runtime, NnapiConformance,
                         testing::Combine(testing::Values("default"),
                                          testing::Values(NnapiMode::kSync)),
                         titleOf);

}  // namespace
}  // namespace hearth::conformance
