// SPDX-License-Identifier: Apache-2.0
// What is measured, what is remembered, and what becomes of damaged memories.
#include "runtime/device_speeds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <new>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/deadline.h"
#include "cache/store/store_facts.h"
#include "cache/testing/store_test_util.h"
#include "drivers/cpu/cpu_device.h"
#include "hal/testing/stub_devices.h"
#include "ipc/hosted_device.h"
#include "ipc/testing/fake_device.h"
#include "ipc/testing/local_host.h"
#include "runtime/speed_measurement.h"

namespace hearth::runtime {
namespace {

constexpr char kName[] = "accelerator";

class VersionedDevice final : public hal::StubDevice {
 public:
  explicit VersionedDevice(std::string version, std::string name = kName)
      : StubDevice(std::move(name)), version_(std::move(version)) {}
  std::string version() const override { return version_; }

 private:
  const std::string version_;
};

class DeviceSpeedsTest : public testing::Test {
 protected:
  DeviceSpeedsTest() { options_.driverOptions["store"] = folder_.path() / "store"; }

  // What the fake measurement finds.
  static DeviceSpeed found(std::span<const NumberKind> kinds) {
    DeviceSpeed speed{1e-5, 2e-6, 3e-10, 4e-10, {}};
    for (const NumberKind kind : kinds)
      speed.product[static_cast<size_t>(kind)] = 1e-12 * (1 + static_cast<int>(kind));
    return speed;
  }

  // The speeds of a new process.
  DeviceSpeeds fresh(const std::string& name = kName) {
    return DeviceSpeeds({name},
                        [this](hal::Device&, std::span<const NumberKind> kinds, unsigned,
                               DeviceSpeed* speed) -> Status {
                          ++measurements_;
                          if (fails_)
                            return fail(ErrorCode::kOpFailed, "The device fails as told.");
                          const DeviceSpeed made = found(kinds);
                          for (size_t kind = 0; kind < kNumberKinds; ++kind)
                            if (speed->product[kind] == 0)
                              speed->product[kind] = made.product[kind];
                          const auto products = speed->product;
                          *speed = made;
                          speed->product = products;
                          return {};
                        });
  }
  std::filesystem::path factsFile() const {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_.path()))
      if (entry.path().filename() == cache::kFactsFile) return entry.path();
    return {};
  }

  cache::TempFolder folder_{cache::TempFolder::Place::kMemory};
  hal::PrepareOptions options_;
  std::atomic<int> measurements_ = 0;
  bool fails_ = false;
  VersionedDevice device_{"1"};
  const std::vector<NumberKind> float32_ = {NumberKind::kFloat32};
  const std::vector<NumberKind> bytes_ = {NumberKind::kQuantized};
};

TEST_F(DeviceSpeedsTest, IsMeasuredOnceForAllProcesses) {
  DeviceSpeeds first = fresh();
  EXPECT_EQ(first.known(device_, options_), std::nullopt);
  EXPECT_EQ(first.of(device_, float32_, options_), found(float32_));
  EXPECT_EQ(first.of(device_, float32_, options_), found(float32_));
  EXPECT_EQ(measurements_, 1);
  DeviceSpeeds second = fresh();
  EXPECT_EQ(second.known(device_, options_), found(float32_));
  EXPECT_EQ(second.of(device_, float32_, options_), found(float32_));
  EXPECT_EQ(measurements_, 1);
}

TEST_F(DeviceSpeedsTest, OtherKindsOfNumbersAreMeasuredWhenTheyAreAskedFor) {
  DeviceSpeeds first = fresh();
  ASSERT_TRUE(first.of(device_, float32_, options_));
  DeviceSpeeds second = fresh();
  const std::vector<NumberKind> both = {NumberKind::kFloat32, NumberKind::kQuantized};
  EXPECT_EQ(second.of(device_, bytes_, options_), found(both));
  EXPECT_EQ(measurements_, 2);
  DeviceSpeeds third = fresh();
  EXPECT_EQ(third.of(device_, both, options_), found(both));
  EXPECT_EQ(measurements_, 2);
}

TEST_F(DeviceSpeedsTest, AnotherVersionOrNumberOfThreadsIsMeasuredAnew) {
  ASSERT_TRUE(fresh().of(device_, float32_, options_));
  VersionedDevice other("2");
  ASSERT_TRUE(fresh().of(other, float32_, options_));
  EXPECT_EQ(measurements_, 2);
  options_.threads = 77;
  ASSERT_TRUE(fresh().of(device_, float32_, options_));
  EXPECT_EQ(measurements_, 3);
}

TEST_F(DeviceSpeedsTest, OtherDevicesAreNotMeasured) {
  VersionedDevice other("1", "vendor");
  DeviceSpeeds speeds = fresh();
  EXPECT_FALSE(speeds.has(other));
  EXPECT_EQ(speeds.of(other, float32_, options_), std::nullopt);
  EXPECT_EQ(measurements_, 0);
}

