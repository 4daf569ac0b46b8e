// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "base/result.h"
#include "hal/device.h"

namespace hearth::hal {

// Arguments that overlap have addresses that overlap, unless they lie in memories that map the same
// bytes of a file at several places. Returns the request with such arguments, of which one is
// written, in one mapping; nothing for a request that is right as it is, as almost all are. Ranges
// that no memory has are left for checkRequest() to refuse. Errors: kOpFailed when the file has
// become shorter, and those of Pool::ofFile().
Result<std::optional<Request>> joinMemories(const Request& request);

}  // namespace hearth::hal
