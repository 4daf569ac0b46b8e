// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/lowering/channel_split.h"

#include <hearth_xnnpack.h>

#include <algorithm>
#include <span>

namespace hearth::cpu {
namespace {

// A multiple of the columns of every microkernel's tile.
constexpr size_t kChannelTile = 64;

}  // namespace

std::vector<ChannelRange> channelParts(size_t channels, size_t bytesPerChannel,
                                       size_t worthSplitting) {
  // This does not overflow: a constant of that size exists.
  const size_t bytes = channels * bytesPerChannel;
  if (bytes < worthSplitting) return {{0, channels}};
  const size_t parts = (bytes + kChannelPart - 1) / kChannelPart;
  const size_t each = ((channels + parts - 1) / parts + kChannelTile - 1) / kChannelTile;
  std::vector<ChannelRange> ranges;
  for (size_t first = 0; first < channels; first += each * kChannelTile)
    ranges.push_back({first, std::min(each * kChannelTile, channels - first)});
  return ranges;
}

std::vector<ChannelRange> packingParts(size_t channels, size_t bytesPerChannel) {
  constexpr size_t kWorthParts = size_t{2} << 20;
  constexpr size_t kPart = size_t{512} << 10;
  if (channels * bytesPerChannel < kWorthParts) return {{0, channels}};
  const size_t each = std::max(kPart / bytesPerChannel / kChannelTile, size_t{1}) * kChannelTile;
  std::vector<ChannelRange> ranges;
  // With fewer channels than a panel has, XNNPACK may pack in another layout.
  for (size_t first = 0; first < channels; first += ranges.back().count) {
    const size_t left = channels - first;
    ranges.push_back({first, left < each + kChannelTile ? left : each});
  }
  return ranges;
}

std::shared_ptr<const float> scalesFrom(const graph::Operand& filter, size_t channels,
                                        size_t first) {
  static_assert(XNN_EXTRA_QUANTIZATION_PARAMS <= graph::ChannelScales::kReadableBehind);
  if (!filter.perChannel.scales.empty()) return filter.perChannel.scales.from(first);
  return graph::ChannelScales(channels - first, filter.scale).from(0);
}

void releaseAfterPacking(const PlanBuilder& builder, Node* node, uint32_t filter,
                         ChannelRange channels, size_t bytesPerChannel) {
  const size_t before = node->packedSources.size();
  builder.constants().releaseAfterPacking(node, filter);
  if (node->packedSources.size() == before) return;
  std::span<const uint8_t>& source = node->packedSources.back();
  source = source.subspan(channels.first * bytesPerChannel, channels.count * bytesPerChannel);
}

void releaseAfterPacking(PlanBuilder* builder, Node* node, uint32_t filter,
                         const std::vector<ChannelRange>& parts, size_t part,
                         size_t bytesPerChannel) {
  if (parts.size() == 1)
    builder->constants().releaseAfterPacking(node, filter);
  else
    releaseAfterPacking(*builder, node, filter, parts[part], bytesPerChannel);
}

}  // namespace hearth::cpu
