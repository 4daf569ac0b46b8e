// SPDX-License-Identifier: Apache-2.0
// Files that people take for models of this format.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::tflite {

// What bytes that are no `.tflite` model seem to be, and what to do about it, as sentences; "" if
// nothing is recognised. Reads a few kilobytes.
std::string foreignFileText(std::span<const uint8_t> bytes);

// The same for an archive without `.tflite` models, of which these are the members' names.
std::string foreignArchiveText(const std::vector<std::string_view>& names);

// The same for a folder: a sentence in any case.
std::string foreignFolderText(const std::string& path);

}  // namespace hearth::tflite
