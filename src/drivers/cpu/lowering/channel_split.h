// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "drivers/cpu/plan/plan_builder.h"

namespace hearth::cpu {

// The output channels of a layer that one operator computes. Value type.
struct ChannelRange {
  size_t first = 0;
  size_t count = 0;
  bool operator==(const ChannelRange&) const = default;
};

// Divides a fully connected layer with very large weights (half a gigabyte in the last layer of a
// language model) into several operators, each with output channels of its own. Then several
// threads pack it, and only a few parts are packed but not yet written at any time. The parts are
// in order, begin at multiples of 64 channels, and depend on the arguments alone, so that every
// start makes the same ones. A layer of fewer bytes than `worthSplitting` is one part; others have
// parts of about kChannelPart bytes at most, but of no fewer than 64 channels.
inline constexpr size_t kChannelPart = size_t{32} << 20;
std::vector<ChannelRange> channelParts(size_t channels, size_t bytesPerChannel,
                                       size_t worthSplitting = 2 * kChannelPart);

// Divides the output channels of one operator into parts of about half a megabyte that XNNPACK can
// pack one after the other (PackedWeights::createInParts): the panels of all parts are those of the
// whole. One part where packing takes little memory.
std::vector<ChannelRange> packingParts(size_t channels, size_t bytesPerChannel);

// The biases and scales of what an operator of some output channels is created from, which are
// `whole`.
template <typename Creation>
Creation creationOfPart(const Creation& whole, ChannelRange channels) {
  Creation part = whole;
  if (whole.bias != nullptr)
    part.bias = static_cast<const uint8_t*>(whole.bias) + channels.first * sizeof(int32_t);
  if (whole.kernelScales != nullptr)
    part.kernelScales = {whole.kernelScales, whole.kernelScales.get() + channels.first};
  return part;
}

// The scales of a filter's output channels from `first` on. More scales are readable behind the
// last one, because XNNPACK reads past it. A filter with one scale has it for each of its
// `channels`.
std::shared_ptr<const float> scalesFrom(const graph::Operand& filter, size_t channels,
                                        size_t first = 0);

// PlanBuilder::releaseAfterPacking() for a node that packs only these channels of a filter, of
// `bytesPerChannel` bytes each.
void releaseAfterPacking(const PlanBuilder& builder, Node* node, uint32_t filter,
                         ChannelRange channels, size_t bytesPerChannel);
// The same for a node that packs part number `part` of all the parts of the filter.
void releaseAfterPacking(PlanBuilder* builder, Node* node, uint32_t filter,
                         const std::vector<ChannelRange>& parts, size_t part,
                         size_t bytesPerChannel);

}  // namespace hearth::cpu
