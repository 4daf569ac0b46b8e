// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/result.h"
#include "memory/mapping.h"

namespace hearth::vulkan {

// DMA_BUF_IOCTL_SYNC with these flags (linux/dma-buf.h). kOpFailed where the driver of the kernel
// whose memory it is fails, and for any other descriptor.
Status syncDmaBuf(int fd, uint64_t flags);

// What the kernel says of dma-bufs, memory that devices share, and does with them. Tests put others
// in their place.
struct DmaBufCalls {
  bool (*isDmaBuf)(int fd) = memory::isDmaBuf;
  Status (*sync)(int fd, uint64_t flags) = syncDmaBuf;
};

}  // namespace hearth::vulkan
