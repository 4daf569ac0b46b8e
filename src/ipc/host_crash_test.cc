// SPDX-License-Identifier: Apache-2.0
// A host of hearth-cpu ends at each crash point of its driver: clients get results or dead objects,
// and the next host finds whole files.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdlib>
#include <filesystem>
#include <set>

#include "base/crash_point.h"
#include "base/log.h"
#include "hal/cts/device_fixture.h"
#include "hal/cts/model_builder.h"
#include "ipc/host_process.h"
#include "ipc/hosted_device.h"

namespace hearth::ipc {
namespace {

using hal::cts::argumentFor;

// Large enough for the weight store.
constexpr uint32_t kUnits = 256;
constexpr uint32_t kDepth = 1024;

std::shared_ptr<const graph::Model> fullyConnectedModel() {
  hal::cts::ModelBuilder builder;
  using graph::OperandType;
  const uint32_t in = builder.input(OperandType::kTensorFloat32, {1, kDepth});
  std::vector<float> weights(kUnits * kDepth);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i % 5) - 2;
  const uint32_t filter = builder.constant(OperandType::kTensorFloat32, {kUnits, kDepth}, weights);
  const uint32_t bias =
      builder.constant(OperandType::kTensorFloat32, {kUnits}, std::vector<float>(kUnits, 1.0f));
  const uint32_t none = builder.scalar(int32_t{0});
  const uint32_t out = builder.output(OperandType::kTensorFloat32, {1, kUnits});
  builder.operation(graph::OperationType::kFullyConnected, {in, filter, bias, none}, {out});
  return std::make_shared<const graph::Model>(builder.model());
}

class HostCrashTest : public testing::Test {
 protected:
  HostCrashTest() {
    base::setLogLevel(base::LogLevel::kOff);
    std::string pattern = std::filesystem::temp_directory_path() / "hearth-host-crash-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  ~HostCrashTest() override {
    base::setLogLevelFromEnvironment();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  // A device whose hosts end at the crash point, or at none.
  Result<std::shared_ptr<HostedDevice>> device(const std::string& point) const {
    HostProgram program{HEARTH_TOOL,
                        {"--device", "hearth-cpu"},
                        {"HEARTH_STORE=" + (folder_ / "store").string(),
                         "XDG_STATE_HOME=" + (folder_ / "state").string()}};
    if (!point.empty()) program.variables.push_back("HEARTH_CRASH_AT=" + point);
    if (const char* const options = std::getenv("ASAN_OPTIONS"))
      program.variables.push_back(std::string("ASAN_OPTIONS=") + options);
    return HostedDevice::create("hearth-cpu", [program] { return spawnHost(program); });
  }
  hal::Cache cache() const {
    hal::Cache cache;
    cache.token = {3};
    cache.modelFiles.push_back(*modelFile_.duplicate());
    cache.dataFiles.push_back(*dataFile_.duplicate());
    return cache;
  }
  static void expectDeadObject(const Error& error, const char* what) {
    EXPECT_EQ(error.code(), ErrorCode::kDeadObject) << what << ": " << error.toString();
  }
  // Computes; the result is right, or the error is a dead object.
  void use(hal::PreparedModel& prepared) {
    std::vector<float> in(kDepth, 1.0f);
    std::vector<float> out(kUnits, -7.0f);
    auto execution = prepared.createExecution({{argumentFor(in)}, {argumentFor(out)}});
    if (!execution) return expectDeadObject(execution.error(), "createExecution");
    for (int i = 0; i < 2; ++i) {
      const hal::ExecutionResult result = (*execution)->compute({});
      if (!result.status)
        expectDeadObject(result.status.error(), "compute");
      else
        EXPECT_EQ(out, expected_);
    }
  }
  void useFrom(const std::string& point) {
    auto hosted = device(point);
    if (!hosted) return expectDeadObject(hosted.error(), "create");
    for (const bool isFromCache : {false, true}) {
      auto prepared = isFromCache ? (*hosted)->prepareModelFromCache({}, cache())
                                  : (*hosted)->prepareModel(model_, {}, cache());
      if (prepared)
        use(**prepared);
      else if (!isFromCache)
        expectDeadObject(prepared.error(), "prepareModel");
      (*hosted)->flush();
    }
    if ((*hosted)->state().restarts != 0 || (*hosted)->state().process == 0) crashed_.insert(point);
  }
  void expectWhole(const std::string& point) {
    auto hosted = device("");
    ASSERT_TRUE(hosted) << hosted.error().toString();
    auto prepared = (*hosted)->prepareModel(model_, {}, cache());
    ASSERT_TRUE(prepared) << point << ": " << prepared.error().toString();
    std::vector<float> in(kDepth, 1.0f);
    std::vector<float> out(kUnits);
    const hal::ExecutionResult result =
        hal::cts::computeOnce(**prepared, {{argumentFor(in)}, {argumentFor(out)}});
    ASSERT_TRUE(result.status) << point << ": " << result.status.error().toString();
    EXPECT_EQ(out, expected_) << point;
  }

  std::filesystem::path folder_;
  const base::Descriptor modelFile_{::memfd_create("model", MFD_CLOEXEC)};
  const base::Descriptor dataFile_{::memfd_create("data", MFD_CLOEXEC)};
  const std::shared_ptr<const graph::Model> model_ = fullyConnectedModel();
  std::vector<float> expected_;
  std::set<std::string> crashed_;
};

TEST_F(HostCrashTest, ClientsGetResultsOrDeadObjectsAndFilesStayWhole) {
  for (uint32_t unit = 0; unit < kUnits; ++unit) {
    float sum = 1.0f;
    for (uint32_t i = 0; i < kDepth; ++i) sum += static_cast<float>((unit * kDepth + i) % 5) - 2;
    expected_.push_back(sum);
  }
  const std::vector<std::string> points = base::crashPoints();
  ASSERT_FALSE(points.empty());
  for (const std::string& point : points) {
    SCOPED_TRACE(point);
    useFrom(point);
    expectWhole(point);
    std::error_code ignored;
    for (const char* const part : {"store", "state"})
      std::filesystem::remove_all(folder_ / part, ignored);
    if (HasFatalFailure()) return;
  }
  // Others are on the way of bundles, evictions and repairs.
  EXPECT_GE(crashed_.size(), 8u);
}

}  // namespace
}  // namespace hearth::ipc
