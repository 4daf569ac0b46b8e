// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <filesystem>
#include <vector>

namespace hearth::cache {

// A file that a hostile process puts in place of one of ours.
struct PlantedFile {
  const char* name;
  // `target` is the file that was at `path` before.
  void (*plant)(const std::filesystem::path& path, const std::filesystem::path& target);
};

// The kinds that are recognised without reading their content.
inline std::vector<PlantedFile> plantedFiles() {
  namespace fs = std::filesystem;
  return {
      {"FIFO",
       [](const fs::path& path, const fs::path&) {
         ::mkfifo(path.c_str(), 0600);
       }},
      {"folder",
       [](const fs::path& path, const fs::path&) {
         fs::create_directories(path / "x");
       }},
      {"link to the file",
       [](const fs::path& path, const fs::path& target) {
         fs::create_symlink(target, path);
       }},
      {"dangling link",
       [](const fs::path& path, const fs::path&) {
         fs::create_symlink("/nowhere/x", path);
       }},
      {"file that others may write",
       [](const fs::path& path, const fs::path& target) {
         fs::copy_file(target, path);
         fs::permissions(path, fs::perms(0622));
       }},
  };
}

}  // namespace hearth::cache
