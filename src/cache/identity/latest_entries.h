// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "base/sha256.h"

namespace hearth::cache {

// An entry of the identity table.
struct IdentityEntry {
  base::Sha256Digest digest{};
  int64_t when = 0;  // nanoseconds since 1970
};

// The checksum that an entry of that key must have; an entry whose bytes changed on the disk has
// another and does not count.
base::Sha256Digest checksumOf(const base::Sha256Digest& key, const IdentityEntry& entry);

// Copies of the identity table's latest entries, for starts that cannot afford a query of the
// database: one record at a place that the key determines, in a file beside the database. A record
// is as true as its entry, since the key covers all that the entry depends on. A record may be lost
// or never be written: the database still has the entry.
//
// Nobody but the user may write to `folder`. Thread-safe.
std::optional<IdentityEntry> findLatestEntry(int folder, const base::Sha256Digest& key);
void keepLatestEntry(int folder, const base::Sha256Digest& key, const IdentityEntry& entry);
// Forgets all of them.
void forgetLatestEntries(int folder);

}  // namespace hearth::cache
