// SPDX-License-Identifier: Apache-2.0
#include "base/process_memory.h"

#include <fstream>
#include <sstream>
#include <string>

namespace hearth::base {
namespace {

// The number behind `key` in a file of "Key:   number kB" lines.
uint64_t readKib(const char* path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    uint64_t kib = 0;
    std::istringstream(line.substr(key.size())) >> kib;
    return kib;
  }
  return 0;
}

}  // namespace

ProcessMemory readProcessMemory() {
  return {readPeakRssKib(), readAnonymousRssKib(), readKib("/proc/self/smaps_rollup", "Pss:")};
}

uint64_t readPeakRssKib() {
  return readKib("/proc/self/status", "VmHWM:");
}

uint64_t readAnonymousRssKib() {
  return readKib("/proc/self/status", "RssAnon:");
}

}  // namespace hearth::base
