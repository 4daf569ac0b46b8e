// SPDX-License-Identifier: Apache-2.0
// `hearth cache warm --for`: weights packed for processors that this machine does not have.
#pragma once

#include <string>
#include <vector>

#include "tools/cache_options.h"
#include "tools/failure.h"

namespace hearth::tools {

// What --for takes: "arm64-dotprod" and so on.
std::vector<std::string> packingTargetNames();

// Runs `hearth cache warm` of options.program under qemu-user as each of options.targets, one after
// the other. What is packed goes to the store or bundle of the options. Fails where a bundle is to
// hold more than one target's weights, where there is no qemu for a target, and with the first
// target for which the weights could not be packed; those before it stay.
Outcome<void> cacheWarmForTargets(const CacheOptions& options);

}  // namespace hearth::tools
