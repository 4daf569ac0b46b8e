// SPDX-License-Identifier: Apache-2.0
// Compilation and execution on a device of the test: out = in + state, state += 1.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "hal/testing/stub_devices.h"
#include "runtime/compilation.h"
#include "runtime/execution.h"

namespace hearth::runtime {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Settings and counters of the test device.
struct Behaviour {
  bool takesOperations = true;
  bool failsNext = false;
  bool failsToPrepare = false;
  bool lacksMemory = false;
  float execTime = 1.0f;
  std::atomic<int> bindings = 0;
  std::mutex mutex;
  std::condition_variable opened;
  bool isGateOpen = true;
  bool isDead = false;
  int computations = 0;
  uint64_t activationLimit = 0;
  unsigned threads = 0;

  void open() {
    const std::lock_guard lock(mutex);
    isGateOpen = true;
    opened.notify_all();
  }
};

int32_t* memoryOf(const hal::Argument& argument) {
  if (argument.kind == hal::Argument::Kind::kPointer)
    return static_cast<int32_t*>(argument.pointer);
  return reinterpret_cast<int32_t*>(const_cast<uint8_t*>(argument.pool->data()) + argument.offset);
}

class TestExecution final : public hal::Execution {
 public:
  TestExecution(Behaviour* behaviour, hal::Request request)
      : behaviour_(behaviour), request_(std::move(request)) {}

  hal::ExecutionResult compute(const base::Deadline& deadline) override {
    hal::ExecutionResult result;
    {
      std::unique_lock lock(behaviour_->mutex);
      behaviour_->opened.wait(lock, [this] { return behaviour_->isGateOpen; });
    }
    const int32_t state = *memoryOf(request_.inputs[1]);
    *memoryOf(request_.outputs[1]) = state + 1;
    ++behaviour_->computations;
    if (behaviour_->isDead) {
      result.status = fail(ErrorCode::kDeadObject, "The device is dead.");
      return result;
    }
    if (std::exchange(behaviour_->failsNext, false)) {
      result.status = fail(ErrorCode::kOpFailed, "The device fails as told.");
      return result;
    }
    if (deadline.hasPassed()) {
      result.status = fail(ErrorCode::kMissedDeadlineTransient, "Too late.");
      return result;
    }
    const uint64_t bytes = request_.inputs[0].length;
    result.outputShapes = {{{static_cast<uint32_t>(bytes / 4)}, true}, {{1}, true}};
    if (request_.outputs[0].length < bytes) {
      result.outputShapes.change()[0].isSufficient = false;
      result.status = fail(ErrorCode::kOutputInsufficientSize, "Too small.");
      return result;
    }
    for (uint64_t i = 0; i < bytes / 4; ++i)
      memoryOf(request_.outputs[0])[i] = memoryOf(request_.inputs[0])[i] + state;
    return result;
  }

 private:
  Behaviour* behaviour_;
  hal::Request request_;
};

class TestPrepared final : public hal::PreparedModel {
 public:
  explicit TestPrepared(Behaviour* behaviour) : behaviour_(behaviour) {}
  Result<std::unique_ptr<hal::Execution>> createExecution(hal::Request request) override {
    ++behaviour_->bindings;
    // Those of the states, too.
    EXPECT_EQ(request.inputs.size(), 2u);
    EXPECT_EQ(request.outputs.size(), 2u);
    return std::make_unique<TestExecution>(behaviour_, std::move(request));
  }
  hal::StartReport startReport() const override { return {}; }

 private:
  Behaviour* behaviour_;
};

class TestDevice final : public hal::StubDevice {
 public:
  TestDevice(std::string name, Behaviour* behaviour, hal::DeviceType type = hal::DeviceType::kCpu)
      : StubDevice(std::move(name)), behaviour_(behaviour), type_(type) {}
  hal::DeviceType type() const override { return type_; }
  hal::Capabilities capabilities() const override {
    hal::Capabilities capabilities;
    capabilities.operandPerformance[graph::OperandType::kTensorInt32].execTime =
        behaviour_->execTime;
    return capabilities;
  }
  Result<std::vector<hal::OperationSupport>> supportedOperations(
      const graph::Model& model) override {
    std::vector<hal::OperationSupport> support(model.main().operations.size());
    for (hal::OperationSupport& one : support) {
      one.supported = behaviour_->takesOperations;
      if (!one.supported) one.reason = "The moon is full.";
    }
    return support;
  }
  Result<std::shared_ptr<hal::PreparedModel>> prepareModel(std::shared_ptr<const graph::Model>,
                                                           const hal::PrepareOptions& options,
                                                           hal::Cache) override {
    if (behaviour_->lacksMemory) return fail(ErrorCode::kOutOfMemory, "There is no memory.");
    if (behaviour_->failsToPrepare) return fail(ErrorCode::kOpFailed, "The device is on strike.");
    behaviour_->activationLimit = options.maxActivationBytes;
    behaviour_->threads = options.threads;
    return std::make_shared<TestPrepared>(behaviour_);
  }

