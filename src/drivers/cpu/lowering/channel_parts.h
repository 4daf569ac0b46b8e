// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "drivers/cpu/plan/plan_builder.h"

namespace hearth::cpu {

// Output channels that one operator computes of a layer.
struct ChannelRange {
  size_t first = 0;
  size_t count = 0;
  bool operator==(const ChannelRange&) const = default;
};

// A fully connected layer whose weights take much memory (the last layer of a language model: half
// a gigabyte) is several operators, each with output channels of its own: then several threads pack
// it, and what is packed and not yet written is never more than some of the parts. All of the
// layer for others. The parts are in order, begin at multiples of 64 channels, and are a function
// of the arguments alone, so that every start makes the same ones. Layers of fewer bytes than
// `worthSplitting` are one part; others have parts of kChannelPart at most, or of 64 channels.
inline constexpr size_t kChannelPart = size_t{32} << 20;
std::vector<ChannelRange> channelParts(size_t channels, size_t bytesPerChannel,
                                       size_t worthSplitting = 2 * kChannelPart);

// The scale of a filter's output channel `first` and of those behind it, with more behind the last
// one, for XNNPACK reads past it. A filter with one scale has it for each of its `channels`.
std::shared_ptr<const float> scalesFrom(const graph::Operand& filter, size_t channels,
                                        size_t first = 0);

// PlanBuilder::releaseAfterPacking for a node that packs these channels of a filter only, each of
// which has `bytesPerChannel`.
void releaseAfterPacking(const PlanBuilder& builder, Node* node, uint32_t filter,
                         ChannelRange channels, size_t bytesPerChannel);

}  // namespace hearth::cpu
