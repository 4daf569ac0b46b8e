// SPDX-License-Identifier: Apache-2.0
// Fenced executions on a device in a host.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hal/cts/device_fixture.h"
#include "hal/cts/fenced_sums.h"
#include "ipc/hosted_device.h"
#include "ipc/session.h"
#include "ipc/testing/comes_true.h"
#include "ipc/testing/fake_device.h"
#include "ipc/testing/local_host.h"
#include "ipc/testing/session_calls.h"

namespace hearth::ipc {
namespace {

using hal::cts::argumentFor;
using hal::cts::isReadable;
using hal::cts::only;
using testing::ElementsAre;
using testing::HasSubstr;

// Every test with a host for one client and with one for clients that do not trust each other.
class FencedExecutionTest : public testing::TestWithParam<bool>, protected hal::cts::FencedSums {
 protected:
  void SetUp() override {
    auto device = HostedDevice::create("fake", host_.opener());
    ASSERT_TRUE(device) << device.error().toString();
    ASSERT_NO_FATAL_FAILURE(prepareSums(**device));
    ASSERT_TRUE(prepared_->hasFences());
  }
  void TearDown() override { forgetSums(); }

  const std::shared_ptr<FakeDevice> fake_ = std::make_shared<FakeDevice>();
  LocalHost host_{fake_, {.isShared = GetParam()}};
  const base::Descriptor gate_{::eventfd(0, EFD_CLOEXEC)};
};
INSTANTIATE_TEST_SUITE_P(Hosts, FencedExecutionTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "Shared" : "ForOne"; });

TEST_P(FencedExecutionTest, TheHostWaitsForFencesOfTheClientAndOfItsOwn) {
  const auto first = sum(0, 1, 2);
  const auto second = sum(2, 2, 0);
  for (int round = 0; round < 2; ++round) {
    const auto firstFence =
        round == 0 ? first->startFenced(only(gate_), {}) : first->startFenced({}, {});
    ASSERT_TRUE(firstFence) << firstFence.error().toString();
    const auto secondFence = second->startFenced(only(*firstFence), {});
    ASSERT_TRUE(secondFence) << secondFence.error().toString();
    if (round == 0) {
      EXPECT_FALSE(isReadable(*secondFence, 20));
      ASSERT_EQ(::eventfd_write(gate_.get(), 1), 0);
    }
    const hal::ExecutionResult result = second->finishFenced();
    ASSERT_TRUE(result.status) << result.status.error().toString();
    EXPECT_EQ(result.timing.inDriver, 2000u);
    EXPECT_EQ(result.copiedBytes, 0u);
    EXPECT_TRUE(isReadable(*secondFence));
    EXPECT_TRUE(first->finishFenced().status);
  }
  EXPECT_THAT(valuesOf(2), ElementsAre(5, 10));
  EXPECT_THAT(valuesOf(0), ElementsAre(10, 20));
  // The usual form is as it was.
  EXPECT_TRUE(first->compute({}).status);
  EXPECT_THAT(valuesOf(2), ElementsAre(11, 22));
}

TEST_P(FencedExecutionTest, ArgumentsThatAreCopiedAreNotForFences) {
  std::vector<float> a = {1, 2};
  std::vector<float> out(2);
  auto behindPointers =
      prepared_->createExecution({{argumentFor(a), argumentFor(a)}, {argumentFor(out)}});
  ASSERT_TRUE(behindPointers) << behindPointers.error().toString();
  const auto none = (*behindPointers)->startFenced({}, {});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code(), ErrorCode::kUnsupported);
  EXPECT_TRUE((*behindPointers)->compute({}).status);
  EXPECT_THAT(out, ElementsAre(2, 4));

  // A host for all clients copies what lies in pools.
  const memory::PoolRef pool = poolOf({0, 0});
  auto inPool = prepared_->createExecution(
      {{bufferArgument(0), bufferArgument(1)}, {hal::cts::poolArgument(pool, 0, kBytes)}});
  ASSERT_TRUE(inPool) << inPool.error().toString();
  const auto fence = (*inPool)->startFenced({}, {});
  EXPECT_EQ(fence.has_value(), !GetParam());
  if (!fence) {
    EXPECT_EQ(fence.error().code(), ErrorCode::kUnsupported);
    return;
  }
  EXPECT_TRUE((*inPool)->finishFenced().status);
  EXPECT_EQ(reinterpret_cast<const float*>(pool->data())[1], 4.0f);
}

TEST_P(FencedExecutionTest, FailuresOfTheDeviceAndDeadlinesComeBack) {
  const auto execution = sum(0, 1, 2);
  auto fence = execution->startFenced(only(gate_), base::Deadline::after(1'000'000));
  ASSERT_TRUE(fence) << fence.error().toString();
  hal::ExecutionResult result = execution->finishFenced();
  ASSERT_FALSE(result.status);
  EXPECT_EQ(result.status.error().code(), ErrorCode::kMissedDeadlineTransient);

  hal::ExecutionResult failed;
  failed.status = fail(ErrorCode::kOpFailed, "It fails as told.");
  fake_->answerWith(failed);
  ASSERT_TRUE(execution->startFenced({}, {}));
  result = execution->finishFenced();
  ASSERT_FALSE(result.status);
  EXPECT_THAT(result.status.error().toString(), HasSubstr("as told"));

  result = execution->finishFenced();
  ASSERT_FALSE(result.status);
  EXPECT_EQ(result.status.error().code(), ErrorCode::kBadState);
}

