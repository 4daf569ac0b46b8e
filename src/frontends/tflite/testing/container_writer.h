// SPDX-License-Identifier: Apache-2.0
// Writes containers of models, for tests and for the fuzzers' first inputs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "litertlm_schema_generated.h"

namespace hearth::tflite {

struct ZipMember {
  std::string name;
  std::vector<uint8_t> bytes;  // as they are stored in the archive
  uint16_t method = 0;         // 0 = stored, 8 = deflated
  uint16_t flags = 0;
  std::optional<uint32_t> plainSize =
      {};  // of what a compressed member holds; else that of `bytes`
  uint32_t crc = 0;
};

struct ZipOptions {
  size_t alignment = 4;  // of the members' bytes; MediaPipe uses 4
  bool isZip64 = false;  // sizes and offsets in fields of 64 bits
  // Zeros before the archive's own bytes; all offsets count them.
  uint64_t offset = 0;
};

// Returns the archive without the zeros of `options.offset`.
std::vector<uint8_t> zipOf(const std::vector<ZipMember>& members, const ZipOptions& options = {});

struct LitertlmSection {
  litertlm::SectionType type = litertlm::SectionType::NONE;
  std::vector<std::pair<std::string, std::string>> metadata;
  std::vector<uint8_t> bytes;
};

// Each section begins at a multiple of `block`.
std::vector<uint8_t> litertlmOf(const std::vector<LitertlmSection>& sections,
                                size_t block = size_t{16} << 10);
// A file that consists of this header only, whatever the header says.
std::vector<uint8_t> litertlmHeaderOf(const litertlm::HeaderT& header);
std::unique_ptr<litertlm::EntryT> textEntry(const std::string& key, const std::string& text);

struct SampleContainer {
  std::string name;  // with its extension
  std::vector<uint8_t> bytes;
};

// Small containers of all kinds; the same bytes at every call.
std::vector<SampleContainer> sampleContainers();

}  // namespace hearth::tflite
