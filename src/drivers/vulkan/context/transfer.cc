// SPDX-License-Identifier: Apache-2.0
#include "drivers/vulkan/context/transfer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "drivers/vulkan/context/commands.h"

namespace hearth::vulkan {
namespace {

// More goes in parts of this size.
constexpr uint64_t kStageBytes = uint64_t{16} << 20;

Status copy(const Gpu& gpu, Commands& commands, const Buffer& from, const Buffer& to,
            const VkBufferCopy& region) {
  HEARTH_TRY(commands.begin());
  // What earlier commands wrote is to be seen.
  commands.barrier();
  gpu.functions().vkCmdCopyBuffer(commands.handle(), from.handle(), to.handle(), 1, &region);
  commands.barrier();
  HEARTH_TRY(commands.end());
  return commands.run();
}

}  // namespace

Status upload(const std::shared_ptr<Gpu>& gpu, std::span<const std::span<const uint8_t>> pieces,
              const Buffer& to) {
  HEARTH_ASSIGN(const std::unique_ptr<Buffer> stage,
                Buffer::create(gpu, std::min(to.bytes(), kStageBytes), Buffer::Kind::kUpload));
  HEARTH_ASSIGN(const std::unique_ptr<Commands> commands, Commands::create(gpu));
  uint64_t done = 0;  // bytes that are in `to`
  uint64_t used = 0;  // bytes behind them that are in `stage`
  const auto flush = [&]() -> Status {
    if (used == 0) return {};
    HEARTH_TRY(copy(*gpu, *commands, *stage, to, {0, done, used}));
    done += std::exchange(used, 0);
    return {};
  };
  for (std::span<const uint8_t> piece : pieces)
    while (!piece.empty()) {
      const uint64_t part = std::min<uint64_t>(piece.size(), stage->bytes() - used);
      std::memcpy(stage->data() + used, piece.data(), part);
      used += part;
      piece = piece.subspan(part);
      if (used == stage->bytes()) HEARTH_TRY(flush());
    }
  return flush();
}

Status download(const std::shared_ptr<Gpu>& gpu, const Buffer& from, std::span<uint8_t> to) {
  HEARTH_ASSIGN(const std::unique_ptr<Buffer> stage,
                Buffer::create(gpu, std::min(from.bytes(), kStageBytes), Buffer::Kind::kDownload));
  HEARTH_ASSIGN(const std::unique_ptr<Commands> commands, Commands::create(gpu));
  for (uint64_t done = 0; done < to.size();) {
    const uint64_t part = std::min<uint64_t>(to.size() - done, stage->bytes());
    HEARTH_TRY(copy(*gpu, *commands, from, *stage, {done, 0, part}));
    std::memcpy(to.data() + done, stage->data(), part);
    done += part;
  }
  return {};
}

Status clear(const std::shared_ptr<Gpu>& gpu, const Buffer& buffer) {
  HEARTH_ASSIGN(const std::unique_ptr<Commands> commands, Commands::create(gpu));
  HEARTH_TRY(commands->begin());
  gpu->functions().vkCmdFillBuffer(commands->handle(), buffer.handle(), 0, VK_WHOLE_SIZE, 0);
  commands->barrier();
  HEARTH_TRY(commands->end());
  return commands->run();
}

}  // namespace hearth::vulkan
