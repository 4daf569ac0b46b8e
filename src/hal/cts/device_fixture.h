// SPDX-License-Identifier: Apache-2.0
// What the suites share: the device under test, preparation, requests.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <ostream>
#include <string>
#include <tuple>
#include <vector>

#include "hal/cts/backend.h"
#include "hal/cts/model_builder.h"
#include "hal/device.h"

namespace hearth::hal::cts {

// The device under test, and helpers that use it.
class DeviceUser {
 protected:
  // Skips or fails the test if the device cannot be created.
  void openDevice(const Backend& backend);

  Device& device() { return *device_; }

  // Prepares a valid model. Null when the test was skipped because the device does not support one
  // of the operations, or has failed.
  std::shared_ptr<PreparedModel> prepare(const graph::Model& model,
                                         const PrepareOptions& options = {});

 private:
  std::shared_ptr<Device> device_;
};

// Base of most suites: every test on each registered device.
class DeviceFixture : public testing::TestWithParam<Backend>, protected DeviceUser {
 protected:
  void SetUp() override { openDevice(GetParam()); }
};

// Base of suites in which each sample model on each registered device is a test of its own, so that
// a crash names the model.
class SampleFixture : public testing::TestWithParam<std::tuple<Backend, NamedModel>>,
                      protected DeviceUser {
 protected:
  void SetUp() override { openDevice(std::get<0>(GetParam())); }
  const NamedModel& sample() const { return std::get<1>(GetParam()); }
};

// How GoogleTest shows parameters.
inline void PrintTo(const Backend& backend, std::ostream* stream) {
  *stream << backend.name;
}
inline void PrintTo(const NamedModel& sample, std::ostream* stream) {
  *stream << sample.name;
}

Argument pointerArgument(const void* data, uint64_t length, graph::Dimensions dimensions = {});
Argument poolArgument(memory::PoolRef pool, uint64_t offset, uint64_t length,
                      graph::Dimensions dimensions = {});
// A shared pool that begins with these bytes.
memory::PoolRef poolOf(const void* data, size_t size);

template <typename T>
Argument argumentFor(std::vector<T>& values, graph::Dimensions dimensions = {}) {
  return pointerArgument(values.data(), values.size() * sizeof(T), std::move(dimensions));
}

inline bool isMissedDeadline(const Error& error) {
  return error.code() == ErrorCode::kMissedDeadlineTransient ||
         error.code() == ErrorCode::kMissedDeadlinePersistent;
}

// Binds and computes once. The status is the first failure of the two.
ExecutionResult computeOnce(PreparedModel& prepared, Request request,
                            const base::Deadline& deadline = {});

}  // namespace hearth::hal::cts

// Instantiates a suite for every registered device.
#define HEARTH_CTS_SUITE(suite)                                                           \
  GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(suite);                                   \
  INSTANTIATE_TEST_SUITE_P(Hal, suite, testing::ValuesIn(::hearth::hal::cts::backends()), \
                           [](const auto& info) { return info.param.name; })

// The same for every registered device and sample model.
#define HEARTH_CTS_SAMPLE_SUITE(suite)                                            \
  GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(suite);                           \
  INSTANTIATE_TEST_SUITE_P(                                                       \
      Hal, suite,                                                                 \
      testing::Combine(testing::ValuesIn(::hearth::hal::cts::backends()),         \
                       testing::ValuesIn(::hearth::hal::cts::sampleModels())),    \
      [](const auto& info) {                                                      \
        return std::get<0>(info.param).name + "_" + std::get<1>(info.param).name; \
      })

// Declares `prepared`, or returns from the test when the device does not support the model.
#define HEARTH_CTS_PREPARE(prepared, ...)     \
  const auto prepared = prepare(__VA_ARGS__); \
  if (prepared == nullptr) return
