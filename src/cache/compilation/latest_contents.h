// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "cache/compilation/known_content.h"
#include "cache/object/object_file.h"

namespace hearth::cache {

// A copy of the latest entry of each token, for starts that cannot afford a query of the database:
// one record at a place that the owner determines, in a file beside the database. Each record names
// the state of the database that it was copied from, and is void in any other state. A record may
// be lost or never be written: the database still has the entry.
//
// Nobody but the user may write to `folder`. Thread-safe.
std::optional<KnownContent> findLatestContent(int folder, const FileGeneration& database,
                                              const CacheOwner& owner);
void keepLatestContent(int folder, const FileGeneration& database, const KnownContent& known);

}  // namespace hearth::cache
