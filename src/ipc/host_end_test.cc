// SPDX-License-Identifier: Apache-2.0
// What is left of a device when its host has ended.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "hal/cts/device_fixture.h"
#include "hal/cts/model_builder.h"
#include "ipc/host.h"
#include "ipc/hosted_device.h"
#include "ipc/testing/fake_device.h"
#include "ipc/testing/listening_host.h"

namespace hearth::ipc {
namespace {

// Computes sums until its host is gone. Executions that compute again have threads of the host.
void computeUntilTheEnd(const HostOpener& opener, std::atomic<int>& computed) {
  const auto device = HostedDevice::create("fake", opener);
  ASSERT_TRUE(device) << device.error().toString();
  const auto prepared = (*device)->prepareModel(
      std::make_shared<const graph::Model>(hal::cts::addModel({2})), {}, {});
  ASSERT_TRUE(prepared) << prepared.error().toString();
  std::vector<float> numbers(2);
  std::vector<float> sums(2);
  const auto execution = (*prepared)->createExecution(
      {{hal::cts::argumentFor(numbers), hal::cts::argumentFor(numbers)},
       {hal::cts::argumentFor(sums)}});
  ASSERT_TRUE(execution) << execution.error().toString();
  while ((*execution)->compute({}).status) ++computed;
}

// A device that outlives its host by a moment frees what it has while the process exits, and the
// libraries that it uses, as those of Vulkan, are gone then.
TEST(HostEnd, NoThreadHasTheDeviceAfterwards) {
  for (int i = 0; i < 50; ++i) {
    const auto fake = std::make_shared<FakeDevice>();
    std::array<std::atomic<int>, 3> computed{};
    std::vector<std::thread> clients;
    {
      const ListeningHost host(fake, {});
      for (std::atomic<int>& own : computed)
        clients.emplace_back([&, opener = host.opener()] { computeUntilTheEnd(opener, own); });
      for (const std::atomic<int>& own : computed)
        while (own < 10) std::this_thread::yield();
    }
    EXPECT_EQ(fake.use_count(), 1) << "host " << i;
    for (std::thread& client : clients) client.join();
  }
}

}  // namespace
}  // namespace hearth::ipc