 private:
  Behaviour* const behaviour_;
  const hal::DeviceType type_;
};

class RuntimeTest : public testing::Test {
 protected:
  // Inputs x (dimension given) and state; outputs y and new state.
  static std::shared_ptr<graph::Model> model(uint32_t dimension) {
    auto made = std::make_shared<graph::Model>();
    made->subgraphs.resize(1);
    graph::Subgraph& main = made->main();
    const auto add = [&main](const char* name, graph::Lifetime lifetime, uint32_t size) {
      graph::Operand operand;
      operand.type = graph::OperandType::kTensorInt32;
      operand.dimensions = {size};
      operand.lifetime = lifetime;
      operand.name = name;
      main.operands.push_back(operand);
    };
    add("x", graph::Lifetime::kSubgraphInput, dimension);
    add("state", graph::Lifetime::kSubgraphInput, 1);
    add("y", graph::Lifetime::kSubgraphOutput, dimension);
    add("next", graph::Lifetime::kSubgraphOutput, 1);
    main.operations.push_back({graph::OperationType::kAdd, {0, 1}, {2}, "sum"});
    main.operations.push_back({graph::OperationType::kAdd, {1, 1}, {3}, "count"});
    main.inputs = {0, 1};
    main.outputs = {2, 3};
    return made;
  }

  Result<std::shared_ptr<const Compilation>> compile(uint32_t dimension = 2,
                                                     CompilationOptions options = {}) {
    return Compilation::create(model(dimension), {{1, 1, {10, 0, 0, 0}}}, options, devices_);
  }
  std::shared_ptr<Execution> execution(uint32_t dimension = 2) {
    auto compilation = compile(dimension);
    EXPECT_TRUE(compilation) << compilation.error().toString();
    auto made = Execution::create(*compilation);
    EXPECT_TRUE(made);
    return *made;
  }
  // An execution with input x and output y.
  std::shared_ptr<Execution> executionOf(std::array<int32_t, 2>& x, std::array<int32_t, 2>& y) {
    auto made = execution();
    EXPECT_TRUE(made->setInput(0, argument(x)));
    EXPECT_TRUE(made->setOutput(0, argument(y)));
    return made;
  }
  template <size_t n>
  static hal::Argument argument(std::array<int32_t, n>& values, graph::Dimensions dimensions = {}) {
    hal::Argument made;
    made.kind = hal::Argument::Kind::kPointer;
    made.pointer = values.data();
    made.length = sizeof(values);
    made.dimensions = std::move(dimensions);
    return made;
  }

  Behaviour first_;
  Behaviour second_;
  DeviceManager devices_{{std::make_shared<TestDevice>("first", &first_),
                          std::make_shared<TestDevice>("second", &second_)}};
};

TEST_F(RuntimeTest, TakesTheFirstDeviceThatTakesEverything) {
  EXPECT_EQ((*compile())->deviceNames(), "first");
  first_.takesOperations = false;
  EXPECT_EQ((*compile())->deviceNames(), "second");
  second_.takesOperations = false;
  const auto none = compile();
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code(), ErrorCode::kUnsupported);
  EXPECT_THAT(none.error().message(),
              HasSubstr("No device takes operation 0, ADD \"sum\", nor 1 other: The moon is full"));
}

TEST_F(RuntimeTest, TakesTheNamedDeviceOrNone) {
  CompilationOptions options;
  options.devices = {devices_.find("second")};
  EXPECT_EQ((*compile(2, options))->deviceNames(), "second");
  EXPECT_TRUE((*compile(2, options))->hasSingleExplicitDevice());
  EXPECT_FALSE((*compile())->hasExplicitDevices());
  options.devices = {devices_.find("first")};
  first_.takesOperations = false;
  const auto none = compile(2, options);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code(), ErrorCode::kUnsupported);
}

TEST_F(RuntimeTest, TheErrorForAnUnknownDeviceNamesAllDevices) {
  const auto none = devices_.select("third");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code(), ErrorCode::kNotFound);
  EXPECT_THAT(none.error().message(), HasSubstr("first (cpu), second (cpu)"));
}

