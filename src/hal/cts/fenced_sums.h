// SPDX-License-Identifier: Apache-2.0
// What tests of fenced executions share.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "hal/cts/model_builder.h"
#include "hal/device.h"
#include "memory/pool.h"

namespace hearth::hal::cts {

inline bool isReadable(const base::Descriptor& fence, int milliseconds = 0) {
  pollfd polled{fence.get(), POLLIN, 0};
  return ::poll(&polled, 1, milliseconds) == 1 && (polled.revents & POLLIN) != 0;
}

// A list of one fence, which stays the caller's.
inline std::vector<base::Descriptor> only(const base::Descriptor& fence) {
  auto copy = fence.duplicate();
  EXPECT_TRUE(copy) << copy.error().toString();
  std::vector<base::Descriptor> fences;
  if (copy) fences.push_back(std::move(*copy));
  return fences;
}

// A model that adds two tensors of two float32, and three buffers of the device for its arguments.
// A base of fixtures.
class FencedSums {
 protected:
  static constexpr uint64_t kBytes = 2 * sizeof(float);

  // Prepares the model and puts 1 and 2 into each buffer.
  void prepareSums(Device& device) {
    auto prepared =
        device.prepareModel(std::make_shared<const graph::Model>(addModel({2})), {}, {});
    ASSERT_TRUE(prepared) << prepared.error().toString();
    prepared_ = *prepared;
    for (auto& buffer : buffers_) {
      auto made = device.allocate(
          {{2}}, {{prepared_, true, 0}, {prepared_, true, 1}, {prepared_, false, 0}});
      ASSERT_TRUE(made) << made.error().toString();
      buffer = std::move(*made);
      const Status copied = buffer->copyFrom(poolOf({1, 2}), {2});
      ASSERT_TRUE(copied) << copied.error().toString();
    }
  }
  void forgetSums() {
    for (auto& buffer : buffers_) buffer.reset();
    prepared_.reset();
  }

  static memory::PoolRef poolOf(const std::vector<float>& values) {
    auto pool = memory::Pool::anonymous(kBytes);
    EXPECT_TRUE(pool);
    std::copy_n(values.data(), 2, reinterpret_cast<float*>((*pool)->mutableData()));
    return *pool;
  }
  std::vector<float> valuesOf(size_t index) const {
    const memory::PoolRef pool = poolOf({0, 0});
    const Status copied = buffers_[index]->copyTo(pool);
    EXPECT_TRUE(copied) << copied.error().toString();
    const auto* const values = reinterpret_cast<const float*>(pool->data());
    return {values[0], values[1]};
  }
  Argument bufferArgument(size_t index) const {
    Argument argument;
    argument.kind = Argument::Kind::kBuffer;
    argument.token = buffers_[index]->token();
    return argument;
  }
  // Buffer `to` becomes the sum of the buffers `a` and `b`.
  std::unique_ptr<Execution> sum(size_t a, size_t b, size_t to) {
    auto execution =
        prepared_->createExecution({{bufferArgument(a), bufferArgument(b)}, {bufferArgument(to)}});
    EXPECT_TRUE(execution) << execution.error().toString();
    return execution ? std::move(*execution) : nullptr;
  }

  std::shared_ptr<PreparedModel> prepared_;
  std::unique_ptr<Buffer> buffers_[3];
};

}  // namespace hearth::hal::cts
