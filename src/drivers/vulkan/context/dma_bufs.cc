// SPDX-License-Identifier: Apache-2.0
#include "drivers/vulkan/context/dma_bufs.h"

#include <linux/dma-buf.h>
#include <sys/ioctl.h>

#include <cerrno>

namespace hearth::vulkan {

Status syncDmaBuf(int fd, uint64_t flags) {
  const dma_buf_sync request{flags};
  while (::ioctl(fd, DMA_BUF_IOCTL_SYNC, &request) != 0) {
    if (errno == EINTR || errno == EAGAIN) continue;
    // udmabuf says so of an access that nobody has started: then there is nothing to end.
    if (errno == EINVAL && (flags & DMA_BUF_SYNC_END) != 0) break;
    return fail(ErrorCode::kOpFailed, "{}",
                base::errnoError(errno, "Synchronising the caches of a dma-buf").message());
  }
  return {};
}

}  // namespace hearth::vulkan
