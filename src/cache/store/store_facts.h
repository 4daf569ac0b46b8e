// SPDX-License-Identifier: Apache-2.0
// Where a store keeps facts, and how many (SegmentStore::remember).
#pragma once

#include "cache/blob/blob_table.h"

namespace hearth::cache {

// The file in the store's folder. A start reads all of it, so it stays small.
inline constexpr char kFactsFile[] = "machine.blobs";
inline constexpr BlobLimits kFactLimits = {
    .maxKeyBytes = 256, .maxValueBytes = uint64_t{16} << 10, .maxBytes = uint64_t{128} << 10};

}  // namespace hearth::cache
