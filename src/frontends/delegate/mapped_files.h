// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "base/result.h"
#include "frontends/delegate/partition_source.h"
#include "memory/pool.h"

namespace hearth::delegate {

// One line of /proc/self/maps, about a mapping of a file that cannot be written through it.
struct FileMapping {
  uintptr_t begin = 0;
  uintptr_t end = 0;
  uint64_t offset = 0;  // in the file, of `begin`
  std::string device;
  uint64_t inode = 0;
  std::string path;
};

// Reads such lines; lines of other memory, of files without a path and of removed files are left
// out.
std::vector<FileMapping> parseMappings(std::string_view text);

// Finds the files in whose mappings constants lie, so that the constants can be read from the
// files, whose contents the store remembers. Used by one thread.
class MappedFiles {
 public:
  // `asksKernel`: asks for single mappings where the kernel answers (Linux 6.11 or later), rather
  // than for the list of all.
  explicit MappedFiles(bool asksKernel = true) : asksKernel_(asksKernel) {}

  // The place in a file of bytes that the process has mapped; nothing for other memory.
  std::optional<ConstantPlace> find(const void* data, size_t size);

  // The file of find() in whose mapping an address lies; null if it is none of those.
  const memory::Pool* fileAt(const void* data) const;

  // Paths of the files found, in the order of their first use.
  const std::vector<std::string>& paths() const { return paths_; }

 private:
  struct File {
    std::string device;
    uint64_t inode = 0;
    memory::PoolRef pool;  // null: not the file that is mapped
  };

  // The mapping at an address now; one without a path is other memory. Without the kernel's answer,
  // reads all mappings into `mappings_`.
  std::optional<FileMapping> lookUp(uintptr_t address);
  const FileMapping* known(uintptr_t address) const;
  const FileMapping* mappingOf(const void* data, size_t size);
  // By value, since the list of mappings is read again.
  memory::PoolRef poolOf(FileMapping mapping);

  bool asksKernel_;
  base::Descriptor maps_;  // while the kernel is asked
  std::vector<FileMapping> mappings_;
  std::vector<File> files_;
  std::vector<std::string> paths_;
};

}  // namespace hearth::delegate