TEST_F(RuntimeTest, TakesAnyDeviceOfTheNamedType) {
  CompilationOptions options;
  options.devices = *devices_.select("cpu");
  EXPECT_EQ((*compile(2, options))->deviceNames(), "first");
  first_.takesOperations = false;
  EXPECT_EQ((*compile(2, options))->deviceNames(), "second");
  EXPECT_FALSE((*compile(2, options))->hasSingleExplicitDevice());
}

TEST_F(RuntimeTest, FailuresFallBackToTheReferenceUnlessADeviceIsNamed) {
  const DeviceManager manager({std::make_shared<TestDevice>("first", &first_),
                               std::make_shared<TestDevice>(kReferenceDeviceName, &second_)});
  // A tie would go to the reference.
  first_.execTime = 0.5f;
  std::array<int32_t, 2> x = {1, 2};
  std::array<int32_t, 2> y = {};
  for (const bool isExplicit : {false, true}) {
    CompilationOptions options;
    if (isExplicit) options.devices = {manager.devices()[0]};
    const auto compilation =
        Compilation::create(model(2), {{1, 1, {10, 0, 0, 0}}}, options, manager);
    ASSERT_TRUE(compilation) << compilation.error().toString();
    EXPECT_EQ((*compilation)->deviceNames(), "first");
    const auto run = *Execution::create(*compilation);
    ASSERT_TRUE(run->setInput(0, argument(x)));
    ASSERT_TRUE(run->setOutput(0, argument(y)));
    first_.failsNext = true;
    second_.bindings = 0;
    EXPECT_EQ(run->compute({}).has_value(), !isExplicit);
    EXPECT_EQ(second_.bindings, isExplicit ? 0 : 1);
    // Only the run that succeeded advanced the state.
    ASSERT_TRUE(run->compute({}));
    EXPECT_EQ(y[0], isExplicit ? 11 : 12);
  }
  // A model that cannot be prepared goes to the reference as a whole.
  first_.failsToPrepare = true;
  const auto compilation = Compilation::create(model(2), {{1, 1, {}}}, {}, manager);
  ASSERT_TRUE(compilation) << compilation.error().toString();
  EXPECT_EQ((*compilation)->deviceNames(), kReferenceDeviceName);
  first_.lacksMemory = true;
  const auto refused = Compilation::create(model(2), {{1, 1, {}}}, {}, manager);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kOutOfMemory);
}

TEST_F(RuntimeTest, FailuresOfOtherDevicesFallBackToTheCpuAndThenToTheReference) {
  Behaviour npu;
  const DeviceManager manager(
      {std::make_shared<TestDevice>("cpu", &first_),
       std::make_shared<TestDevice>(kReferenceDeviceName, &second_),
       std::make_shared<TestDevice>("npu", &npu, hal::DeviceType::kAccelerator)});
  npu.execTime = 0.25f;
  first_.execTime = 0.5f;
  std::array<int32_t, 2> x = {1, 2};
  std::array<int32_t, 2> y = {};
  const auto compilation = Compilation::create(model(2), {{1, 1, {10, 0, 0, 0}}}, {}, manager);
  ASSERT_TRUE(compilation) << compilation.error().toString();
  EXPECT_EQ((*compilation)->deviceNames(), "npu");
  const auto run = *Execution::create(*compilation);
  ASSERT_TRUE(run->setInput(0, argument(x)));
  ASSERT_TRUE(run->setOutput(0, argument(y)));
  npu.failsNext = true;
  ASSERT_TRUE(run->compute({}));
  EXPECT_EQ(y[0], 11);
  EXPECT_EQ(first_.computations, 1);
  EXPECT_EQ(second_.computations, 0);
  npu.failsNext = true;
  first_.failsNext = true;
  ASSERT_TRUE(run->compute({}));
  EXPECT_EQ(y[0], 12);
  EXPECT_EQ(second_.computations, 1);
  npu.failsToPrepare = true;
  const auto whole = Compilation::create(model(2), {{1, 1, {}}}, {}, manager);
  ASSERT_TRUE(whole) << whole.error().toString();
  EXPECT_EQ((*whole)->deviceNames(), "cpu");
  first_.failsToPrepare = true;
  const auto last = Compilation::create(model(2), {{1, 1, {}}}, {}, manager);
  ASSERT_TRUE(last) << last.error().toString();
  EXPECT_EQ((*last)->deviceNames(), kReferenceDeviceName);
}

