// SPDX-License-Identifier: Apache-2.0
// Vendors' delegates that end, hang or write where they must not, in hosts of their own: a client
// sees errors, and the next host computes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/log.h"
#include "hal/cts/device_fixture.h"
#include "hal/cts/model_builder.h"
#include "hal/driver_manifest.h"
#include "hal/longest_step.h"
#include "ipc/host_process.h"
#include "ipc/hosted_device.h"
#include "ipc/patience.h"
#include "ipc/testing/patience_limit.h"
#include "memory/pool.h"

namespace hearth::ipc {
namespace {

using hal::cts::argumentFor;
using hal::cts::computeOnce;

constexpr int64_t kMillisecond = 1'000'000;

class VendorHostTest : public testing::Test {
 protected:
  VendorHostTest() {
    base::setLogLevel(base::LogLevel::kOff);
    const auto* const test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::path(testing::TempDir()) /
              base::formatText("hearth_vendor_{}_{}", test->name(), ::getpid());
    std::filesystem::create_directories(folder_);
    // Hosts keep there what libraries take.
    variables_.push_back("HEARTH_STORE=" + (folder_ / "store").string());
    if (const char* const options = std::getenv("ASAN_OPTIONS"))
      variables_.push_back(std::string("ASAN_OPTIONS=") + options);
  }
  ~VendorHostTest() override {
    std::filesystem::remove_all(folder_);
    base::setLogLevelFromEnvironment();
  }

