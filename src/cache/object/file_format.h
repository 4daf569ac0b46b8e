// SPDX-License-Identifier: Apache-2.0
// What the formats of all files of the store have in common.
#pragma once

#include <bit>
#include <cstddef>

#include "base/sha256.h"

namespace hearth::cache {

static_assert(std::endian::native == std::endian::little, "The formats are little endian.");

inline constexpr size_t kDigestSize = sizeof(base::Sha256Digest);

}  // namespace hearth::cache
