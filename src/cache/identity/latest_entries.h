// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "base/sha256.h"

namespace hearth::cache {

// What the identity table knows under one key.
struct IdentityEntry {
  base::Sha256Digest digest{};
  int64_t when = 0;  // nanoseconds since 1970
};

// Of an entry of that key: bytes that changed on the disk make it none.
base::Sha256Digest checksumOf(const base::Sha256Digest& key, const IdentityEntry& entry);

// Copies of the identity table's latest entries, for starts to which a question to the database is
// long: one record at a place that the key gives, in a file beside the database. A record is as
// true as its entry, whose key says all it depends on. It may be lost, or not be written, at any
// time: the database has the entry then.
//
// `folder` is one that only the user may write.
std::optional<IdentityEntry> findLatestEntry(int folder, const base::Sha256Digest& key);
void keepLatestEntry(int folder, const base::Sha256Digest& key, const IdentityEntry& entry);
// All of them.
void forgetLatestEntries(int folder);

}  // namespace hearth::cache