TEST_F(DeviceSpeedsTest, ADeadlineLeavesNoTimeToMeasure) {
  DeviceSpeeds speeds = fresh();
  hal::PrepareOptions hurried = options_;
  hurried.deadline = base::Deadline::after(1'000'000'000'000);
  EXPECT_EQ(speeds.of(device_, float32_, hurried), std::nullopt);
  EXPECT_EQ(measurements_, 0);
  ASSERT_TRUE(speeds.of(device_, float32_, options_));
  EXPECT_EQ(speeds.of(device_, float32_, hurried), found(float32_));
}

TEST_F(DeviceSpeedsTest, AFailureIsTriedAgain) {
  fails_ = true;
  DeviceSpeeds speeds = fresh();
  EXPECT_EQ(speeds.of(device_, float32_, options_), std::nullopt);
  EXPECT_EQ(speeds.known(device_, options_), std::nullopt);
  fails_ = false;
  EXPECT_EQ(speeds.of(device_, float32_, options_), found(float32_));
  EXPECT_EQ(measurements_, 2);
  DeviceSpeeds lacking(
      {kName}, [](hal::Device&, std::span<const NumberKind>, unsigned, DeviceSpeed*) -> Status {
        throw std::bad_alloc();
      });
  options_.threads = 77;
  EXPECT_EQ(lacking.of(device_, float32_, options_), std::nullopt);
  EXPECT_EQ(lacking.of(device_, float32_, options_), std::nullopt);
}

TEST_F(DeviceSpeedsTest, WithoutAStoreItIsMeasuredOnceForTheProcess) {
  options_.driverOptions["store_mode"] = "off";
  DeviceSpeeds speeds = fresh();
  EXPECT_EQ(speeds.of(device_, float32_, options_), found(float32_));
  EXPECT_EQ(speeds.of(device_, float32_, options_), found(float32_));
  EXPECT_EQ(measurements_, 1);
  ASSERT_TRUE(fresh().of(device_, float32_, options_));
  EXPECT_EQ(measurements_, 2);
}

TEST_F(DeviceSpeedsTest, ThreadsWaitForTheOneThatMeasures) {
  std::atomic<int> inside = 0;
  std::atomic<int> most = 0;
  DeviceSpeeds speeds(
      {kName},
      [&](hal::Device&, std::span<const NumberKind> kinds, unsigned, DeviceSpeed* speed) -> Status {
        most = std::max(most.load(), ++inside);
        ++measurements_;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        *speed = found(kinds);
        --inside;
        return {};
      });
  std::vector<std::jthread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back(
        [&] { EXPECT_EQ(speeds.of(device_, float32_, options_), found(float32_)); });
  threads.clear();
  EXPECT_EQ(most, 1);
  EXPECT_EQ(measurements_, 1);
}

TEST_F(DeviceSpeedsTest, IsRenewedForAllProcessesWhenThatIsAskedFor) {
  const std::vector<NumberKind> all = {NumberKind::kFloat32, NumberKind::kFloat16,
                                       NumberKind::kQuantized};
  DeviceSpeed slower = found(float32_);
  slower.execution *= 10;
  slower.product[0] *= 10;
  DeviceSpeeds busy(
      {kName},
      [&](hal::Device&, std::span<const NumberKind>, unsigned, DeviceSpeed* speed) -> Status {
        *speed = slower;
        return {};
      });
  ASSERT_EQ(busy.of(device_, float32_, options_), slower);
  DeviceSpeeds first = fresh();
  ASSERT_EQ(first.of(device_, float32_, options_), slower);
  const auto renewed = first.renew(device_, options_);
  ASSERT_TRUE(renewed) << renewed.error().toString();
  EXPECT_EQ(*renewed, found(all));
  EXPECT_EQ(first.known(device_, options_), found(all));
  EXPECT_EQ(fresh().known(device_, options_), found(all));
  VersionedDevice other("1", "vendor");
  EXPECT_EQ(first.renew(other, options_).error().code(), ErrorCode::kUnsupported);
  // What was known stays where nothing can be measured.
  fails_ = true;
  EXPECT_EQ(first.renew(device_, options_).error().code(), ErrorCode::kOpFailed);
  EXPECT_EQ(first.known(device_, options_), found(all));
  EXPECT_EQ(fresh().known(device_, options_), found(all));
}

TEST_F(DeviceSpeedsTest, TheWayToAHostIsMeasured) {
  const auto device = std::make_shared<ipc::FakeDevice>();
  ipc::LocalHost host(device, ipc::HostOptions{});
  const auto hosted = ipc::HostedDevice::create(device->name(), host.opener());
  ASSERT_TRUE(hosted) << hosted.error().toString();
  ASSERT_EQ((*hosted)->version(), device->version());
  ASSERT_TRUE(fresh(device->name()).of(*device, float32_, options_));
  EXPECT_EQ(fresh(device->name()).known(**hosted, options_), std::nullopt);
  ASSERT_TRUE(fresh(device->name()).of(**hosted, float32_, options_));
  EXPECT_EQ(measurements_, 2);
}

