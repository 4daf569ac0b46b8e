// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "cache/compilation/known_content.h"
#include "cache/object/object_file.h"

namespace hearth::cache {

// A copy of the map's latest entry of a token, for starts to which a question to the database is
// long: one record at a place that the owner gives, in a file beside the database. Each record
// names the state of the database that it was taken from, and is none in any other. It may be lost,
// or not be written, at any time: the database has the entry then.
//
// `folder` is one that only the user may write.
std::optional<KnownContent> findLatestContent(int folder, const FileGeneration& database,
                                              const CacheOwner& owner);
void keepLatestContent(int folder, const FileGeneration& database, const KnownContent& known);

}  // namespace hearth::cache
