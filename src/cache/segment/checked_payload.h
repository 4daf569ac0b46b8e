// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cache/identity/content_memory.h"
#include "cache/object/store_failure.h"
#include "cache/segment/segment_file.h"
#include "memory/mapping.h"

namespace hearth::cache {

// Maps the payload of a segment file, which begins with it, for reading. Every byte is compared
// with its digest, unless `memory` knows that this was done during this boot and the file proves
// that it has not changed since. Errors: kCorrupt, kIoError.
StoreResult<memory::Mapping> mapCheckedPayload(int fd, const SegmentInfo& info,
                                               ContentMemory* memory);

}  // namespace hearth::cache
