// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "base/descriptor.h"
#include "base/result.h"

namespace hearth::memory {

// A file in memory that holds the pieces one after the other, and that nothing changes afterwards,
// not even this process. They are written without being mapped here, so the file takes no memory of
// this process. Errors: kUnsupported where the system does not seal memory; kOutOfMemory, kIo.
Result<base::Descriptor> sealedFile(std::span<const std::span<const uint8_t>> pieces);

}  // namespace hearth::memory
