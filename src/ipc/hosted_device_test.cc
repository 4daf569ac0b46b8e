// SPDX-License-Identifier: Apache-2.0
#include "ipc/hosted_device.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "base/fork_test_util.h"
#include "hal/cts/device_fixture.h"
#include "hal/cts/model_builder.h"
#include "ipc/testing/comes_true.h"
#include "ipc/testing/computing_threads.h"
#include "ipc/testing/fake_device.h"
#include "ipc/testing/local_host.h"

namespace hearth::ipc {
namespace {

using hal::cts::addModel;
using hal::cts::argumentFor;
using hal::cts::computeOnce;
using hal::cts::poolArgument;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr uint64_t kBytes = 6 * sizeof(float);

// Every test with a host for one client and with one for clients that do not trust each other.
class HostedDeviceTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    auto device = HostedDevice::create("fake", host_.opener());
    ASSERT_TRUE(device) << device.error().toString();
    device_ = *device;
  }

  std::shared_ptr<hal::PreparedModel> prepare(const hal::PrepareOptions& options = {},
                                              hal::Cache cache = {}) {
    auto prepared = device_->prepareModel(model_, options, std::move(cache));
    EXPECT_TRUE(prepared) << prepared.error().toString();
    return prepared ? *prepared : nullptr;
  }
  hal::Request request() { return {{argumentFor(a_), argumentFor(b_)}, {argumentFor(out_)}}; }
  void expectSum(const hal::ExecutionResult& result) {
    ASSERT_TRUE(result.status) << result.status.error().toString();
    EXPECT_THAT(out_, ElementsAre(11, 22, 33, 44, 55, 66));
    std::fill(out_.begin(), out_.end(), 0.0f);
  }

  const std::shared_ptr<FakeDevice> fake_ = std::make_shared<FakeDevice>();
  LocalHost host_{fake_, {.isShared = GetParam()}};
  std::shared_ptr<HostedDevice> device_;
  const std::shared_ptr<const graph::Model> model_ =
      std::make_shared<const graph::Model>(addModel({2, 3}));
  std::vector<float> a_ = {1, 2, 3, 4, 5, 6};
  std::vector<float> b_ = {10, 20, 30, 40, 50, 60};
  std::vector<float> out_ = std::vector<float>(6);
};
INSTANTIATE_TEST_SUITE_P(Hosts, HostedDeviceTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "Shared" : "ForOne"; });

TEST_P(HostedDeviceTest, SaysWhatTheDeviceSays) {
  EXPECT_EQ(device_->name(), "fake");
  EXPECT_EQ(device_->version(), "1.5");
  EXPECT_EQ(device_->type(), hal::DeviceType::kAccelerator);
  EXPECT_EQ(device_->featureLevel(), 31);
  const hal::Capabilities capabilities = device_->capabilities();
  ASSERT_EQ(capabilities.operandPerformance.size(), 1u);
  EXPECT_EQ(capabilities.operandPerformance.begin()->second.execTime, 0.5f);
  EXPECT_EQ(capabilities.whilePerformance.powerUsage, 4.0f);
  // Operators of this process are not in the host.
  EXPECT_THAT(device_->supportedExtensions(), ElementsAre("com.example"));
  EXPECT_EQ(device_->extensionOperandTypes(), FakeDevice().extensionOperandTypes());
  const auto counts = device_->numberOfCacheFilesNeeded();
  ASSERT_TRUE(counts);
  EXPECT_EQ(counts->model, 1u);
  EXPECT_EQ(counts->data, 2u);
  device_->warmUp();
  device_->flush();
  EXPECT_EQ(fake_->warmUps, 1);
  EXPECT_EQ(fake_->flushes, 1);
}

TEST_P(HostedDeviceTest, SaysWhatTheHostSays) {
  HostedDevice::State state = device_->state();
  EXPECT_EQ(state.isShared, GetParam());
  EXPECT_EQ(state.process, ::getpid());
  EXPECT_EQ(state.clients, 1u);
  EXPECT_GT(state.memory, 0u);
  EXPECT_EQ(state.restarts, 0u);
  host_.kill();
  EXPECT_TRUE(comesTrue([&] { return device_->state().process == 0; }));
  EXPECT_EQ(device_->state().clients, 0u);
  EXPECT_EQ(host_.starts(), 1);
  ASSERT_NE(prepare(), nullptr);
  state = device_->state();
  EXPECT_EQ(state.process, ::getpid());
  EXPECT_EQ(state.restarts, 1u);
}

