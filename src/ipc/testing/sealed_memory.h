// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>

#include "base/descriptor.h"

namespace hearth::ipc {

// Memory that nobody can write to any more.
inline base::Descriptor sealedMemory(size_t bytes) {
  base::Descriptor memory(::memfd_create("sealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(::ftruncate(memory.get(), static_cast<off_t>(bytes)), 0);
  EXPECT_EQ(::fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE), 0);
  return memory;
}

}  // namespace hearth::ipc
