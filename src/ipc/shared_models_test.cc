// SPDX-License-Identifier: Apache-2.0
#include "ipc/shared_models.h"

#include <capnp/message.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

namespace hearth::ipc {
namespace {

class SharedModelsTest : public testing::Test {
 public:
  using Served = std::shared_ptr<const ServedModel>;

  // That of a model whose bytes are one number.
  static ModelIdentity identity(uint8_t number) {
    capnp::MallocMessageBuilder message;
    auto model = message.initRoot<schema::Model>();
    model.setBytes(kj::arrayPtr(&number, 1));
    return *ModelIdentity::ofModel(model.asReader(), {}, {});
  }
  static SharedModels::Make failing() {
    return []() -> Result<Served> {
      return fail(ErrorCode::kOutOfMemory, "There is no memory.");
    };
  }

 protected:
  Result<SharedModels::Taken> take(uint8_t number) {
    return models_.take(identity(number), {}, [&]() -> Result<Served> {
      ++made_;
      return std::make_shared<const ServedModel>();
    });
  }

  SharedModels models_;
  std::atomic<int> made_ = 0;
};

TEST_F(SharedModelsTest, OneModelIsForAllWhoWantIt) {
  const auto first = take(1);
  const auto other = take(2);
  const auto second = take(1);
  ASSERT_TRUE(first && other && second);
  EXPECT_TRUE(first->isOwn);
  EXPECT_TRUE(other->isOwn);
  EXPECT_FALSE(second->isOwn);
  EXPECT_EQ(first->model, second->model);
  EXPECT_NE(first->model, other->model);
  EXPECT_EQ(made_, 2);
  EXPECT_EQ(models_.count(), 2u);
}

TEST_F(SharedModelsTest, AModelLivesAsLongAsSomebodyHasIt) {
  auto first = take(1);
  auto second = take(1);
  ASSERT_TRUE(first && second);
  first->model.reset();
  EXPECT_EQ(models_.count(), 1u);
  EXPECT_FALSE(take(1)->isOwn);
  second->model.reset();
  EXPECT_EQ(models_.count(), 0u);
  EXPECT_TRUE(take(1)->isOwn);
  EXPECT_EQ(made_, 2);
}

TEST(KeptModelsTest, ModelsThatWereTakenLastStayForOthers) {
  SharedModels models(2);
  const auto make = [] {
    return Result<std::shared_ptr<const ServedModel>>(std::make_shared<const ServedModel>());
  };
  const auto isMade = [&](uint8_t number) {
    const auto taken = models.take(SharedModelsTest::identity(number), {}, make);
    return !taken || taken->isOwn;
  };
  EXPECT_TRUE(isMade(1));
  EXPECT_TRUE(isMade(2));
  EXPECT_FALSE(isMade(1));
  EXPECT_EQ(models.count(), 2u);
  EXPECT_TRUE(isMade(3));
  EXPECT_FALSE(isMade(1));
  EXPECT_TRUE(isMade(2));
  // A device without memory gets that of the models which nobody has.
  const auto held = models.take(SharedModelsTest::identity(1), {}, make);
  ASSERT_TRUE(held);
  int calls = 0;
  const auto taken = models.take(SharedModelsTest::identity(4), {}, [&] {
    return ++calls == 1 ? SharedModelsTest::failing()() : make();
  });
  EXPECT_TRUE(taken);
  EXPECT_EQ(calls, 2);
  EXPECT_FALSE(isMade(1));
  EXPECT_TRUE(isMade(2));
  models.forget(held->model);
  EXPECT_TRUE(isMade(1));
}

TEST_F(SharedModelsTest, AModelWhoseDeviceIsGoneIsMadeAnew) {
  const auto first = take(1);
  const auto other = take(2);
  ASSERT_TRUE(first && other);
  models_.forget(first->model);
  const auto second = take(1);
  ASSERT_TRUE(second);
  EXPECT_TRUE(second->isOwn);
  EXPECT_NE(second->model, first->model);
  EXPECT_FALSE(take(1)->isOwn);
  EXPECT_FALSE(take(2)->isOwn);
}

TEST_F(SharedModelsTest, AModelThatCannotBeMadeIsTriedAgain) {
  const auto failed = models_.take(identity(1), {}, failing());
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), ErrorCode::kOutOfMemory);
  EXPECT_THROW(static_cast<void>(models_.take(
                   identity(1), {}, []() -> Result<Served> { throw std::runtime_error("no"); })),
               std::runtime_error);
  EXPECT_TRUE(take(1)->isOwn);
}

TEST_F(SharedModelsTest, OneMakesWhatManyWantAtOnce) {
  std::vector<Served> taken(4);
  {
    std::vector<std::jthread> clients;
    for (Served& model : taken)
      clients.emplace_back([&] {
        auto made = models_.take(identity(1), {}, [&]() -> Result<Served> {
          ++made_;
          std::this_thread::sleep_for(std::chrono::milliseconds(20));
          return std::make_shared<const ServedModel>();
        });
        if (made) model = made->model;
      });
  }
  EXPECT_EQ(made_, 1);
  ASSERT_NE(taken[0], nullptr);
  for (const Served& model : taken) EXPECT_EQ(model, taken[0]);
}

// While the model is made for one, others wait no longer than they want to, or try themselves.
TEST_F(SharedModelsTest, WhoWaitsForAnotherIsNotBoundToIt) {
  std::jthread waiting;
  bool isOwn = false;
  const auto failed = models_.take(identity(1), {}, [&]() -> Result<Served> {
    const auto late = models_.take(identity(1), base::Deadline::after(1'000'000), failing());
    EXPECT_EQ(late ? ErrorCode::kIncomplete : late.error().code(),
              ErrorCode::kMissedDeadlinePersistent);
    // Another model does not wait.
    EXPECT_TRUE(take(2)->isOwn);
    waiting = std::jthread([&] {
      const auto taken = take(1);
      isOwn = taken && taken->isOwn;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return fail(ErrorCode::kOutOfMemory, "There is no memory.");
  });
  EXPECT_FALSE(failed);
  waiting.join();
  EXPECT_TRUE(isOwn);
}

TEST(ReportOfShared, CountsAsSharedWhatTheFirstClientPackedOrMapped) {
  hal::StartReport report;
  report.state = hal::StartReport::State::kCold;
  report.reason = "first start of this model";
  report.packedBytes = {{"CONV_2D", 5}, {"ADD", 7}};
  report.mappedBytes = 100;
  report.sharedBytes = 1000;
  report.hashedBytes = 9;
  report.activationBytes = 11;
  report.cacheProblem = "No file was written.";
  const hal::StartReport shared = reportOfShared(report);
  EXPECT_EQ(shared.state, hal::StartReport::State::kWarm);
  EXPECT_EQ(shared.reason, "");
  EXPECT_TRUE(shared.packedBytes.empty());
  EXPECT_EQ(shared.sharedBytes, 1112u);
  EXPECT_EQ(shared.mappedBytes + shared.hashedBytes, 0u);
  EXPECT_EQ(shared.activationBytes, 11u);
  EXPECT_EQ(shared.cacheProblem, "");
  report.state = hal::StartReport::State::kUncached;
  report.reason = "off: It is.";
  EXPECT_EQ(reportOfShared(report).state, hal::StartReport::State::kUncached);
  EXPECT_EQ(reportOfShared(report).reason, "off: It is.");
}

}  // namespace
}  // namespace hearth::ipc
