// SPDX-License-Identifier: Apache-2.0
// What the files share that follow changed shapes. Internal to them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string_view>

#include "ops/followed_shapes.h"

namespace hearth::ops {

// The bit of FollowedTensor::parts for a dimension.
inline uint64_t partsBit(size_t dimension) {
  return uint64_t{1} << dimension;
}

inline bool holdsParts(const FollowedTensor& tensor, size_t dimension) {
  return (tensor.parts & partsBit(dimension)) != 0;
}

// kUnsupported: the operation cannot follow the change of its inputs; `why` ends the sentence.
std::unexpected<Error> refuseToFollow(const OperationContext& context,
                                      std::span<const FollowedTensor> inputs, std::string_view why);
// The same because it may mix parts.
std::unexpected<Error> refuseMixing(const OperationContext& context,
                                    std::span<const FollowedTensor> inputs);

// The output of RESHAPE, whose declared shape is `output`, for the present shape of the input, if
// there is but one reading.
std::optional<FollowedTensor> followReshape(const FollowedTensor& input, const Dimensions& output);

}  // namespace hearth::ops