TEST_P(FencedExecutionTest, AHostThatEndsFailsWhatItHad) {
  const auto execution = sum(0, 1, 2);
  const auto fence = execution->startFenced(only(gate_), {});
  ASSERT_TRUE(fence) << fence.error().toString();
  EXPECT_FALSE(isReadable(*fence));
  host_.kill();
  EXPECT_TRUE(isReadable(*fence, 60'000));
  const hal::ExecutionResult result = execution->finishFenced();
  ASSERT_FALSE(result.status);
  EXPECT_EQ(result.status.error().code(), ErrorCode::kDeadObject);
}

TEST_P(FencedExecutionTest, AClientMayLeaveWhatNeverBegins) {
  auto execution = sum(0, 1, 2);
  const auto fence = execution->startFenced(only(gate_), {});
  ASSERT_TRUE(fence) << fence.error().toString();
  execution.reset();
  EXPECT_TRUE(comesTrue([&] { return fake_->executions == 0; }));
  EXPECT_TRUE(isReadable(*fence, 60'000));
}

// What a client of another make may send.
TEST_P(FencedExecutionTest, TheHostKeepsOrder) {
  auto socket = host_.open();
  ASSERT_TRUE(socket) << socket.error().toString();
  auto opened = Session::open({std::move(*socket)});
  ASSERT_TRUE(opened) << opened.error().toString();
  Session& session = **opened;
  const uint64_t model = prepare(session);
  Outgoing allocation;
  auto roles = allocation.request.initAllocate();
  writeDimensions({2}, roles);
  auto list = roles.initRoles(3);
  for (uint32_t i = 0; i < 3; ++i) {
    list[i].setModel(model);
    list[i].setIsInput(i < 2);
    list[i].setIndex(i % 2);
    list[i].setFrequency(1);
  }
  const uint64_t buffer = objectOf(session.call(allocation));
  Outgoing creation;
  auto arguments = creation.request.initCreateExecution();
  arguments.setModel(model);
  const auto fill = [&](auto to) {
    for (auto argument : to) {
      argument.setKind(schema::Argument::Kind::BUFFER);
      argument.setBuffer(buffer);
    }
  };
  fill(arguments.initInputs(2));
  fill(arguments.initOutputs(1));
  const uint64_t execution = objectOf(session.call(creation));

  const auto finish = [&] {
    Outgoing outgoing;
    outgoing.request.setFinishFenced(execution);
    const auto reply = session.call(outgoing);
    EXPECT_TRUE(reply) << reply.error().toString();
    return readReply(*reply, schema::Reply::RESULT, [](auto from) -> Result<hal::ExecutionResult> {
      return readResult(from.getResult());
    });
  };
  // Starts it with the gate, or with a descriptor that it does not pass; the error if it is
  // refused.
  const auto start = [&](uint32_t fences, bool isPassed) -> std::optional<ErrorCode> {
    Outgoing outgoing;
    auto computation = outgoing.request.initStartFenced();
    computation.setExecution(execution);
    computation.setDeadline(encodeDeadline({}));
    auto named = computation.initFences(fences);
    for (uint32_t i = 0; i < fences; ++i)
      named.set(i, isPassed ? outgoing.attachments.add(gate_.get()) : 7);
    const auto reply = session.call(outgoing);
    if (!reply) return reply.error().code();
    const auto fence = readReply(*reply, schema::Reply::FENCE, [](auto) { return Status(); });
    return fence ? std::nullopt : std::optional(fence.error().code());
  };
  // Nothing has been started, or it has not ended: nobody waits for that in the host.
  auto result = finish();
  ASSERT_TRUE(result);
  EXPECT_EQ(result->status.error().code(), ErrorCode::kBadState);
  EXPECT_EQ(start(0, true), std::nullopt);
  EXPECT_TRUE(comesTrue([&] { return finish()->status.has_value(); }));
  EXPECT_EQ(start(1, true), std::nullopt);
  result = finish();
  ASSERT_TRUE(result);
  EXPECT_EQ(result->status.error().code(), ErrorCode::kBadState);
  EXPECT_EQ(start(1, true), ErrorCode::kBadState);
  Outgoing computation;
  computation.request.initCompute().setExecution(execution);
  const auto computed = session.call(computation);
  ASSERT_TRUE(computed);
  result = readReply(
      *computed, schema::Reply::RESULT,
      [](auto from) -> Result<hal::ExecutionResult> { return readResult(from.getResult()); });
  ASSERT_TRUE(result);
  EXPECT_EQ(result->status.error().code(), ErrorCode::kBadState);
  ASSERT_EQ(::eventfd_write(gate_.get(), 1), 0);
  EXPECT_TRUE(comesTrue([&] { return finish()->status.has_value(); }));
  // More fences than descriptors: the connection ends.
  EXPECT_EQ(start(1, false), ErrorCode::kDeadObject);
}

}  // namespace
}  // namespace hearth::ipc
