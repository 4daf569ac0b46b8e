// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

#include "drivers/cpu/plan/plan.h"

namespace hearth::cpu {

// Gives a node the kernel that `make` makes of `creation`, and lets it prefer the one that
// `makeOwn` makes, unless that is null.
template <typename Creation>
void setKernels(Node* node, Creation creation,
                Result<std::unique_ptr<Kernel>> (*make)(std::shared_ptr<const Creation>),
                Result<std::unique_ptr<Kernel>> (*makeOwn)(const Creation&)) {
  const auto shared = std::make_shared<const Creation>(std::move(creation));
  node->create = [shared, make] {
    return make(shared);
  };
  if (makeOwn != nullptr) node->preferOwn([shared, makeOwn] { return makeOwn(*shared); });
}

}  // namespace hearth::cpu
