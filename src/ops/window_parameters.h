// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/activation.h"
#include "ops/padding.h"

namespace hearth::ops {

// What all operations have that move a window over images.
struct WindowParameters {
  Window2d window;
  bool isNchw = false;
  FusedActivation activation = FusedActivation::kNone;
  ImageShape input;
  ImageShape output;
};

}  // namespace hearth::ops
