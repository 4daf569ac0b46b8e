// SPDX-License-Identifier: Apache-2.0
#include "ipc/execution_mailbox.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <thread>

#include "hal/cts/device_fixture.h"
#include "hal/cts/model_builder.h"
#include "ipc/hosted_device.h"
#include "ipc/testing/comes_true.h"
#include "ipc/testing/fake_device.h"
#include "ipc/testing/local_host.h"
#include "ipc/testing/session_calls.h"

namespace hearth::ipc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A client with one execution, which doubles the two floats at the beginning of a file.
class ExecutionMailboxTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    auto socket = host_.open();
    ASSERT_TRUE(socket) << socket.error().toString();
    auto session = Session::open(std::move(*socket));
    ASSERT_TRUE(session) << session.error().toString();
    session_ = *session;
    execution_ = makeExecution();
  }
  void TearDown() override { fake_->letGo(); }

  uint64_t makeExecution() { return objectOf(execute(*session_, prepare(*session_), file_)); }
  std::unique_ptr<ExecutionMailbox> open(uint64_t execution) {
    auto mailbox = ExecutionMailbox::open(session_, execution);
    EXPECT_TRUE(mailbox) << mailbox.error().toString();
    return mailbox ? std::move(*mailbox) : nullptr;
  }
  Result<hal::ExecutionResult> compute(ExecutionMailbox& mailbox) {
    return mailbox.compute({}, &shapes_, &isBegun_);
  }
  void expectDoubles(ExecutionMailbox& mailbox) {
    std::array<float, 2> values = {1, 2};
    ASSERT_EQ(::pwrite(file_.get(), values.data(), sizeof values, 0),
              static_cast<ssize_t>(sizeof values));
    const auto result = compute(mailbox);
    ASSERT_TRUE(result) << result.error().toString();
    ASSERT_TRUE(result->status) << result->status.error().toString();
    ASSERT_EQ(result->outputShapes.size(), 1u);
    EXPECT_THAT(result->outputShapes[0].dimensions, ElementsAre(2));
    EXPECT_EQ(result->timing.inDriver, 2000u);
    ASSERT_EQ(::pread(file_.get(), values.data(), sizeof values, 0),
              static_cast<ssize_t>(sizeof values));
    EXPECT_THAT(values, ElementsAre(2, 4));
  }

  const std::shared_ptr<FakeDevice> fake_ = std::make_shared<FakeDevice>();
  LocalHost host_{fake_, {.isShared = GetParam(), .mailboxes = 3}};
  const base::Descriptor file_ = pageOfMemory();
  std::shared_ptr<Session> session_;
  uint64_t execution_ = 0;
  hal::OutputShapes shapes_;
  bool isBegun_ = false;
};
INSTANTIATE_TEST_SUITE_P(Hosts, ExecutionMailboxTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "Shared" : "ForOne"; });

TEST_P(ExecutionMailboxTest, ComputesAgainAndAgain) {
  const auto mailbox = open(execution_);
  ASSERT_NE(mailbox, nullptr);
  // The first answer tells the shapes, with a message.
  for (int i = 0; i < 100; ++i) expectDoubles(*mailbox);
  EXPECT_TRUE(isBegun_);
}

TEST_P(ExecutionMailboxTest, ShapesThatChangeAndErrorsAreTold) {
  const auto mailbox = open(execution_);
  ASSERT_NE(mailbox, nullptr);
  expectDoubles(*mailbox);
  fake_->answerWith(
      hal::ExecutionResult{.status = {}, .outputShapes = {{{7, 3}, true}}, .timing = {}});
  for (int i = 0; i < 2; ++i) {
    const auto result = compute(*mailbox);
    ASSERT_TRUE(result && result->status);
    EXPECT_THAT(result->outputShapes[0].dimensions, ElementsAre(7, 3));
  }
  fake_->answerWith(
      hal::ExecutionResult{.status = fail(ErrorCode::kOutputInsufficientSize, "It is too small."),
                           .outputShapes = {{{9}, false}},
                           .timing = {}});
  const auto result = compute(*mailbox);
  ASSERT_TRUE(result);
  ASSERT_FALSE(result->status);
  EXPECT_EQ(result->status.error().code(), ErrorCode::kOutputInsufficientSize);
  EXPECT_THAT(result->status.error().toString(), HasSubstr("It is too small."));
  EXPECT_THAT(result->outputShapes[0].dimensions, ElementsAre(9));
  EXPECT_FALSE(result->outputShapes[0].isSufficient);
  fake_->answerWith(std::nullopt);
  expectDoubles(*mailbox);
}

TEST_P(ExecutionMailboxTest, MessagesAndMailboxesTellOfTheSameShapes) {
  const auto mailbox = open(execution_);
  ASSERT_NE(mailbox, nullptr);
  expectDoubles(*mailbox);
  fake_->answerWith(
      hal::ExecutionResult{.status = {}, .outputShapes = {{{7, 3}, true}}, .timing = {}});
  Outgoing outgoing;
  outgoing.request.initCompute().setExecution(execution_);
  outgoing.request.getCompute().setDeadline(INT64_MAX);
  ASSERT_TRUE(session_->call(outgoing));
  // As a client does that has read the reply.
  shapes_ = {{{7, 3}, true}};
  EXPECT_THAT(compute(*mailbox)->outputShapes[0].dimensions, ElementsAre(7, 3));
  fake_->answerWith(std::nullopt);
  expectDoubles(*mailbox);
}

