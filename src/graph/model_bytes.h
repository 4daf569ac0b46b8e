// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "graph/model.h"

namespace hearth::graph {

// A model as bytes: everything but the pools and the names. Equal models give equal bytes. The
// bytes are for the build that wrote them: little endian, no promise to later versions. They have
// only the numbers of the channels' scales where those are kept apart.
enum class Scales { kAmongTheBytes, kApart };
std::vector<uint8_t> encodeModel(const Model& model, Scales scales = Scales::kAmongTheBytes);

// The scales of all channels of all operands, one after the other.
std::vector<float> channelScales(const Model& model);

// The inverse; `pools` become the model's. Reads nothing outside `bytes`, allocates no more than a
// small multiple of them, and takes nothing of the content for granted: kBadData for bytes that no
// encodeModel() wrote, and for a model that does not pass validate() with these pools. `scales` are
// channelScales() where those are kept apart, else empty; they are copied.
Result<Model> decodeModel(std::span<const uint8_t> bytes, std::vector<memory::PoolRef> pools,
                          std::span<const float> scales = {});

}  // namespace hearth::graph
