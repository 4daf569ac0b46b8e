// SPDX-License-Identifier: Apache-2.0
// The file of a blob cache. Its bytes are those of this machine and are not carried to others:
//
//   head      64 bytes: magic, version, number and size of the entries, SHA-256 of all else
//   entries   sizes of key and value, time of the last use, key, value; in the order of the keys
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cache/blob/blob_table.h"
#include "cache/object/object_file.h"
#include "cache/object/store_failure.h"
#include "cache/object/store_folder.h"

namespace hearth::cache {

std::vector<uint8_t> makeBlobCacheFile(const BlobMap& blobs);
// kCorrupt for bytes that makeBlobCacheFile did not make.
StoreResult<BlobMap> parseBlobCacheFile(std::span<const uint8_t> file);

// No cache of these limits writes a larger file.
uint64_t maxBlobCacheFile(const BlobLimits& limits);

// Reads the file whole, which takes no lock, since it is replaced and never changed. kAbsent;
// kForeign for what is no file of the user or root; kCorrupt, also for a file that is larger than
// maxBlobCacheFile(); kIoError.
StoreResult<BlobMap> readBlobCacheFile(int folder, const std::string& name,
                                       const BlobLimits& limits);

// Writes a new file, syncs it and puts it over whatever stands there. Killed anywhere, the old file
// or the new one is there. kReadOnly, kNoSpace, kGone, kIoError; the old file then stays.
StoreResult<FileGeneration> writeBlobCacheFile(const StoreFolder& folder, const std::string& name,
                                               std::span<const uint8_t> file);

}  // namespace hearth::cache
