// SPDX-License-Identifier: Apache-2.0
// The files of a folder as one piece of bytes, and back.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace hearth::drivers::delegate {

// A file of packed bytes, into which the views point.
struct KeptFile {
  std::string_view name;  // relative to the folder: "model.bin", "subgraphs/0.bin"
  std::span<const uint8_t> bytes;
};

inline constexpr size_t kMostKeptFiles = 1024;

// The files in the folder and in those inside it, sorted by name, so that equal folders give equal
// bytes; none of them: no bytes. Empty folders do not count. kUnsupported for what is neither a
// file nor a folder, for more than kMostKeptFiles, or for more bytes than `most`; kIo.
Result<std::vector<uint8_t>> packFiles(const std::string& folder, uint64_t most);

// The files of packed bytes. kBadData for bytes that packFiles() does not write: among others, each
// name stays inside the folder, and they are sorted.
Result<std::vector<KeptFile>> readKeptFiles(std::span<const uint8_t> packed);

// Writes the files into an empty folder. Errors: those of readKeptFiles(); kIo.
Status unpackFiles(std::span<const uint8_t> packed, const std::string& folder);

}  // namespace hearth::drivers::delegate
