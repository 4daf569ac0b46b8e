// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "frontends/tflite/container/part.h"
#include "frontends/tflite/model_metadata.h"

namespace hearth::tflite {

class FileView;

// Reads the content of the buffer TFLITE_METADATA, whatever it is. What is damaged is left out and
// said in `problem`. Time and memory are proportional to the bytes.
ModelMetadata parseMetadata(std::span<const uint8_t> bytes);

// Why a deflated file behind a model cannot be unpacked, in a sentence; empty if it can.
std::string packedFileProblem(const Deflated& deflated);

// Reads what the file says about itself. Never fails: what is damaged is left out and said in
// `problem`. Time and memory are proportional to the metadata, and to the archive's directory.
ModelMetadata readMetadata(const FileView& file);

}  // namespace hearth::tflite
