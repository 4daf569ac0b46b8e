// SPDX-License-Identifier: Apache-2.0
#include "runtime/device_manager.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

namespace hearth::runtime {
namespace {

// Runs in a child of its own, since devices are made once a process.
template <typename Run>
bool succeedsInChild(Run run) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);  // what waits for ever fails
    // Not _exit(): the thread ends with the process as it does in a program.
    std::exit(run() ? 0 : 1);
  }
  int status = 0;
  return child > 0 && ::waitpid(child, &status, 0) == child && WIFEXITED(status) &&
         WEXITSTATUS(status) == 0;
}

bool canUseDevices() {
  const auto device = DeviceManager::shared().find("hearth-cpu");
  if (!device) return false;
  (*device)->warmUp();
  return true;
}

TEST(DeviceManagerTest, DevicesAreThereAfterWarmingUp) {
  EXPECT_TRUE(succeedsInChild([] {
    DeviceManager::warmUp();
    DeviceManager::warmUp();
    return canUseDevices();
  }));
}

// The thread that warms up is in the middle of what happens once a process.
TEST(DeviceManagerTest, AChildDoesNotWaitForItsParentsThread) {
  for (int i = 0; i < 20; ++i)
    EXPECT_TRUE(succeedsInChild([] {
      DeviceManager::warmUp();
      return succeedsInChild(canUseDevices) && canUseDevices();
    })) << i;
}

}  // namespace
}  // namespace hearth::runtime
