// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "graph/model.h"

namespace hearth::graph {

// A model as bytes, without pools and names. Equal models give equal bytes. The bytes are little
// endian and for the build that wrote them, with no promise to later versions. With kApart they
// contain only the numbers of the channels' scales.
enum class Scales { kAmongTheBytes, kApart };
std::vector<uint8_t> encodeModel(const Model& model, Scales scales = Scales::kAmongTheBytes);

// How many bytes that are, and the same into memory of the caller, which has exactly as many.
size_t encodedSize(const Model& model, Scales scales = Scales::kAmongTheBytes);
void encodeModel(const Model& model, std::span<uint8_t> to, Scales scales = Scales::kAmongTheBytes);

// The scales of all channels of all operands, one list after the other.
std::vector<float> channelScales(const Model& model);

// The inverse; the model gets `pools`. `scales` are channelScales() if they are kept apart, else
// empty; they are copied. Trusts nothing in `bytes`: reads nothing outside them and allocates no
// more than a small multiple of their size. kBadData for bytes that encodeModel() did not write,
// and for a model that does not pass validate() with these pools.
Result<Model> decodeModel(std::span<const uint8_t> bytes, std::vector<memory::PoolRef> pools,
                          std::span<const float> scales = {});

}  // namespace hearth::graph
