// SPDX-License-Identifier: Apache-2.0
// Where and how much a store keeps of what drivers want to find again (SegmentStore::remember).
#pragma once

#include "cache/blob/blob_table.h"

namespace hearth::cache {

// In the store's folder. A start reads it whole, so it stays small.
inline constexpr char kFactsFile[] = "machine.blobs";
inline constexpr BlobLimits kFactLimits = {
    .maxKeyBytes = 256, .maxValueBytes = uint64_t{16} << 10, .maxBytes = uint64_t{128} << 10};

}  // namespace hearth::cache
