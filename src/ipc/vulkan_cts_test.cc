// SPDX-License-Identifier: Apache-2.0
// The suite of drivers on the CPU's implementation of Vulkan behind a host, for one client and for
// clients that do not trust each other. The host is a thread of this process, so that messages of
// the validation layer end the test.
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "drivers/vulkan/testing/validated_device.h"
#include "drivers/vulkan/vulkan_device.h"
#include "hal/cts/backend.h"
#include "ipc/hosted_device.h"
#include "ipc/testing/local_host.h"

namespace hearth::ipc {
namespace {

std::vector<std::unique_ptr<LocalHost>>& hosts() {
  static auto* const all = new std::vector<std::unique_ptr<LocalHost>>;
  return *all;
}

// Ends the hosts before the process exits, when what Vulkan's libraries have is gone. The
// validation layer then sees whether anything of theirs is left.
class EndOfHosts final : public testing::Environment {
 public:
  void TearDown() override { hosts().clear(); }
};

Result<std::shared_ptr<hal::Device>> behindHost(bool isShared) {
  HEARTH_ASSIGN(std::shared_ptr<hal::Device> device, vulkan::createValidatedDevice());
  hosts().push_back(
      std::make_unique<LocalHost>(std::move(device), HostOptions{.isShared = isShared}));
  return HostedDevice::create(vulkan::kVulkanDeviceName, hosts().back()->opener());
}

bool registerHosted() {
  for (const bool isShared : {false, true})
    hal::cts::registerBackend({isShared ? "vulkan_shared" : "vulkan_hosted", [isShared] {
                                 return behindHost(isShared);
                               }});
  return true;
}

const bool isRegistered = registerHosted();
const testing::Environment* const endOfHosts = testing::AddGlobalTestEnvironment(new EndOfHosts);

}  // namespace
}  // namespace hearth::ipc
