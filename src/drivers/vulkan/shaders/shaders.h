// SPDX-License-Identifier: Apache-2.0
// The compiled shaders, which the build embeds. CMakeLists.txt lists them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace hearth::vulkan {

struct EmbeddedShader {
  std::string_view name;            // of the source, a dot and the data types: "convolution.f32"
  std::span<const uint32_t> words;  // SPIR-V
};

// All of them. Static storage.
std::span<const EmbeddedShader> embeddedShaders();

// The shader of this name; null if there is none.
const EmbeddedShader* findShader(std::string_view name);

}  // namespace hearth::vulkan