  // A device whose delegate does `harm` at `stage` and has the habit. Its host ends when a call
  // into the library takes longer than `seconds`.
  Result<std::shared_ptr<HostedDevice>> make(const std::string& stage, const std::string& harm,
                                             const std::string& habit = "", int seconds = 120) {
    const std::string manifest = (folder_ / "npu.json").string();
    std::ofstream(manifest) << base::formatText(
        R"({{"name": "npu", "needs": {{"code": true}}, "delegate": {{
             "library": "{}", "options": {{"stage": "{}", "harm": "{}", "habit": "{}"}},
             "variables": {{"VENDOR_LOAD": "{}"}}, "prepare_seconds": {}}}}})",
        HEARTH_TEST_DELEGATE, stage, harm, habit, stage == "load" ? harm : "", seconds);
    const HostProgram program{HEARTH_TOOL, {"--device", "npu", "--manifest", manifest}, variables_};
    return HostedDevice::create("npu", [program] { return spawnHost(program); });
  }
  std::shared_ptr<HostedDevice> device(const std::string& stage, const std::string& harm,
                                       const std::string& habit = "", int seconds = 120) {
    auto made = make(stage, harm, habit, seconds);
    EXPECT_TRUE(made) << made.error().toString();
    return made ? *made : nullptr;
  }

  // A manifest of a delegate that logs what it is asked for and keeps a cache with `option`.
  std::string countingManifest(const char* option, const char* kind) const {
    const std::string manifest = (folder_ / "npu.json").string();
    std::ofstream(manifest) << base::formatText(
        R"({{"name": "npu", "needs": {{"code": true, "read_write": ["{0}"]}}, "delegate": {{
             "library": "{1}", "options": {{"log": "{0}/log"}},
             "cache": {{"option": "{2}", "kind": "{3}", "token": "model_token"}}}}}})",
        folder_.string(), HEARTH_TEST_DELEGATE, option, kind);
    return manifest;
  }
  // How often the delegate was offered a model ('o') or compiled one ('c').
  long count(char letter) const {
    std::ifstream log(folder_ / "log");
    return std::count(std::istreambuf_iterator<char>(log), {}, letter);
  }

  // Prepares and computes (a + b) * a - b, in time that suffices under sanitizers, too.
  Status use(hal::Device& device) { return useWithin(device, 30'000 * kMillisecond); }
  // The same with `limit` nanoseconds for each of both. Whatever the vendor's code does, this
  // returns.
  Status useWithin(hal::Device& device, uint64_t limit) {
    hal::PrepareOptions options;
    options.deadline = base::Deadline::after(limit);
    return use(device, options, limit);
  }
  // The same with these options, and a time limit of the computation; 0 = none.
  Status use(hal::Device& device, const hal::PrepareOptions& options, uint64_t limit) {
    const auto model = std::make_shared<const graph::Model>(hal::cts::chainModel({4}));
    HEARTH_TRY(device.supportedOperations(*model));
    HEARTH_ASSIGN(const auto prepared, device.prepareModel(model, options, {}));
    std::vector<float> a = {1, 2, 3, 4}, b = {1, 1, 2, 2}, out(4);
    const auto result =
        computeOnce(*prepared, {{argumentFor(a), argumentFor(b)}, {argumentFor(out)}},
                    limit == 0 ? base::Deadline() : base::Deadline::after(limit));
    if (!result.status) return result.status;
    EXPECT_THAT(out, testing::ElementsAre(1, 5, 13, 22));
    return {};
  }

  std::filesystem::path folder_;
  std::vector<std::string> variables_;
};

TEST_F(VendorHostTest, AWellBehavedDelegateComputes) {
  const auto npu = device("", "");
  ASSERT_NE(npu, nullptr);
  const Status used = use(*npu);
  EXPECT_TRUE(used) << used.error().toString();
  EXPECT_EQ(npu->type(), hal::DeviceType::kAccelerator);
  EXPECT_THAT(npu->version(), testing::StartsWith("libvendor_delegate_20.so "));
}

TEST_F(VendorHostTest, HabitsOfDelegatesAreNoHarm) {
  for (const char* const habit : {"print", "thread", "signals", "leak", "temporaries", "fork"}) {
    const auto npu = device("", "", habit);
    ASSERT_NE(npu, nullptr);
    const Status used = use(*npu);
    EXPECT_TRUE(used) << habit << ": " << used.error().toString();
  }
}

// A host for all clients, as a service manager starts it; killed by the destructor.
class VendorService {
 public:
  VendorService(const std::string& manifest, std::string socket, const std::string& store)
      : socket_(std::move(socket)) {
    process_ = ::fork();
    if (process_ != 0) return;
    ::setenv("HEARTH_STORE", store.c_str(), 1);
    ::execl(HEARTH_TOOL, HEARTH_TOOL, "serve", "--manifest", manifest.c_str(), "--socket",
            socket_.c_str(), nullptr);
    ::_exit(127);
  }
  ~VendorService() {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  VendorService(const VendorService&) = delete;
  VendorService& operator=(const VendorService&) = delete;

  // A client, once the host listens.
  std::shared_ptr<HostedDevice> client() const {
    for (int i = 0; i < 3000; ++i) {
      auto made = HostedDevice::create("npu", [path = socket_] { return joinHost(path); });
      if (made) return *made;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return nullptr;
  }

 private:
  const std::string socket_;
  pid_t process_ = -1;
};

TEST_F(VendorHostTest, ClientsOfAHostHaveOneCompilation) {
  const std::string manifest = countingManifest("unknown_option", "file");
  const VendorService service(manifest, (folder_ / "socket").string(),
                              (folder_ / "store").string());
  for (int client = 0; client < 3; ++client) {
    const auto npu = service.client();
    ASSERT_NE(npu, nullptr);
    const Status used = use(*npu);
    EXPECT_TRUE(used) << used.error().toString();
    // One offer to find out what it takes, and one to compute.
    EXPECT_EQ(count('o'), 2) << client;
    EXPECT_EQ(count('c'), 1) << client;
  }
}

TEST_F(VendorHostTest, ALaterHostFindsWhatTheDelegateHasCompiled) {
  const std::pair<const char*, const char*> kCaches[] = {{"cache_file_path", "file"},
                                                         {"cache_dir", "folder"}};
  for (const auto& [option, kind] : kCaches) {
    SCOPED_TRACE(option);
    std::filesystem::remove(folder_ / "log");
    const std::string manifest = countingManifest(option, kind);
    for (int host = 0; host < 3; ++host) {
      const VendorService service(manifest, (folder_ / "socket").string(),
                                  (folder_ / kind).string());
      const auto npu = service.client();
      ASSERT_NE(npu, nullptr);
      const Status used = use(*npu);
      EXPECT_TRUE(used) << used.error().toString();
      EXPECT_EQ(count('c'), 1) << host;
      EXPECT_EQ(count('o'), 2 + host);
    }
  }
}

// The stages of a library's use in which it may end or stop its process. The habit is one with
// which the stage comes.
struct Stage {
  const char* name;
  const char* habit = "";
  bool isAfterUse = false;  // what is asked for may have been answered by then
};
constexpr Stage kStages[] = {{"load"},
                             {"create"},
                             {"prepare"},
                             {"init"},
                             {"kernel"},
                             {"invoke"},
                             {"copy", "handles"},
                             {"free", "", true},
                             {"destroy", "", true}};

void expectDeath(const Stage& stage, const Status& used) {
  if (used)
    EXPECT_TRUE(stage.isAfterUse);
  else
    EXPECT_EQ(used.error().code(), ErrorCode::kDeadObject) << used.error().toString();
}

class VendorEndTest : public VendorHostTest, public testing::WithParamInterface<const char*> {};

TEST_P(VendorEndTest, IsAnErrorAtAnyStage) {
  for (const Stage& stage : kStages) {
    SCOPED_TRACE(stage.name);
    const auto npu = make(stage.name, GetParam(), stage.habit);
    if (std::string_view(stage.name) == "load") {
      EXPECT_FALSE(npu);
      continue;
    }
    ASSERT_TRUE(npu) << npu.error().toString();
    expectDeath(stage, use(**npu));
    EXPECT_GE((*npu)->state().restarts, 1u);
  }
}

INSTANTIATE_TEST_SUITE_P(Delegates, VendorEndTest, testing::Values("crash", "abort", "exit"),
                         [](const auto& info) { return info.param; });

TEST_F(VendorHostTest, TheNextHostIsAskedAgain) {
  const auto npu = device("prepare", "crash");
  ASSERT_NE(npu, nullptr);
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(use(*npu));
  EXPECT_GE(npu->state().restarts, 1u);
}

TEST_F(VendorHostTest, WritingFarBeyondAResultIsAnError) {
  const auto npu = device("", "", "trample");
  ASSERT_NE(npu, nullptr);
  EXPECT_FALSE(use(*npu));
}

// Without a deadline of the client's.
TEST_F(VendorHostTest, HangingAtAnyStageOfAPreparationIsEndedByTheHost) {
  for (const Stage& stage : kStages) {
    SCOPED_TRACE(stage.name);
    const auto npu = make(stage.name, "hang", stage.habit, 2);
    if (std::string_view(stage.name) == "load") {
      EXPECT_FALSE(npu);
      continue;
    }
    ASSERT_TRUE(npu) << npu.error().toString();
    expectDeath(stage, use(**npu, {}, 0));
    EXPECT_GE((*npu)->state().restarts, 1u);
  }
}

// A handler that returns repeats the fault for ever.
TEST_F(VendorHostTest, AFaultBehindTheLibrarysOwnHandlerIsEndedByTheHost) {
  const auto npu = device("init", "crash", "signals", 2);
  ASSERT_NE(npu, nullptr);
  const Status used = use(*npu, {}, 0);
  ASSERT_FALSE(used);
  EXPECT_EQ(used.error().code(), ErrorCode::kDeadObject) << used.error().toString();
}

TEST_F(VendorHostTest, AThreadThatCrashesWhileNobodyCallsIsAnError) {
  const auto npu = device("thread", "crash", "thread");
  ASSERT_NE(npu, nullptr);
  for (int i = 0; i < 3; ++i) {
    const Status used = use(*npu);
    if (!used) {
      EXPECT_EQ(used.error().code(), ErrorCode::kDeadObject) << used.error().toString();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_GE(npu->state().restarts, 1u);
}

TEST_F(VendorHostTest, DamageToTheInterfacesStructuresIsAnError) {
  for (const char* const habit : {"vandal", "close"}) {
    SCOPED_TRACE(habit);
    const auto npu = device("", "", habit);
    ASSERT_NE(npu, nullptr);
    EXPECT_FALSE(use(*npu));
  }
}

// Constants are in the client's file, which its host maps.
TEST_F(VendorHostTest, WritingIntoConstantsChangesNoFile) {
  const std::vector<float> weights = {1, 2, 3, 4};
  const std::string path = (folder_ / "weights").string();
  std::ofstream(path).write(reinterpret_cast<const char*>(weights.data()), 16);
  auto pool = memory::Pool::openFile(path);
  ASSERT_TRUE(pool) << pool.error().toString();
  constexpr auto kFloat = graph::OperandType::kTensorFloat32;
  hal::cts::ModelBuilder builder;
  const uint32_t in = builder.input(kFloat, {4});
  const uint32_t constant = builder.reference(kFloat, {4}, *pool, 0);
  builder.operation(graph::OperationType::kAdd, {in, constant, builder.scalar(0)},
                    {builder.output(kFloat, {4})});
  const auto model = std::make_shared<const graph::Model>(builder.model());
  const auto npu = device("", "", "constants");
  ASSERT_NE(npu, nullptr);
  EXPECT_FALSE(npu->prepareModel(model, {}, {}));
  std::vector<float> after(4);
  std::ifstream(path).read(reinterpret_cast<char*>(after.data()), 16);
  EXPECT_EQ(after, weights);
}

// The kernel reads the constants where they are, and what becomes of a read beyond the end of a
// file is for the guard to say, whatever handlers the library has set.
TEST_F(VendorHostTest, ConstantsThatAreLostAreAnErrorOfTheExecution) {
  constexpr uint32_t kCount = 64 << 10;
  const std::string path = (folder_ / "weights").string();
  const std::vector<float> weights(kCount, 1.0f);
  std::ofstream(path).write(reinterpret_cast<const char*>(weights.data()), kCount * sizeof(float));
  auto pool = memory::Pool::openFile(path);
  ASSERT_TRUE(pool) << pool.error().toString();
  constexpr auto kFloat = graph::OperandType::kTensorFloat32;
  hal::cts::ModelBuilder builder;
  const uint32_t in = builder.input(kFloat, {kCount});
  const uint32_t constant = builder.reference(kFloat, {kCount}, *pool, 0);
  builder.operation(graph::OperationType::kAdd, {in, constant, builder.scalar(0)},
                    {builder.output(kFloat, {kCount})});
  const auto npu = device("", "", "signals");
  ASSERT_NE(npu, nullptr);
  auto prepared = npu->prepareModel(std::make_shared<const graph::Model>(builder.model()), {}, {});
  ASSERT_TRUE(prepared) << prepared.error().toString();
  std::vector<float> a(kCount, 2.0f), out(kCount);
  const auto compute = [&] {
    return computeOnce(**prepared, {{argumentFor(a)}, {argumentFor(out)}}).status;
  };
  ASSERT_TRUE(compute());
  EXPECT_THAT(out, testing::Each(3.0f));
  const int process = npu->state().process;
  std::filesystem::resize_file(path, 4096);
  for (int i = 0; i < 2; ++i) {
    const Status lost = compute();
    ASSERT_FALSE(lost);
    EXPECT_THAT(lost.error().toString(), testing::HasSubstr("Constants of the model were lost"));
  }
  EXPECT_EQ(npu->state().process, process);
}

TEST_F(VendorHostTest, HangingAtAnyStageIsEndedByTheClient) {
  const PatienceLimit lateness(internal::lateness, 100 * kMillisecond);
  const PatienceLimit silence(internal::silence, 100 * kMillisecond);
  const PatienceLimit standstill(internal::standstill, 100 * kMillisecond);
  for (const char* const stage : {"kernel", "invoke"}) {
    SCOPED_TRACE(stage);
    const auto npu = device(stage, "hang");
    ASSERT_NE(npu, nullptr);
    const Status used = useWithin(*npu, 300 * kMillisecond);
    ASSERT_FALSE(used);
    EXPECT_TRUE(hal::cts::isMissedDeadline(used.error())) << used.error().toString();
  }
}

TEST_F(VendorHostTest, HangingWithoutADeadlineIsEndedAfterTheLongestStepOfTheModel) {
  const PatienceLimit standstill(internal::standstill, 100 * kMillisecond);
  const auto npu = device("numbers", "hang");
  ASSERT_NE(npu, nullptr);
  hal::PrepareOptions options;
  options.driverOptions[hal::kLongestStepOption] = std::to_string(200 * kMillisecond);
  const Status used = use(*npu, options, 0);
  ASSERT_FALSE(used);
  EXPECT_EQ(used.error().code(), ErrorCode::kDeadObject);
  EXPECT_THAT(used.error().toString(), testing::HasSubstr("has begun no step"));
}

}  // namespace
}  // namespace hearth::ipc
