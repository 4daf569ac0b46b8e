// SPDX-License-Identifier: Apache-2.0
// The directory of a ZIP archive, as which MediaPipe's `.task` files hold their models.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "frontends/tflite/container/part.h"

namespace hearth::tflite {

// Whether the bytes begin like an archive, perhaps after zeros. An archive behind other bytes, such
// as the labels behind a model, is none.
bool isZip(std::span<const uint8_t> bytes);

// Whether the bytes end like an archive, whatever lies before it, such as a model.
bool endsLikeZip(std::span<const uint8_t> bytes);

// Returns the members, in the directory's order and without folders; ZIP64 is understood. Their
// bytes lie inside the archive and apart from each other. The kind is kModel for a compressed
// member that is called a model, else kOther; a compressed or encrypted member has a problem.
// Check sums are not verified, since that would read all weights. Error: kBadData.
Result<std::vector<Part>> readZipDirectory(std::span<const uint8_t> bytes);

}  // namespace hearth::tflite
