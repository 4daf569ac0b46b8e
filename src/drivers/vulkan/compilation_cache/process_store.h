// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "cache/store/segment_store.h"

namespace hearth::vulkan {

// Opens the weight store that the environment names; null where it names none. An exiting process
// first writes what is queued there, unless base::worksAtExit() declines: without that a short run
// would leave nothing to the next one. Thread-safe.
std::shared_ptr<cache::SegmentStore> openProcessStore();

}  // namespace hearth::vulkan
