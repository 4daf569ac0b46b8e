// SPDX-License-Identifier: Apache-2.0
// Hosts in processes of their own, which the command hearth makes.
#include <fcntl.h>
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
#include <random>
#include <thread>
#include <vector>

#include "base/log.h"
#include "hal/cts/device_fixture.h"
#include "hal/cts/model_builder.h"
#include "ipc/host_process.h"
#include "ipc/hosted_device.h"
#include "ipc/patience.h"
#include "ipc/testing/comes_true.h"
#include "ipc/testing/computing_threads.h"
#include "ipc/testing/patience_limit.h"

namespace hearth::ipc {
namespace {

using hal::cts::argumentFor;
using hal::cts::computeOnce;
using testing::HasSubstr;

std::string contentsOf(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// What the kernel tells of a process or thread after its number and name; empty when it is gone.
std::string stateOf(const std::filesystem::path& folder) {
  const std::string stat = contentsOf(folder / "stat");
  const size_t end = stat.rfind(')');
  return end == std::string::npos ? "" : stat.substr(end + 2);
}

// Stops all threads of a process.
void stop(pid_t process) {
  EXPECT_EQ(::kill(process, SIGSTOP), 0);
  const std::filesystem::path threads = "/proc/" + std::to_string(process) + "/task";
  // A signal takes its time.
  EXPECT_TRUE(comesTrue([&] {
    return std::ranges::all_of(
        std::filesystem::directory_iterator(threads),
        [](const auto& thread) { return stateOf(thread.path()).starts_with('T'); });
  }));
}

class SpawnedHostTest : public testing::Test {
 protected:
  SpawnedHostTest() {
    // Marks the hosts of this test.
    program_.variables = {mark_};
    if (const char* const options = std::getenv("ASAN_OPTIONS"))
      program_.variables.push_back(std::string("ASAN_OPTIONS=") + options);
  }

  HostOpener opener() {
    return [this] {
      return spawnHost(program_);
    };
  }
  // The processes of hosts of this test that have been handed on to.
  std::vector<pid_t> hosts() const {
    std::vector<pid_t> found;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const std::string name = entry.path().filename();
      if (name.find_first_not_of("0123456789") != std::string::npos) continue;
      if (contentsOf(entry.path() / "environ").find(mark_) == std::string::npos) continue;
      // "STATE PARENT ..."
      const std::string state = stateOf(entry.path());
      if (state.empty() || state[0] == 'Z') continue;
      if (std::atoi(state.c_str() + 2) == ::getpid()) continue;
      found.push_back(std::atoi(name.c_str()));
    }
    return found;
  }

  const std::string mark_ = "HEARTH_TEST_MARK=" + std::to_string(::getpid()) + "-" +
                            testing::UnitTest::GetInstance()->current_test_info()->name();
  HostProgram program_{HEARTH_TOOL, {"--device", "hearth-cpu"}, {}};
};

TEST_F(SpawnedHostTest, IsNobodysChildAndEndsWithItsClient) {
  auto device = HostedDevice::create("hearth-cpu", opener());
  ASSERT_TRUE(device) << device.error().toString();
  EXPECT_EQ((*device)->name(), "hearth-cpu");
  EXPECT_EQ(hosts().size(), 1u);
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
  device->reset();
  EXPECT_TRUE(comesTrue([&] { return hosts().empty(); }));
}

TEST_F(SpawnedHostTest, HasNoOtherDescriptorsAndVariables) {
  const std::filesystem::path secret = testing::TempDir() + "/hearth-secret";
  // Inherited by every program that does not close it.
  const base::Descriptor open(::open(secret.c_str(), O_RDWR | O_CREAT, 0600));
  ::setenv("HEARTH_TEST_SECRET", "x", 1);
  auto device = HostedDevice::create("hearth-cpu", opener());
  ::unsetenv("HEARTH_TEST_SECRET");
  ASSERT_TRUE(device) << device.error().toString();
  const auto found = hosts();
  ASSERT_EQ(found.size(), 1u);
  const std::filesystem::path process = "/proc/" + std::to_string(found[0]);
  EXPECT_THAT(contentsOf(process / "environ"), testing::Not(HasSubstr("HEARTH_TEST_SECRET")));
  for (const auto& entry : std::filesystem::directory_iterator(process / "fd")) {
    std::error_code ignored;
    EXPECT_NE(std::filesystem::read_symlink(entry.path(), ignored), secret);
  }
  std::filesystem::remove(secret);
}

TEST_F(SpawnedHostTest, ProgramsThatAreNoHostsAreErrors) {
  for (const char* const program : {"/nonexistent/hearth", "/bin/true", "/bin/false", "/"}) {
    program_.program = program;
    const auto device = HostedDevice::create("hearth-cpu", opener());
    EXPECT_FALSE(device) << program;
  }
  program_.program = HEARTH_TOOL;
  program_.arguments = {"--device", "no-such-device"};
  EXPECT_FALSE(HostedDevice::create("no-such-device", opener()));
}

// A client of a host that is stopped from outside.
class StoppedHostTest : public SpawnedHostTest {
 protected:
  StoppedHostTest() {
    auto device = HostedDevice::create("hearth-cpu", opener());
    EXPECT_TRUE(device) << device.error().toString();
    if (!device) return;
    device_ = *device;
    auto prepared = device_->prepareModel(
        std::make_shared<const graph::Model>(hal::cts::addModel({2})), {}, {});
    EXPECT_TRUE(prepared) << prepared.error().toString();
    if (!prepared) return;
    auto execution =
        (*prepared)->createExecution({{argumentFor(a_), argumentFor(b_)}, {argumentFor(out_)}});
    EXPECT_TRUE(execution) << execution.error().toString();
    if (execution) execution_ = std::move(*execution);
  }
  ~StoppedHostTest() override {
    // One that is stopped would stay for ever.
    for (const pid_t host : hosts()) ::kill(host, SIGKILL);
  }