TEST_P(ExecutionMailboxTest, TheDriverKeepsToTheDeadline) {
  const auto mailbox = open(execution_);
  ASSERT_NE(mailbox, nullptr);
  const auto result = mailbox->compute(base::Deadline::after(0), &shapes_, &isBegun_);
  ASSERT_TRUE(result) << result.error().toString();
  ASSERT_FALSE(result->status);
  // Where clients take turns, there is none after the deadline.
  EXPECT_EQ(result->status.error().code(), GetParam() ? ErrorCode::kMissedDeadlineTransient
                                                      : ErrorCode::kMissedDeadlinePersistent);
  expectDoubles(*mailbox);
}

TEST_P(ExecutionMailboxTest, AHostThatEndsIsADeadObject) {
  const auto mailbox = open(execution_);
  ASSERT_NE(mailbox, nullptr);
  expectDoubles(*mailbox);
  fake_->hold();
  std::thread killer([&] {
    fake_->waitForComputations(2);
    host_.kill();
    EXPECT_TRUE(comesTrue([&] { return fake_->prepared == 0; }));
    fake_->letGo();
  });
  const auto result = compute(*mailbox);
  killer.join();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), ErrorCode::kDeadObject);
  EXPECT_TRUE(isBegun_);
  EXPECT_FALSE(session_->isHostThere());
  // What nobody has taken was not begun.
  ASSERT_FALSE(compute(*mailbox));
  EXPECT_FALSE(isBegun_);
}

TEST_P(ExecutionMailboxTest, MailboxesOfAClientAreLimited) {
  std::vector<std::unique_ptr<ExecutionMailbox>> mailboxes;
  std::vector<uint64_t> executions;
  for (int i = 0; i < 3; ++i) {
    executions.push_back(makeExecution());
    mailboxes.push_back(open(executions.back()));
  }
  const auto last = ExecutionMailbox::open(session_, execution_);
  ASSERT_FALSE(last);
  EXPECT_EQ(last.error().code(), ErrorCode::kResourceExhaustedTransient);
  // With its execution a mailbox goes, too.
  session_->release(schema::Release::Kind::EXECUTION, executions[0]);
  EXPECT_TRUE(comesTrue([&] { return fake_->executions == 3; }));
  const auto closed = compute(*mailboxes[0]);
  ASSERT_FALSE(closed);
  EXPECT_EQ(closed.error().code(), ErrorCode::kDeadObject);
  EXPECT_TRUE(session_->isHostThere());
  const auto other = open(execution_);
  ASSERT_NE(other, nullptr);
  expectDoubles(*other);
  expectDoubles(*mailboxes[1]);
}

TEST_P(ExecutionMailboxTest, AnExecutionHasOneMailbox) {
  const auto mailbox = open(execution_);
  const auto second = ExecutionMailbox::open(session_, execution_);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), ErrorCode::kBadState);
  ASSERT_NE(mailbox, nullptr);
  expectDoubles(*mailbox);
}

TEST_P(ExecutionMailboxTest, WrongMemoriesAndNamesAreRefused) {
  const auto ask = [&](uint64_t execution, int file) {
    Outgoing outgoing;
    auto request = outgoing.request.initOpenMailbox();
    request.setExecution(execution);
    if (file >= 0) request.setDescriptor(outgoing.attachments.add(file));
    return errorOf(session_->call(outgoing)).code();
  };
  // It can be shortened.
  EXPECT_EQ(ask(execution_, file_.get()), ErrorCode::kBadData);
  EXPECT_EQ(ask(execution_, -1), ErrorCode::kBadData);
  Outgoing fetch;
  fetch.request.setFetchResult(execution_);
  EXPECT_EQ(errorOf(session_->call(fetch)).code(), ErrorCode::kBadState);
  const auto mailbox = open(execution_);
  ASSERT_NE(mailbox, nullptr);
  expectDoubles(*mailbox);
  // Names of others end the connection.
  EXPECT_EQ(ask(execution_ + 100, file_.get()), ErrorCode::kDeadObject);
  EXPECT_FALSE(session_->isHostThere());
}

TEST(HostedMailboxTest, AnExecutionThatComputesAgainHasOne) {
  const auto fake = std::make_shared<FakeDevice>();
  LocalHost host(fake, {.isShared = true});
  const auto device = HostedDevice::create("fake", host.opener());
  ASSERT_TRUE(device) << device.error().toString();
  const auto prepared = (*device)->prepareModel(
      std::make_shared<const graph::Model>(hal::cts::addModel({2})), {}, {});
  ASSERT_TRUE(prepared) << prepared.error().toString();
  std::vector<float> a = {1, 2};
  std::vector<float> out(2);
  auto execution = (*prepared)->createExecution(
      {{hal::cts::argumentFor(a), hal::cts::argumentFor(a)}, {hal::cts::argumentFor(out)}});
  ASSERT_TRUE(execution) << execution.error().toString();
  ASSERT_TRUE((*execution)->compute({}).status);
  EXPECT_EQ(fake->threadName(), "hearth-host");
  for (int i = 0; i < 3; ++i) {
    a[1] += 1;
    ASSERT_TRUE((*execution)->compute({}).status);
    EXPECT_THAT(out, ElementsAre(2, 2 * a[1]));
    EXPECT_EQ(fake->threadName(), "hearth-mailbox");
  }
  // A host that dies while nobody computes is replaced.
  for (int i = 0; i < 3; ++i) {
    host.kill();
    EXPECT_TRUE(comesTrue([&] { return fake->prepared == 0; }));
    ASSERT_TRUE((*execution)->compute({}).status);
    EXPECT_EQ(fake->threadName(), "hearth-host");
    ASSERT_TRUE((*execution)->compute({}).status);
    EXPECT_EQ(fake->threadName(), "hearth-mailbox");
  }
  EXPECT_EQ(host.starts(), 4);
}

}  // namespace
}  // namespace hearth::ipc
