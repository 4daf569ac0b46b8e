// SPDX-License-Identifier: Apache-2.0
// Shapes on pictures of three channels. What lies outside the picture is left out.
#pragma once

#include "tools/media/overlay.h"
#include "tools/media/picture.h"

namespace hearth::tools {

// The picture in three channels.
Picture toRgb(const Picture& picture);

// How thick lines are that are seen well in a picture of this size, in pixels.
uint32_t lineWidth(const Picture& picture);

// The outline of a rectangle whose edges are fractions of the picture; lines lie inside it.
void drawBox(double left, double top, double right, double bottom, Colour colour, Picture* picture);

// A filled circle whose centre is in fractions of the picture.
void drawDot(double x, double y, Colour colour, Picture* picture);

}  // namespace hearth::tools