  static constexpr uint64_t kMillisecond = 1'000'000;

  // Stops the host and returns its process; 0 when there is none.
  pid_t stopHost() const {
    const std::vector<pid_t> found = hosts();
    EXPECT_EQ(found.size(), 1u);
    if (found.size() != 1) return 0;
    stop(found[0]);
    return found[0];
  }
  void expectSum() {
    const hal::ExecutionResult result = execution_->compute({});
    ASSERT_TRUE(result.status) << result.status.error().toString();
    EXPECT_THAT(out_, testing::ElementsAre(11, 22));
    std::fill(out_.begin(), out_.end(), 0.0f);
  }

  const PatienceLimit lateness_{internal::lateness, 100 * kMillisecond};
  std::vector<float> a_ = {1, 2};
  std::vector<float> b_ = {10, 20};
  std::vector<float> out_ = std::vector<float>(2);
  std::shared_ptr<HostedDevice> device_;
  std::unique_ptr<hal::Execution> execution_;
};

TEST_F(StoppedHostTest, IsEndedByItsClientSomeTimeAfterADeadline) {
  base::setLogLevel(base::LogLevel::kOff);
  ASSERT_NE(execution_, nullptr);
  // The first one goes as a message, the others through a mailbox.
  for (const int computed : {0, 3}) {
    for (int i = 0; i < computed; ++i) expectSum();
    const pid_t stopped = stopHost();
    ASSERT_NE(stopped, 0);
    const hal::ExecutionResult result =
        execution_->compute(base::Deadline::after(100 * kMillisecond));
    ASSERT_FALSE(result.status);
    EXPECT_EQ(result.status.error().code(), ErrorCode::kMissedDeadlineTransient);
    EXPECT_THAT(result.status.error().toString(), HasSubstr("was ended"));
    EXPECT_THAT(hosts(), testing::IsEmpty());
    expectSum();
  }
  EXPECT_EQ(device_->state().restarts, 2u);
  base::setLogLevelFromEnvironment();
}

// Long before a host that answers its pulse would be ended.
TEST_F(StoppedHostTest, IsEndedWhenItsPulseIsNotAnsweredAfterADeadline) {
  base::setLogLevel(base::LogLevel::kOff);
  ASSERT_NE(execution_, nullptr);
  const PatienceLimit lateness(internal::lateness, 3'600'000 * kMillisecond);
  const PatienceLimit silence(internal::silence, 100 * kMillisecond);
  for (const int computed : {0, 3}) {
    for (int i = 0; i < computed; ++i) expectSum();
    ASSERT_NE(stopHost(), 0);
    const hal::ExecutionResult result =
        execution_->compute(base::Deadline::after(100 * kMillisecond));
    ASSERT_FALSE(result.status);
    EXPECT_EQ(result.status.error().code(), ErrorCode::kMissedDeadlineTransient);
    EXPECT_THAT(hosts(), testing::IsEmpty());
    expectSum();
  }
  base::setLogLevelFromEnvironment();
}

TEST_F(StoppedHostTest, IsEndedWithoutADeadlineWhenItsPulseIsNotAnsweredForLong) {
  base::setLogLevel(base::LogLevel::kOff);
  ASSERT_NE(execution_, nullptr);
  const PatienceLimit silence(internal::endlessSilence, 200 * kMillisecond);
  // A message has been sent, so nobody knows whether it was begun.
  pid_t stopped = stopHost();
  ASSERT_NE(stopped, 0);
  const hal::ExecutionResult result = execution_->compute({});
  ASSERT_FALSE(result.status);
  EXPECT_EQ(result.status.error().code(), ErrorCode::kDeadObject);
  EXPECT_THAT(result.status.error().toString(), HasSubstr("pulse"));
  EXPECT_THAT(hosts(), testing::IsEmpty());
  // From a mailbox the host has taken nothing, so another one computes.
  for (int i = 0; i < 2; ++i) expectSum();
  stopped = stopHost();
  ASSERT_NE(stopped, 0);
  expectSum();
  EXPECT_THAT(hosts(), testing::Not(testing::Contains(stopped)));
  EXPECT_EQ(device_->state().restarts, 2u);
  base::setLogLevelFromEnvironment();
}

TEST_F(StoppedHostTest, ExecutionsAreMadeOnAnotherHost) {
  base::setLogLevel(base::LogLevel::kOff);
  const auto prepared =
      device_->prepareModel(std::make_shared<const graph::Model>(hal::cts::addModel({2})), {}, {});
  ASSERT_TRUE(prepared) << prepared.error().toString();
  const PatienceLimit silence(internal::endlessSilence, 200 * kMillisecond);
  const pid_t stopped = stopHost();
  ASSERT_NE(stopped, 0);
  auto execution =
      (*prepared)->createExecution({{argumentFor(a_), argumentFor(b_)}, {argumentFor(out_)}});
  ASSERT_TRUE(execution) << execution.error().toString();
  execution_ = std::move(*execution);
  expectSum();
  EXPECT_THAT(hosts(), testing::Not(testing::Contains(stopped)));
  EXPECT_EQ(device_->state().restarts, 1u);
  base::setLogLevelFromEnvironment();
}

TEST_F(StoppedHostTest, IsWaitedForWithoutADeadline) {
  ASSERT_NE(execution_, nullptr);
  for (int i = 0; i < 3; ++i) expectSum();
  const pid_t stopped = stopHost();
  ASSERT_NE(stopped, 0);
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    ::kill(stopped, SIGCONT);
  });
  expectSum();
  later.join();
  EXPECT_EQ(device_->state().restarts, 0u);
}

