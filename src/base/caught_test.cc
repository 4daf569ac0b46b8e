// SPDX-License-Identifier: Apache-2.0
#include "base/caught.h"

#include <gtest/gtest.h>

#include <atomic>
#include <new>
#include <stdexcept>
#include <string>

#include "base/helper_thread.h"
#include "base/log.h"

namespace hearth::base {
namespace {

TEST(CaughtTest, ReturnsTheResultOfTheBody) {
  EXPECT_TRUE(caught([] {}));
  EXPECT_EQ(*caught([] { return Result<int>(5); }), 5);
  const Status failed = caught([]() -> Status { return fail(ErrorCode::kBadData, "No."); });
  EXPECT_EQ(failed.error().code(), ErrorCode::kBadData);
}

TEST(CaughtTest, ConvertsAnyExceptionToAnError) {
  EXPECT_EQ(caught([] { throw std::bad_alloc(); }).error().code(), ErrorCode::kOutOfMemory);
  EXPECT_EQ(caught([] { std::string().reserve(SIZE_MAX); }).error().code(),
            ErrorCode::kOutOfMemory);
  const Status failed = caught([] { throw std::runtime_error("It rains."); });
  EXPECT_EQ(failed.error().code(), ErrorCode::kOpFailed);
  EXPECT_EQ(failed.error().message(), "It rains.");
  EXPECT_EQ(caught([] { throw 5; }).error().code(), ErrorCode::kOpFailed);
}

// An exception that leaves a thread's function would end the program.
TEST(HelperThread, EndsNormallyIfItsWorkThrows) {
  setLogLevel(LogLevel::kOff);
  std::thread thread = startHelperThread("hearth-test", [] { throw std::bad_alloc(); });
  ASSERT_TRUE(thread.joinable());
  thread.join();
  thread = startIdleThread("hearth-test", [] { throw 5; });
  ASSERT_TRUE(thread.joinable());
  thread.join();
}

TEST(HelperThreads, RethrowOneExceptionInJoin) {
  std::atomic<int> started = 0;
  {
    HelperThreads helpers("hearth-test", 3, [&] {
      ++started;
      throw std::runtime_error("It rains.");
    });
    EXPECT_THROW(helpers.join(), std::runtime_error);
    EXPECT_EQ(started, 3);
    helpers.join();  // throws only once
  }
  HelperThreads none("hearth-test", 0, [] {});
  none.join();
}

TEST(HelperThreads, AreJoinedBeforeTheirFrameIsUnwound) {
  std::atomic<int> ended = 0;
  EXPECT_THROW(
      {
        HelperThreads helpers("hearth-test", 2, [&] {
          std::this_thread::sleep_for(std::chrono::milliseconds(20));
          ++ended;
        });
        throw std::runtime_error("The maker fails.");
      },
      std::runtime_error);
  EXPECT_EQ(ended, 2);
}

}  // namespace
}  // namespace hearth::base
