// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

namespace hearth::conformance {

// The files of cases in a folder of test data, in alphabetical order.
inline std::vector<std::string> conformanceFiles(const std::filesystem::path& data) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(data / "conformance"))
    if (entry.path().extension() == ".nntv") files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace hearth::conformance