// A bundle is one model's.
TEST_F(DeviceSpeedsTest, NoBundleKeepsASpeed) {
  hal::PrepareOptions ofBundle = options_;
  ofBundle.driverOptions["bundle"] = folder_.path() / "model.bundle";
  ASSERT_TRUE(fresh().of(device_, float32_, ofBundle));
  EXPECT_EQ(fresh().known(device_, options_), found(float32_));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "model.bundle"));
}

// As float16 is without storage of 16 bits.
TEST_F(DeviceSpeedsTest, WhatADeviceDoesNotComputeHasNoSpeedAfterARenewal) {
  DeviceSpeeds speeds(
      {kName},
      [](hal::Device&, std::span<const NumberKind> kinds, unsigned, DeviceSpeed* speed) -> Status {
        speed->execution = 1e-5;
        if (kinds[0] == NumberKind::kFloat16)
          return fail(ErrorCode::kUnsupported, "The device has no float16.");
        speed->product[static_cast<size_t>(kinds[0])] = 1e-12;
        return {};
      });
  const auto renewed = speeds.renew(device_, options_);
  ASSERT_TRUE(renewed) << renewed.error().toString();
  EXPECT_EQ(renewed->productOf(NumberKind::kFloat16), 0);
  EXPECT_GT(renewed->productOf(NumberKind::kQuantized), 0);
  EXPECT_EQ(fresh().known(device_, options_), *renewed);
}

TEST_F(DeviceSpeedsTest, DamagedMemoriesAreMeasuredAnew) {
  ASSERT_TRUE(fresh().of(device_, float32_, options_));
  const std::filesystem::path path = factsFile();
  ASSERT_FALSE(path.empty());
  std::ifstream input(path, std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(input)), {});
  std::minstd_rand random(1);
  for (int i = 0; i < 40; ++i) {
    std::string damaged = whole;
    if (i % 4 == 0)
      damaged.resize(random() % whole.size());
    else
      damaged[random() % whole.size()] ^= static_cast<char>(1 << random() % 8);
    std::ofstream(path, std::ios::binary) << damaged;
    const int before = measurements_;
    EXPECT_EQ(fresh().of(device_, float32_, options_), found(float32_));
    EXPECT_EQ(measurements_, before + 1);
    EXPECT_EQ(fresh().of(device_, float32_, options_), found(float32_));
    EXPECT_EQ(measurements_, before + 1);
  }
}

TEST(DeviceSpeedTest, OnlySpeedsAreDecoded) {
  const DeviceSpeed speed{1e-5, 0, 3e-10, 4e-10, {1e-12, 0, 2e-12}};
  const std::vector<uint8_t> bytes = encodeSpeed(speed);
  EXPECT_EQ(decodeSpeed(bytes), speed);
  EXPECT_EQ(decodeSpeed({}), std::nullopt);
  EXPECT_EQ(decodeSpeed(std::span(bytes).first(bytes.size() - 1)), std::nullopt);
  std::vector<uint8_t> longer = bytes;
  longer.push_back(0);
  EXPECT_EQ(decodeSpeed(longer), std::nullopt);
  for (const double wrong : {-1.0, 1e9, std::numeric_limits<double>::infinity(),
                             std::numeric_limits<double>::quiet_NaN()})
    for (size_t at = 0; at < bytes.size(); at += sizeof wrong) {
      std::vector<uint8_t> changed = bytes;
      std::memcpy(changed.data() + at, &wrong, sizeof wrong);
      EXPECT_EQ(decodeSpeed(changed), std::nullopt);
    }
}

TEST(SpeedMeasurementTest, EveryFigureOfTheCpuIsFound) {
  const auto device = cpu::createCpuDevice();
  DeviceSpeed speed;
  const std::vector<NumberKind> float32 = {NumberKind::kFloat32};
  ASSERT_TRUE(measureSpeed(*device, float32, 1, &speed));
  EXPECT_GT(speed.execution, 0);
  EXPECT_GE(speed.operation, 0);
  EXPECT_GE(speed.argumentByte, 0);
  EXPECT_GE(speed.movedByte, 0);
  EXPECT_GT(speed.productOf(NumberKind::kFloat32), 0);
  EXPECT_EQ(speed.productOf(NumberKind::kQuantized), 0);
  // What is there stays.
  const DeviceSpeed before = speed;
  const std::vector<NumberKind> all = {NumberKind::kFloat32, NumberKind::kFloat16,
                                       NumberKind::kQuantized};
  ASSERT_TRUE(measureSpeed(*device, all, 1, &speed));
  EXPECT_EQ(speed.execution, before.execution);
  EXPECT_EQ(speed.movedByte, before.movedByte);
  EXPECT_EQ(speed.productOf(NumberKind::kFloat32), before.productOf(NumberKind::kFloat32));
  EXPECT_GT(speed.productOf(NumberKind::kFloat16), 0);
  EXPECT_GT(speed.productOf(NumberKind::kQuantized), 0);
}

TEST(SpeedMeasurementTest, ADeviceThatPreparesNothingHasNoSpeed) {
  VersionedDevice device("1");
  DeviceSpeed speed;
  EXPECT_FALSE(measureSpeed(device, {}, 1, &speed));
  EXPECT_EQ(speed, DeviceSpeed());
}

}  // namespace
}  // namespace hearth::runtime