// Every result is the right one or a dead object, nothing hangs, and in the end it works.
TEST_F(SpawnedHostTest, KillsAtRandomInstantsGiveResultsOrDeadObjects) {
  base::setLogLevel(base::LogLevel::kOff);
  const auto device = HostedDevice::create("hearth-cpu", opener());
  ASSERT_TRUE(device) << device.error().toString();
  const auto model = std::make_shared<const graph::Model>(hal::cts::convolutionModel(31));
  const auto prepared = (*device)->prepareModel(model, {}, {});
  ASSERT_TRUE(prepared) << prepared.error().toString();
  std::vector<float> in(31 * 31 * 3, 1.0f);
  std::vector<float> expected(31 * 31 * 4);
  ASSERT_TRUE(computeOnce(**prepared, {{argumentFor(in)}, {argumentFor(expected)}}).status);

  const char* const isLong = std::getenv("HEARTH_TEST_LONG");
  const int kills = isLong != nullptr && std::string(isLong) == "1" ? 1000 : 25;
  struct Own {
    std::vector<float> in;
    std::vector<float> out;
    std::unique_ptr<hal::Execution> execution = nullptr;
  };
  ComputingThreads threads(3, [&](int) {
    const auto own = std::make_shared<Own>(in, std::vector<float>(expected.size()));
    return [&prepared, &expected, own]() -> Result<bool> {
      if (own->execution == nullptr) {
        auto created =
            (*prepared)->createExecution({{argumentFor(own->in)}, {argumentFor(own->out)}});
        // A host that is dead or starting cannot have one.
        if (!created) return false;
        own->execution = std::move(*created);
      }
      std::fill(own->out.begin(), own->out.end(), -1.0f);
      const hal::ExecutionResult result = own->execution->compute({});
      return stepResult(result.status, own->out == expected);
    };
  });
  std::mt19937 random(7);
  for (int i = 0; i < kills && !threads.hasFailed(); ++i) {
    EXPECT_TRUE(threads.waitForResult()) << i;
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 3000));
    for (const pid_t host : hosts()) ::kill(host, SIGKILL);
  }
  EXPECT_TRUE(threads.waitForResult());
  EXPECT_THAT(threads.stop(), testing::IsEmpty());
  base::setLogLevelFromEnvironment();
}

}  // namespace
}  // namespace hearth::ipc
