// SPDX-License-Identifier: Apache-2.0
// The file of a blob cache, in the byte order of this machine; it is never copied to another:
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

// The largest file that a cache of these limits writes, in bytes.
uint64_t maxBlobCacheFile(const BlobLimits& limits);

// Reads the whole file. That needs no lock: the file is replaced and never changed. Errors:
// kAbsent; kForeign when it is not a regular file of the user or root; kCorrupt, also when it is
// larger than maxBlobCacheFile(); kIoError.
StoreResult<BlobMap> readBlobCacheFile(int folder, const std::string& name,
                                       const BlobLimits& limits);

// Writes a new file, syncs it and renames it over what is there. A process that is killed at any
// moment leaves the old file or the new one. Errors: kReadOnly, kNoSpace, kGone, kIoError; the old
// file then stays.
StoreResult<FileGeneration> writeBlobCacheFile(const StoreFolder& folder, const std::string& name,
                                               std::span<const uint8_t> file);

}  // namespace hearth::cache
