// SPDX-License-Identifier: Apache-2.0
// A part of a container: a model, or what comes with it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace hearth::tflite {

enum class PartKind { kModel, kContainer, kWeights, kTokenizer, kMetadata, kOther };

// Nothing (monostate) stands for a value of a type that is not known.
using MetadataValue = std::variant<std::monostate, bool, int64_t, uint64_t, double, std::string>;

struct MetadataEntry {
  std::string key;
  MetadataValue value;
};

// Of a part that is deflated: what it holds.
struct Deflated {
  uint64_t size = 0;  // in bytes
  uint32_t crc = 0;
};

struct Part {
  std::string name;  // of a part of a part: "outer.task/inner.tflite"
  PartKind kind = PartKind::kOther;
  std::string type;     // the format's word: how it is stored, or what it is
  uint64_t offset = 0;  // from the begin of the file, in bytes
  uint64_t size = 0;    // in the file, in bytes
  // Why the bytes cannot be used in place, in a sentence; else empty.
  std::string problem;
  std::optional<Deflated> deflated;     // and nothing else, such as encrypted
  std::vector<MetadataEntry> metadata;  // in the file's order
};

}  // namespace hearth::tflite
