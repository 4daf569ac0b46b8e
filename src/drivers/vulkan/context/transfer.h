// SPDX-License-Identifier: Apache-2.0
// Copies between the host and buffers that it may not see, through one that it sees.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/result.h"
#include "drivers/vulkan/context/buffer.h"
#include "drivers/vulkan/context/gpu.h"

namespace hearth::vulkan {

// Copies bytes, in pieces that follow each other, to the beginning of `to`, which has room for
// them. Errors as Buffer::create() and Commands::run().
Status upload(const std::shared_ptr<Gpu>& gpu, std::span<const std::span<const uint8_t>> pieces,
              const Buffer& to);

// Copies the first bytes of `from`, which has as many. Errors as upload().
Status download(const std::shared_ptr<Gpu>& gpu, const Buffer& from, std::span<uint8_t> to);

// Sets all bytes to 0. The size of the buffer is a multiple of 4. Errors as upload().
Status clear(const std::shared_ptr<Gpu>& gpu, const Buffer& buffer);

}  // namespace hearth::vulkan
