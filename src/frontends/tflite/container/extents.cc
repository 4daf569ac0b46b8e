// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite/container/extents.h"

#include <algorithm>

namespace hearth::tflite {

Status checkApart(std::vector<Extent> extents) {
  std::erase_if(extents, [](const Extent& extent) { return extent.begin == extent.end; });
  std::ranges::sort(extents, {}, &Extent::begin);
  for (size_t i = 1; i < extents.size(); ++i)
    if (extents[i].begin < extents[i - 1].end)
      return fail(ErrorCode::kBadData,
                  "The container is damaged: {} and {} lie over each other at byte {}.",
                  extents[i - 1].name, extents[i].name, extents[i].begin);
  return {};
}

}  // namespace hearth::tflite
