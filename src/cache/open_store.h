// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "cache/store/segment_store.h"

namespace hearth::cache {

// The store that the options name, the same object for every caller of the process as long as one
// holds it: the bundle, else the weight store; and where that cannot be used or is switched off, an
// anonymous store, whose writability() has the reason. Never null.
std::shared_ptr<SegmentStore> openSegmentStore(const StoreOptions& options);

}  // namespace hearth::cache