TEST_P(HostedDeviceTest, AsksTheDeviceAboutOperations) {
  const auto support = device_->supportedOperations(*model_);
  ASSERT_TRUE(support) << support.error().toString();
  ASSERT_EQ(support->size(), 1u);
  EXPECT_TRUE((*support)[0].supported);
  const auto other = device_->explainOperations(hal::cts::convolutionModel(3));
  ASSERT_TRUE(other) << other.error().toString();
  ASSERT_EQ(other->size(), 1u);
  EXPECT_FALSE((*other)[0].supported);
  EXPECT_EQ((*other)[0].reason, "It only adds.");
  EXPECT_FALSE(device_->supportedOperations(graph::Model()));
}

TEST_P(HostedDeviceTest, CarriesOptionsFilesAndReports) {
  hal::PrepareOptions options;
  options.preparation = hal::Preparation::kJustInTime;
  options.preference = hal::Preference::kSustainedSpeed;
  options.priority = hal::Priority::kHigh;
  options.isTuned = true;
  options.driverOptions = {{"a", "b"}};
  options.maxActivationBytes = 12345;
  options.deadline = base::Deadline::after(3'600'000'000'000);
  hal::Cache cache;
  cache.token = {1, 2, 3};
  cache.modelFiles.emplace_back(::memfd_create("model", MFD_CLOEXEC));
  cache.dataFiles.emplace_back();
  const auto prepared = prepare(options, std::move(cache));
  ASSERT_NE(prepared, nullptr);
  EXPECT_EQ(fake_->lastOptions.preparation, options.preparation);
  EXPECT_EQ(fake_->lastOptions.preference, options.preference);
  EXPECT_EQ(fake_->lastOptions.priority, options.priority);
  EXPECT_TRUE(fake_->lastOptions.isTuned);
  EXPECT_EQ(fake_->lastOptions.maxActivationBytes, 12345u);
  EXPECT_EQ(fake_->lastOptions.deadline.when(), options.deadline.when());
  EXPECT_THAT(fake_->lastFiles, ElementsAre(true, false));
  // What a stranger says about files counts for nothing, and its token is its user's.
  EXPECT_EQ(fake_->lastOptions.driverOptions.empty(), GetParam());
  EXPECT_EQ(fake_->lastToken != hal::CacheToken({1, 2, 3}), GetParam());
  const hal::StartReport report = prepared->startReport();
  EXPECT_EQ(report.state, hal::StartReport::State::kWarm);
  EXPECT_EQ(report.packedBytes.at("ADD"), 5u);
  EXPECT_THAT(report.routedAround, ElementsAre("avx"));
  EXPECT_THAT(report.slowOperations, ElementsAre("ADD 0 (TENSOR_FLOAT16): it is a test"));
  EXPECT_EQ(report.tuning.state, hal::TuningReport::State::kMeasured);
  EXPECT_EQ(report.tuning.quickTime, 11u);
  EXPECT_EQ(report.cacheProblem, "No file was written.");
  EXPECT_EQ(report.shapes, 3u);
}

// A device that tells about cache files, and whose files have a token that is another one behind a
// host.
class ExplainingDevice final : public FakeDevice, public hal::CacheExplainer {
 public:
  Result<base::Sha256Digest> cacheBuild() const override { return base::Sha256Digest{1, 2, 3}; }
  hal::CacheVerdict explainCache(const graph::Model& model, const hal::PrepareOptions& options,
                                 const hal::Cache& cache) override {
    const auto prepared = prepareModel(std::make_shared<const graph::Model>(model), options, {});
    EXPECT_TRUE(prepared);
    lastToken = cache.token;
    for (const base::Descriptor& file : cache.modelFiles) lastFiles.push_back(file.valid());
    return verdict;
  }

  hal::CacheVerdict verdict;
};

