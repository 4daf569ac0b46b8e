// SPDX-License-Identifier: Apache-2.0
#include "drivers/vulkan/shaders/shaders.h"

#include <algorithm>

namespace hearth::vulkan {

const EmbeddedShader* findShader(std::string_view name) {
  const auto shaders = embeddedShaders();
  const auto found = std::ranges::find(shaders, name, &EmbeddedShader::name);
  return found == shaders.end() ? nullptr : &*found;
}

}  // namespace hearth::vulkan
