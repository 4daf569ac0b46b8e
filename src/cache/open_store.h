// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "cache/store/segment_store.h"

namespace hearth::cache {

// Opens the store that the options name: the bundle if they name one, else the weight store. Where
// that cannot be used or is switched off, returns an anonymous store, whose writability() has the
// reason. The callers in a process share one object of a bundle or weight store while one of them
// holds it. Never null. Thread-safe.
std::shared_ptr<SegmentStore> openSegmentStore(const StoreOptions& options);

}  // namespace hearth::cache
