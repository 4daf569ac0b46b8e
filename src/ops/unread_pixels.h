// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "graph/model.h"

namespace hearth::ops {

// The model without the computation of pixels that nobody reads; `model` itself where there are
// none. A CONV_2D whose window is one pixel and whose stride is two reads every second row and
// column of its input, as the first layers of a ResNet's stages do. The CONV_2D before it takes
// over the stride, if nothing else reads its output: through further layers with such a window, and
// through element-wise operations. What these read of other tensors is gathered by a STRIDED_SLICE.
// Results are those of `model`, which has passed graph::validate() and validateOperations(), and so
// has the result, which shares its pools. What is changed does not depend on dimensions of 0.
std::shared_ptr<const graph::Model> withoutUnreadPixels(std::shared_ptr<const graph::Model> model);

}  // namespace hearth::ops