TEST_F(RuntimeTest, ADeviceThatIsDeadAgainAndAgainIsLeftAloneForAWhile) {
  Behaviour npu;
  const DeviceManager manager(
      {std::make_shared<TestDevice>(kReferenceDeviceName, &second_),
       std::make_shared<TestDevice>("npu", &npu, hal::DeviceType::kAccelerator)});
  npu.execTime = 0.25f;
  std::array<int32_t, 2> x = {1, 2};
  std::array<int32_t, 2> y = {};
  const auto compilation = Compilation::create(model(2), {{1, 1, {}}}, {}, manager);
  ASSERT_TRUE(compilation) << compilation.error().toString();
  const auto run = *Execution::create(*compilation);
  ASSERT_TRUE(run->setInput(0, argument(x)));
  ASSERT_TRUE(run->setOutput(0, argument(y)));
  const auto compute = [&] {
    return run->compute({}).has_value();
  };
  npu.isDead = true;
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(compute());
  EXPECT_EQ(second_.computations, 50);
  EXPECT_EQ(second_.bindings, 2);  // of states that change places from run to run
  // At least the first two are tried there, and few more in the time that this takes.
  EXPECT_GE(npu.computations, 2);
  EXPECT_LT(npu.computations, 50);
  npu.isDead = false;
  for (const int before = npu.computations; npu.computations == before;) ASSERT_TRUE(compute());
  // Once it has answered, it is used again.
  const int before = npu.computations;
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(compute());
  EXPECT_EQ(npu.computations, before + 10);
}

TEST_F(RuntimeTest, RefusesActivationsAboveTheLimitByName) {
  CompilationOptions options;
  options.prepare.maxActivationBytes = 4000;
  const auto refused = compile(1001, options);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), AllOf(HasSubstr("\"x\""), HasSubstr("4004 bytes")));
  // Each argument is within the limit, their sum is not.
  EXPECT_FALSE(compile(600, options));
  EXPECT_TRUE(compile(400, options));
  EXPECT_EQ(first_.activationLimit, 4000u);
  EXPECT_TRUE(compile(2));
  EXPECT_EQ(first_.activationLimit, defaultActivationLimit());
}

TEST_F(RuntimeTest, TheVariableSetsTheThreadsOfCompilationsThatSetNone) {
  setenv("HEARTH_THREADS", "3", 1);
  EXPECT_TRUE(compile());
  EXPECT_EQ(first_.threads, 3u);
  CompilationOptions options;
  options.prepare.threads = 2;
  EXPECT_TRUE(compile(2, options));
  EXPECT_EQ(first_.threads, 2u);
  setenv("HEARTH_THREADS", "many", 1);
  const auto refused = compile();
  unsetenv("HEARTH_THREADS");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), HasSubstr("HEARTH_THREADS is \"many\""));
  EXPECT_TRUE(compile());
  EXPECT_EQ(first_.threads, 0u);
}

TEST_F(RuntimeTest, RefusesStatesThatDoNotFit) {
  const auto create = [this](graph::StatePair state) {
    return Compilation::create(model(2), {std::move(state)}, {}, devices_).has_value();
  };
  EXPECT_TRUE(create({1, 1, {}}));
  EXPECT_FALSE(create({0, 1, {}}));
  EXPECT_FALSE(create({1, 0, {}}));
  EXPECT_FALSE(create({7, 1, {}}));
  EXPECT_FALSE(create({1, 1, {1, 2}}));
}

TEST_F(RuntimeTest, KeepsAndResetsState) {
  std::array<int32_t, 2> x = {1, 2};
  std::array<int32_t, 2> y = {};
  const auto run = executionOf(x, y);
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(run->compute({}));
    EXPECT_EQ(y[0], 11 + i);
    EXPECT_EQ(y[1], 12 + i);
  }
  EXPECT_EQ(run->statistics().runs, 5u);
  // Both sides of the state are bound once, whatever the number of runs.
  EXPECT_EQ(first_.bindings, 2);

  ASSERT_TRUE(run->resetState());
  ASSERT_TRUE(run->compute({}));
  EXPECT_EQ(y[0], 11);

  first_.failsNext = true;
  EXPECT_FALSE(run->compute({}));
  ASSERT_TRUE(run->compute({}));
  EXPECT_EQ(y[0], 12);
  EXPECT_EQ(run->statistics().runs, 7u);
}

// A request that is set as a whole has the client's arguments alone.
TEST_F(RuntimeTest, AWholeRequestIsCompletedWithTheStates) {
  std::array<int32_t, 2> x = {1, 2};
  std::array<int32_t, 2> y = {};
  const auto run = execution();
  const auto claim = run->claim();
  ASSERT_TRUE(claim) << claim.error().toString();
  run->setRequest(*claim, {{argument(x)}, {argument(y)}});
  for (int i = 0; i < 3; ++i) {
    const hal::ExecutionResult result = run->run(*claim, {});
    ASSERT_TRUE(result.status) << result.status.error().toString();
    EXPECT_EQ(y[0], 11 + i);
    EXPECT_EQ(y[1], 12 + i);
  }
}

