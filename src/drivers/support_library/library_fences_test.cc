// SPDX-License-Identifier: Apache-2.0
// Fenced executions of Hearth's own libneuralnetworks.so as support library. The kernel makes sync
// files for devices only, so eventfds are taken for some here; that library waits for any fence.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/sync_file.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cstdarg>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "drivers/support_library/library_device.h"
#include "drivers/support_library/support_library.h"
#include "hal/cts/device_fixture.h"
#include "hal/cts/model_builder.h"
#include "hal/driver_entry.h"

namespace {

bool areSyncFiles = false;

}  // namespace

// In place of the C library's.
extern "C" int ioctl(int fd, unsigned long request, ...) noexcept {
  std::va_list arguments;
  va_start(arguments, request);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  if (request == SYNC_IOC_FILE_INFO && areSyncFiles) return 0;
  return static_cast<int>(::syscall(SYS_ioctl, fd, request, argument));
}

namespace hearth::drivers::support_library {
namespace {

using hal::cts::argumentFor;
using testing::ElementsAre;

// The library's table, and what it was asked for.
NnApiSLDriverImplFL5 table;
int starts = 0;
uint32_t dependencies = 0;

int startCounted(ANeuralNetworksExecution* execution, const ANeuralNetworksEvent* const* events,
                 uint32_t count, uint64_t duration, ANeuralNetworksEvent** event) {
  ++starts;
  dependencies = count;
  return table.ANeuralNetworksExecution_startComputeWithDependencies(execution, events, count,
                                                                     duration, event);
}

class LibraryFences : public testing::Test {
 protected:
  void SetUp() override {
    areSyncFiles = false;
    starts = 0;
    void* const library = ::dlopen(HEARTH_SUPPORT_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << ::dlerror();
    const auto tableOf =
        reinterpret_cast<NnApiSLDriverImpl* (*)()>(::dlsym(library, hal::kSupportLibrarySymbol));
    ASSERT_NE(tableOf, nullptr);
    table = *reinterpret_cast<const NnApiSLDriverImplFL5*>(tableOf());
    changed_ = table;
    changed_.ANeuralNetworksExecution_startComputeWithDependencies = startCounted;
  }
  ~LibraryFences() override { areSyncFiles = false; }

  // An execution that adds a_ and b_.
  std::unique_ptr<hal::Execution> execution(std::vector<float>& out) {
    auto library = SupportLibrary::of(&changed_.base);
    EXPECT_TRUE(library) << library.error().toString();
    auto device = createDevice(*library, "npu", "nnapi-reference");
    EXPECT_TRUE(device) << device.error().toString();
    auto prepared = (*device)->prepareModel(
        std::make_shared<const graph::Model>(hal::cts::addModel({2})), {}, {});
    EXPECT_TRUE(prepared) << prepared.error().toString();
    hasFences_ = (*prepared)->hasFences();
    auto made =
        (*prepared)->createExecution({{argumentFor(a_), argumentFor(b_)}, {argumentFor(out)}});
    EXPECT_TRUE(made) << made.error().toString();
    return std::move(*made);
  }
  std::vector<base::Descriptor> gate() const {
    std::vector<base::Descriptor> fences;
    fences.push_back(*gate_.duplicate());
    return fences;
  }
  void open() const { ASSERT_EQ(::eventfd_write(gate_.get(), 1), 0); }
  static bool isReadable(const base::Descriptor& fence, int milliseconds) {
    pollfd polled{fence.get(), POLLIN, 0};
    return ::poll(&polled, 1, milliseconds) == 1;
  }
  static constexpr int kLong = 60'000;

  NnApiSLDriverImplFL5 changed_{};
  bool hasFences_ = false;
  std::vector<float> a_ = {1, 2}, b_ = {3, 4}, out_ = {0, 0};
  const base::Descriptor gate_{::eventfd(0, EFD_CLOEXEC)};
};

TEST_F(LibraryFences, TheLibraryWaitsForSyncFiles) {
  areSyncFiles = true;
  const auto adds = execution(out_);
  EXPECT_TRUE(hasFences_);
  const auto fence = adds->startFenced(gate(), {});
  ASSERT_TRUE(fence) << fence.error().toString();
  EXPECT_EQ(starts, 1);
  EXPECT_EQ(dependencies, 1u);
  EXPECT_FALSE(isReadable(*fence, 20));
  EXPECT_EQ(adds->startFenced({}, {}).error().code(), ErrorCode::kBadState);
  open();
  EXPECT_TRUE(isReadable(*fence, kLong));
  EXPECT_THAT(out_, ElementsAre(4, 6));
  const hal::ExecutionResult result = adds->finishFenced();
  ASSERT_TRUE(result.status) << result.status.error().toString();
  EXPECT_EQ(result.outputShapes[0].dimensions, graph::Dimensions({2}));
  EXPECT_EQ(adds->finishFenced().status.error().code(), ErrorCode::kBadState);
  // Again, and in the usual form.
  a_ = {10, 20};
  ASSERT_TRUE(adds->startFenced({}, {}));
  EXPECT_EQ(dependencies, 0u);
  EXPECT_TRUE(adds->finishFenced().status);
  EXPECT_THAT(out_, ElementsAre(13, 24));
  a_ = {5, 5};
  EXPECT_TRUE(adds->compute({}).status);
  EXPECT_THAT(out_, ElementsAre(8, 9));
}

TEST_F(LibraryFences, AThreadWaitsForOtherDescriptors) {
  const auto adds = execution(out_);
  const auto fence = adds->startFenced(gate(), {});
  ASSERT_TRUE(fence) << fence.error().toString();
  EXPECT_FALSE(isReadable(*fence, 20));
  EXPECT_EQ(adds->startFenced({}, {}).error().code(), ErrorCode::kBadState);
  open();
  const hal::ExecutionResult result = adds->finishFenced();
  ASSERT_TRUE(result.status) << result.status.error().toString();
  EXPECT_THAT(out_, ElementsAre(4, 6));
  EXPECT_EQ(starts, 0) << "the library got a fence that may never be signalled";
}

TEST_F(LibraryFences, ALibraryMayGiveNoSyncFile) {
  changed_.ANeuralNetworksEvent_getSyncFenceFd = [](const ANeuralNetworksEvent*, int* fence) {
    *fence = -1;
    return static_cast<int>(ANEURALNETWORKS_BAD_DATA);
  };
  areSyncFiles = true;
  const auto adds = execution(out_);
  const auto fence = adds->startFenced(gate(), {});
  ASSERT_TRUE(fence) << fence.error().toString();
  EXPECT_EQ(starts, 1);
  EXPECT_FALSE(isReadable(*fence, 20));
  open();
  EXPECT_TRUE(isReadable(*fence, kLong));
  EXPECT_THAT(out_, ElementsAre(4, 6));
  EXPECT_TRUE(adds->finishFenced().status);
}

TEST_F(LibraryFences, AnOutputInThePlaceOfAnInputIsThereWithTheFence) {
  areSyncFiles = true;
  const auto adds = execution(a_);
  const auto fence = adds->startFenced(gate(), {});
  ASSERT_TRUE(fence) << fence.error().toString();
  open();
  EXPECT_TRUE(isReadable(*fence, kLong));
  EXPECT_THAT(a_, ElementsAre(4, 6));
  EXPECT_TRUE(adds->finishFenced().status);
}

TEST_F(LibraryFences, ALibraryMayLackTheFunctions) {
  changed_.ANeuralNetworksEvent_wait = nullptr;
  const auto adds = execution(out_);
  EXPECT_FALSE(hasFences_);
  EXPECT_EQ(adds->startFenced({}, {}).error().code(), ErrorCode::kUnsupported);
  EXPECT_TRUE(adds->compute({}).status);
  EXPECT_THAT(out_, ElementsAre(4, 6));
}

TEST_F(LibraryFences, ErrorsOfAStartAreErrors) {
  changed_.ANeuralNetworksExecution_startComputeWithDependencies =
      [](ANeuralNetworksExecution*, const ANeuralNetworksEvent* const*, uint32_t, uint64_t,
         ANeuralNetworksEvent**) {
        return static_cast<int>(ANEURALNETWORKS_RESOURCE_EXHAUSTED_TRANSIENT);
      };
  const auto adds = execution(out_);
  EXPECT_EQ(adds->startFenced({}, {}).error().code(), ErrorCode::kResourceExhaustedTransient);
  EXPECT_EQ(adds->finishFenced().status.error().code(), ErrorCode::kBadState);
  EXPECT_TRUE(adds->compute({}).status);
}

TEST_F(LibraryFences, GivingUpWaitsForWhatTheLibraryHasAndForNothingElse) {
  auto adds = execution(out_);
  ASSERT_TRUE(adds->startFenced(gate(), {}));
  adds.reset();  // nobody opens the gate
  EXPECT_THAT(out_, ElementsAre(0, 0));
  areSyncFiles = true;
  adds = execution(out_);
  ASSERT_TRUE(adds->startFenced(gate(), {}));
  std::thread opens([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    open();
  });
  adds.reset();
  EXPECT_THAT(out_, ElementsAre(4, 6));
  opens.join();
}

// How a library keeps to the time limit of a computation is its own affair.
TEST_F(LibraryFences, DeadlinesHoldForTheWaitingToo) {
  const auto adds = execution(out_);
  const auto fence = adds->startFenced(gate(), base::Deadline::after(5'000'000));
  ASSERT_TRUE(fence) << fence.error().toString();
  EXPECT_TRUE(isReadable(*fence, kLong));
  const hal::ExecutionResult result = adds->finishFenced();
  ASSERT_FALSE(result.status);
  EXPECT_EQ(result.status.error().code(), ErrorCode::kMissedDeadlineTransient)
      << result.status.error().toString();
  EXPECT_EQ(adds->startFenced({}, base::Deadline::after(0)).error().code(),
            ErrorCode::kMissedDeadlineTransient);
}

}  // namespace
}  // namespace hearth::drivers::support_library
