// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "graph/model.h"

namespace hearth::vulkan {

// A model of one operation, and inputs of it.
struct SampleModel {
  std::shared_ptr<const graph::Model> model;
  std::vector<std::vector<uint8_t>> inputs;
};

// A model that runs the embedded shader of this name, with sizes that are no multiples of anything
// and the same values at each call. None for a shader that no operation needs with these types.
std::optional<SampleModel> sampleModelOf(std::string_view shader);

}  // namespace hearth::vulkan