TEST_F(RuntimeTest, ExecutionsHaveStatesOfTheirOwn) {
  const auto compilation = compile();
  std::array<int32_t, 2> x = {};
  std::array<int32_t, 2> y = {};
  for (int i = 0; i < 2; ++i) {
    const auto run = *Execution::create(*compilation);
    ASSERT_TRUE(run->setInput(0, argument(x)));
    ASSERT_TRUE(run->setOutput(0, argument(y)));
    ASSERT_TRUE(run->compute({}));
    EXPECT_EQ(y[0], 10);
  }
}

TEST_F(RuntimeTest, ChecksArguments) {
  const auto run = execution();
  std::array<int32_t, 2> two = {};
  std::array<int32_t, 1> one = {};
  EXPECT_FALSE(run->compute({}));
  EXPECT_FALSE(run->setInput(1, argument(two)));  // the state is not the client's
  EXPECT_FALSE(run->setOutput(1, argument(two)));
  const Status wrong = run->setInput(0, argument(one));
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message(), AllOf(HasSubstr("4 bytes"), HasSubstr("takes 8")));
  EXPECT_FALSE(run->setOutput(0, argument(one)));
  EXPECT_FALSE(run->setInput(0, argument(two, {1, 2})));
  EXPECT_FALSE(run->setInput(0, argument(two, {1})));
  EXPECT_FALSE(run->setInput(0, argument(one, {1})));
  hal::Argument null = argument(two);
  null.pointer = nullptr;
  EXPECT_FALSE(run->setInput(0, null));
  ASSERT_TRUE(run->setInput(0, argument(two, {2})));
  const Status missing = run->compute({});
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message(), HasSubstr("Output 0 is not set"));
}

TEST_F(RuntimeTest, UnknownShapesBecomeKnownInARun) {
  const auto run = execution(0);
  std::array<int32_t, 3> x = {1, 2, 3};
  std::array<int32_t, 1> small = {};
  std::array<int32_t, 8> large = {};
  EXPECT_FALSE(run->setInput(0, argument(x)));
  ASSERT_TRUE(run->setInput(0, argument(x, {3})));
  ASSERT_TRUE(run->setOutput(0, argument(small)));
  EXPECT_FALSE(run->outputShape(0));
  const Status status = run->compute({});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), ErrorCode::kOutputInsufficientSize);
  EXPECT_EQ(*run->outputShape(0), graph::Dimensions{3});
  ASSERT_TRUE(run->setOutput(0, argument(large)));
  ASSERT_TRUE(run->compute({}));
  // The failed run left the state alone.
  EXPECT_EQ(large[2], 13);
}

TEST_F(RuntimeTest, RunsInTheBackground) {
  std::array<int32_t, 2> x = {1, 2};
  std::array<int32_t, 2> y = {};
  const auto run = executionOf(x, y);
  first_.isGateOpen = false;
  Scheduler scheduler(2);
  const auto event = run->start({}, scheduler);
  ASSERT_TRUE(event);
  EXPECT_FALSE((*event)->wait(base::Deadline::after(1000)));
  const auto refused = [](const Status& status) {
    return !status && status.error().code() == ErrorCode::kBadState;
  };
  EXPECT_TRUE(refused(run->compute({})));
  EXPECT_TRUE(refused(run->setInput(0, argument(x))));
  EXPECT_TRUE(refused(run->resetState()));
  EXPECT_FALSE(run->start({}, scheduler));
  EXPECT_FALSE((*event)->isDone());
  first_.open();
  const std::optional<Status> done = (*event)->wait({});
  ASSERT_TRUE(done.has_value());
  EXPECT_TRUE(*done);
  EXPECT_EQ(y[1], 12);
  run->waitUntilIdle();
  EXPECT_TRUE(run->compute({}));
}

TEST_F(RuntimeTest, EventsCarryTheFailure) {
  std::array<int32_t, 2> x = {};
  std::array<int32_t, 2> y = {};
  const auto run = executionOf(x, y);
  first_.failsNext = true;
  Scheduler scheduler(1);
  const auto event = run->start({}, scheduler);
  ASSERT_TRUE(event);
  const std::optional<Status> done = (*event)->wait({});
  ASSERT_TRUE(done.has_value());
  ASSERT_FALSE(*done);
  EXPECT_EQ(done->error().message(), "The device fails as told.");
}

}  // namespace
}  // namespace hearth::runtime
