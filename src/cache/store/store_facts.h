// SPDX-License-Identifier: Apache-2.0
// Where a store keeps facts, and how many (SegmentStore::remember), and where a driver keeps
// pipelines of GPUs in its folder.
#pragma once

#include "cache/blob/blob_table.h"

namespace hearth::cache {

// The file in the store's folder. A start reads all of it, so it stays small.
inline constexpr char kFactsFile[] = "machine.blobs";
inline constexpr BlobLimits kFactLimits = {
    .maxKeyBytes = 256, .maxValueBytes = uint64_t{16} << 10, .maxBytes = uint64_t{128} << 10};

// A start on a GPU reads all of it. On an H100 the 39 pipelines of two networks take 0.7 MB.
inline constexpr char kPipelinesFile[] = "pipelines.blobs";
inline constexpr BlobLimits kPipelineLimits = {
    .maxKeyBytes = 256, .maxValueBytes = uint64_t{2} << 20, .maxBytes = uint64_t{16} << 20};

}  // namespace hearth::cache
