// SPDX-License-Identifier: Apache-2.0
// The header of a `.litertlm` file, LiteRT-LM's container of a language model.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "frontends/tflite/container/part.h"

namespace hearth::tflite {

struct LitertlmHeader {
  std::string version;                  // "1.4.0"
  std::vector<MetadataEntry> metadata;  // of the whole file
  // The sections, in the file's order. The name is the section's `model_type` without "tf_lite_",
  // else its type.
  std::vector<Part> parts;
};

bool isLitertlm(std::span<const uint8_t> bytes);

// Reads the header of a file for which isLitertlm() holds. The sections lie inside the file, apart
// from each other and from the header. Error: kBadData.
Result<LitertlmHeader> readLitertlmHeader(std::span<const uint8_t> bytes);

}  // namespace hearth::tflite
