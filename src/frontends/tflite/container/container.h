// SPDX-License-Identifier: Apache-2.0
// Files that hold `.tflite` models and what comes with them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "frontends/tflite/container/part.h"

namespace hearth::tflite {

enum class ContainerFormat { kZip, kLitertlm };

struct Container {
  ContainerFormat format = ContainerFormat::kZip;
  std::string version;                  // of the format; empty for an archive
  std::vector<MetadataEntry> metadata;  // of the whole file
  // In the file's order. The parts of a container inside the container follow it. All lie inside
  // the file.
  std::vector<Part> parts;
};

// Nothing for bytes that are no container, such as a `.tflite` model with an archive behind it.
// Reads the directory and a few bytes of each part. Error: kBadData for a damaged container.
Result<std::optional<Container>> readContainer(std::span<const uint8_t> bytes);

// The model with this name; with an empty name the only model. Errors, which list the models:
// kNotFound when there is none or the name is needed, kBadData when several have the name,
// kUnsupported when its bytes cannot be used in place.
Result<Part> chooseModel(const Container& container, std::string_view name);

}  // namespace hearth::tflite