TEST(HostedCacheExplainer, AsksTheDriverOfTheHost) {
  const auto explaining = std::make_shared<ExplainingDevice>();
  LocalHost host(explaining, {.isShared = true});
  const auto device = HostedDevice::create("fake", host.opener());
  ASSERT_TRUE(device) << device.error().toString();
  EXPECT_EQ((*device)->cacheBuild(), (base::Sha256Digest{1, 2, 3}));
  hal::Cache cache;
  cache.token = {7};
  cache.modelFiles.emplace_back(::memfd_create("cache", MFD_CLOEXEC));
  for (const hal::CacheVerdict& verdict :
       {hal::CacheVerdict{true, "hit", "", true}, hal::CacheVerdict{true, "hit", "", false},
        hal::CacheVerdict{false, "unusable", "It is cut off.", std::nullopt}}) {
    explaining->verdict = verdict;
    const hal::CacheVerdict told =
        (*device)->explainCache(addModel({2}), {.threads = 3, .isTuned = true}, cache);
    EXPECT_EQ(told.isHit, verdict.isHit);
    EXPECT_EQ(told.code, verdict.code);
    EXPECT_EQ(told.reason, verdict.reason);
    EXPECT_EQ(told.isSameModel, verdict.isSameModel);
    EXPECT_TRUE(explaining->lastOptions.isTuned);
    EXPECT_THAT(explaining->lastFiles, ElementsAre(true));
    // Whose files they are depends on the user.
    EXPECT_NE(explaining->lastToken, cache.token);
  }
}

TEST_P(HostedDeviceTest, TellsNothingOfCacheFilesWhereTheDriverDoesNot) {
  const hal::CacheVerdict told = device_->explainCache(*model_, {}, {});
  EXPECT_FALSE(told.isHit);
  EXPECT_EQ(told.code, hal::kCacheNotTold);
  EXPECT_THAT(told.reason, HasSubstr("does not tell"));
  const auto build = device_->cacheBuild();
  ASSERT_FALSE(build);
  EXPECT_EQ(build.error().code(), ErrorCode::kOpFailed);
}

TEST_P(HostedDeviceTest, ComputesAndCountsWhatItCopies) {
  const auto prepared = prepare();
  ASSERT_NE(prepared, nullptr);
  const hal::ExecutionResult result = computeOnce(*prepared, request());
  EXPECT_EQ(result.copiedBytes, 3 * kBytes);
  EXPECT_EQ(result.timing.inDriver, 2000u);
  expectSum(result);
}

TEST_P(HostedDeviceTest, FreesInTheHostWhatTheClientFrees) {
  auto prepared = prepare();
  ASSERT_NE(prepared, nullptr);
  auto execution = prepared->createExecution(request());
  ASSERT_TRUE(execution) << execution.error().toString();
  EXPECT_EQ(fake_->executions, 1);
  prepared.reset();
  expectSum((*execution)->compute({}));
  execution->reset();
  EXPECT_TRUE(comesTrue([&] { return fake_->executions == 0 && fake_->prepared == 0; }));
}

TEST_P(HostedDeviceTest, AHostThatEndedBetweenCallsIsReplaced) {
  const auto prepared = prepare();
  ASSERT_NE(prepared, nullptr);
  auto execution = prepared->createExecution(request());
  ASSERT_TRUE(execution);
  expectSum((*execution)->compute({}));
  for (int round = 1; round <= 3; ++round) {
    host_.kill();
    expectSum((*execution)->compute({}));
    EXPECT_EQ(host_.starts(), 1 + round);
  }
  host_.kill();
  expectSum(computeOnce(*prepared, request()));
  host_.kill();
  EXPECT_TRUE(device_->supportedOperations(*model_));
  host_.kill();
  EXPECT_NE(prepare(), nullptr);
  host_.kill();
  EXPECT_FALSE(prepared->startReport().reason.empty());
}

TEST_P(HostedDeviceTest, WhatWasBeingComputedIsADeadObject) {
  const auto prepared = prepare();
  ASSERT_NE(prepared, nullptr);
  auto execution = prepared->createExecution(request());
  ASSERT_TRUE(execution);
  fake_->hold();
  std::thread killer([&] {
    fake_->waitForComputations(1);
    host_.kill();
    fake_->letGo();
  });
  const hal::ExecutionResult result = (*execution)->compute({});
  killer.join();
  ASSERT_FALSE(result.status);
  EXPECT_EQ(result.status.error().code(), ErrorCode::kDeadObject);
  EXPECT_THAT(out_, testing::Each(0.0f));
  // The next one is served by a new host.
  expectSum((*execution)->compute({}));
  EXPECT_EQ(host_.starts(), 2);
}

TEST_P(HostedDeviceTest, ManyThreadsGetTheirOwnResults) {
  const auto prepared = prepare();
  ASSERT_NE(prepared, nullptr);
  constexpr int kThreads = 12;
  std::vector<std::string> failures(kThreads);
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        std::vector<float> a(6, static_cast<float>(t));
        std::vector<float> b(6);
        std::vector<float> out(6);
        auto execution =
            prepared->createExecution({{argumentFor(a), argumentFor(b)}, {argumentFor(out)}});
        if (!execution) {
          failures[t] = execution.error().toString();
          return;
        }
        for (int round = 0; round < 50 && failures[t].empty(); ++round) {
          std::fill(b.begin(), b.end(), static_cast<float>(round));
          const hal::ExecutionResult result = (*execution)->compute({});
          if (!result.status)
            failures[t] = result.status.error().toString();
          else if (out != std::vector<float>(6, static_cast<float>(t + round)))
            failures[t] = "wrong result";
        }
      });
  }
  for (const std::string& failure : failures) EXPECT_EQ(failure, "");
}

