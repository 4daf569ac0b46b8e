// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "cache/identity/content_memory.h"
#include "memory/pool.h"

namespace hearth::cache {

// The range of the pool's file, with the file's present identity. The pool has a descriptor. `gaps`
// do not count.
ContentSource sourceOf(const memory::Pool& pool, std::vector<ContentGap> gaps = {});

}  // namespace hearth::cache
