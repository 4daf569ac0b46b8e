// SPDX-License-Identifier: Apache-2.0
// Makes the value of an input tensor from a file on the command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "hearth/hearth.hpp"
#include "tools/media/array.h"
#include "tools/media/picture.h"
#include "tools/media/picture_tensor.h"
#include "tools/media/wav.h"

namespace hearth::tools {

struct InputValue {
  Array array;
  std::optional<Picture> picture;  // the file's own pixels if it is a picture
};

// Reads a file by its extension: .npy (type and shape must be the tensor's); .png, .jpg, .jpeg and
// .bmp; .wav (into [N] or [1,N] of float32 as sample / 32768, or of int16; cut or filled with
// silence at its end, of `sampleRate` samples per second); anything else as raw bytes of exactly
// the tensor's size. Errors name the file.
Result<InputValue> readInputFile(const std::string& path, const TensorInfo& tensor,
                                 const std::optional<Normalization>& normalization,
                                 uint32_t sampleRate = kSpeechRate);

// The value of `--random-input`: floats uniform in [-1, 1), quantised tensors uniform over their
// type's range, other integers and booleans 0 or 1. The generator is splitmix64 from
// `seed` + 2^32 * `index`, one draw for each element, so that values are the same everywhere.
// kBadData when a dimension is not known; kUnsupported for int4 and strings.
Result<Array> randomInput(const TensorInfo& tensor, uint64_t seed, size_t index);

}  // namespace hearth::tools