// Hosts die while threads compute: no wrong result, no hang, and in the end it works again.
TEST_P(HostedDeviceTest, DeathsAmongManyThreadsGiveResultsOrDeadObjects) {
  const auto prepared = prepare();
  ASSERT_NE(prepared, nullptr);
  ComputingThreads threads(4, [&](int thread) {
    return [&prepared, thread]() -> Result<bool> {
      std::vector<float> a(6, static_cast<float>(thread));
      std::vector<float> b(6, 1.0f);
      std::vector<float> out(6);
      const hal::ExecutionResult result =
          computeOnce(*prepared, {{argumentFor(a), argumentFor(b)}, {argumentFor(out)}});
      return stepResult(result.status,
                        out == std::vector<float>(6, static_cast<float>(thread + 1)));
    };
  });
  for (int death = 0; death < 30; ++death) {
    // Not before something was computed again.
    EXPECT_TRUE(threads.waitForResult());
    host_.kill();
  }
  EXPECT_THAT(threads.stop(), testing::IsEmpty());
  expectSum(computeOnce(*prepared, request()));
}

TEST_P(HostedDeviceTest, MemoryThatIsTakenAwayFailsItsExecutionOnly) {
  const auto prepared = prepare();
  ASSERT_NE(prepared, nullptr);
  for (const bool isInput : {true, false}) {
    const base::Descriptor file(::memfd_create("client", MFD_CLOEXEC));
    constexpr off_t kSize = 1 << 16;
    ASSERT_EQ(::ftruncate(file.get(), kSize), 0);
    auto pool = memory::Pool::ofFile(file.get(), 0, kSize, memory::Mapping::Access::kReadWrite);
    ASSERT_TRUE(pool);
    const hal::Argument shrinking = poolArgument(*pool, 40'000, kBytes);
    auto execution = prepared->createExecution(
        isInput ? hal::Request{{shrinking, argumentFor(b_)}, {argumentFor(out_)}}
                : hal::Request{{argumentFor(a_), argumentFor(b_)}, {shrinking}});
    ASSERT_TRUE(execution) << execution.error().toString();
    ASSERT_TRUE((*execution)->compute({}).status);
    ASSERT_EQ(::ftruncate(file.get(), 0), 0);
    const hal::ExecutionResult result = (*execution)->compute({});
    ASSERT_FALSE(result.status);
    EXPECT_EQ(result.status.error().code(), ErrorCode::kOpFailed);
    EXPECT_THAT(result.status.error().message(), HasSubstr("taken away"));
    // A new one cannot map what is not there.
    EXPECT_FALSE(prepared->createExecution({{shrinking, argumentFor(b_)}, {argumentFor(out_)}}));
  }
  std::fill(out_.begin(), out_.end(), 0.0f);
  expectSum(computeOnce(*prepared, request()));
  EXPECT_EQ(host_.starts(), 1);
}

TEST_P(HostedDeviceTest, BuffersAreInTheHost) {
  const auto prepared = prepare();
  ASSERT_NE(prepared, nullptr);
  auto buffer = device_->allocate({{2, 3}}, {{prepared, true, 0}, {prepared, false, 0}});
  ASSERT_TRUE(buffer) << buffer.error().toString();
  auto pool = memory::Pool::anonymous(kBytes);
  ASSERT_TRUE(pool);
  std::memcpy((*pool)->mutableData(), a_.data(), kBytes);
  ASSERT_TRUE((*buffer)->copyFrom(*pool, {2, 3}));
  hal::Argument token;
  token.kind = hal::Argument::Kind::kBuffer;
  token.token = (*buffer)->token();
  expectSum(computeOnce(*prepared, {{token, argumentFor(b_)}, {argumentFor(out_)}}));
  // The output replaces the input.
  ASSERT_TRUE(computeOnce(*prepared, {{token, argumentFor(b_)}, {token}}).status);
  ASSERT_TRUE((*buffer)->copyTo(*pool));
  std::vector<float> sum(6);
  std::memcpy(sum.data(), (*pool)->data(), kBytes);
  EXPECT_THAT(sum, ElementsAre(11, 22, 33, 44, 55, 66));
  // Only in its roles.
  const hal::ExecutionResult wrong =
      computeOnce(*prepared, {{argumentFor(a_), token}, {argumentFor(out_)}});
  ASSERT_FALSE(wrong.status);
  EXPECT_EQ(wrong.status.error().code(), ErrorCode::kBadData);
  const auto other = prepare();
  EXPECT_FALSE(computeOnce(*other, {{token, argumentFor(b_)}, {argumentFor(out_)}}).status);
  // Bytes of the client, without a descriptor.
  EXPECT_TRUE((*buffer)->copyFrom(memory::Pool::borrowed(b_.data(), kBytes), {2, 3}));
  EXPECT_FALSE((*buffer)->copyTo(memory::Pool::borrowed(out_.data(), kBytes)));
  EXPECT_FALSE((*buffer)->copyFrom(memory::Pool::borrowed(nullptr, kBytes), {2, 3}));
  EXPECT_FALSE(device_->allocate({{2, 3}}, {}));
}

TEST_P(HostedDeviceTest, BuffersAreLostWithTheirHost) {
  const auto prepared = prepare();
  ASSERT_NE(prepared, nullptr);
  auto buffer = device_->allocate({{2, 3}}, {{prepared, true, 0}});
  ASSERT_TRUE(buffer) << buffer.error().toString();
  host_.kill();
  auto pool = memory::Pool::anonymous(kBytes);
  ASSERT_TRUE(pool);
  const Status copied = (*buffer)->copyTo(*pool);
  ASSERT_FALSE(copied);
  EXPECT_EQ(copied.error().code(), ErrorCode::kDeadObject);
  hal::Argument token;
  token.kind = hal::Argument::Kind::kBuffer;
  token.token = (*buffer)->token();
  EXPECT_FALSE(computeOnce(*prepared, {{token, argumentFor(b_)}, {argumentFor(out_)}}).status);
  // No other buffer has its token.
  auto next = device_->allocate({{2, 3}}, {{prepared, true, 0}});
  ASSERT_TRUE(next) << next.error().toString();
  EXPECT_NE((*next)->token(), (*buffer)->token());
}

TEST_P(HostedDeviceTest, AForkedChildHasAHostOfItsOwn) {
  HEARTH_SKIP_THREADS_AFTER_FORK();
  HEARTH_SKIP_FORK_AMID_ALLOCATIONS();
  const auto prepared = prepare();
  ASSERT_NE(prepared, nullptr);
  auto execution = prepared->createExecution(request());
  ASSERT_TRUE(execution);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    const bool isGood = (*execution)->compute({}).status.has_value() && out_[5] == 66.0f;
    ::_exit(isGood && host_.starts() == 2 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  expectSum((*execution)->compute({}));
  EXPECT_EQ(host_.starts(), 1);
}

TEST(HostLinkTest, WrongHostsAreRefused) {
  LocalHost host(std::make_shared<FakeDevice>(), {});
  const auto other = HostedDevice::create("other", host.opener());
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().toString(), HasSubstr("has the device fake"));
  const auto none = HostedDevice::create("fake", [] {
    return Result<base::Descriptor>(fail(ErrorCode::kNotFound, "There is no host."));
  });
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().toString(), HasSubstr("There is no host."));
}

// Pauses grow while starts fail, and calls fail at once instead of waiting long.
TEST(HostLinkTest, StartsThatFailAreNotRepeatedAllTheTime) {
  LocalHost host(std::make_shared<FakeDevice>(), {});
  std::atomic<bool> isGone = false;
  std::atomic<int> attempts = 0;
  const auto device = HostedDevice::create("fake", [&]() -> Result<base::Descriptor> {
    ++attempts;
    if (isGone) return fail(ErrorCode::kNotFound, "There is no host.");
    return host.open();
  });
  ASSERT_TRUE(device) << device.error().toString();
  isGone = true;
  host.kill();
  std::string last;
  for (int i = 0; i < 1000; ++i) {
    const auto support = (*device)->supportedOperations(addModel({2, 3}));
    ASSERT_FALSE(support);
    EXPECT_EQ(support.error().code(), ErrorCode::kDeadObject);
    last = support.error().toString();
  }
  EXPECT_LT(attempts, 100);
  EXPECT_THAT(last, HasSubstr("the next one is due"));
}

}  // namespace
}  // namespace hearth::ipc
