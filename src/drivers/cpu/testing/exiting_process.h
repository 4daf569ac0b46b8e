// SPDX-License-Identifier: Apache-2.0
// For tests: what a process still does when it exits.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>

#include "cache/testing/store_test_util.h"
#include "drivers/cpu/weights/open_stores.h"

namespace hearth::cpu {

// A store in a folder, opened as a model's options say.
inline std::shared_ptr<cache::SegmentStore> storeIn(const std::filesystem::path& folder) {
  hal::PrepareOptions options;
  options.driverOptions["store"] = (folder / "store").string();
  return openStore(options);
}

// Forks a process that runs `work` with a path and then calls exit(). Returns whether there was a
// file at this path when the process had ended.
inline bool leavesMarker(const std::filesystem::path& folder,
                         const std::function<void(const std::filesystem::path& marker)>& work) {
  const std::filesystem::path marker = folder / "marker";
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(120);
    work(marker);
    std::exit(0);
  }
  EXPECT_EQ(cache::waitForChild(child), 0);
  return std::filesystem::exists(marker);
}

}  // namespace hearth::cpu
