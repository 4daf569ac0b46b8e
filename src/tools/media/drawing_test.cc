// SPDX-License-Identifier: Apache-2.0
#include "tools/media/drawing.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

namespace hearth::tools {
namespace {

constexpr Colour kWhite{255, 255, 255};

Picture black(uint32_t width, uint32_t height) {
  return {width, height, 3, std::vector<uint8_t>(size_t{width} * height * 3)};
}

// '#' where the picture is white.
std::string textOf(const Picture& picture) {
  std::string text;
  for (uint32_t y = 0; y < picture.height; ++y) {
    for (uint32_t x = 0; x < picture.width; ++x) text += picture.pixel(x, y)[0] != 0 ? '#' : '.';
    text += '\n';
  }
  return text;
}

TEST(DrawingTest, BoxesAreOutlines) {
  Picture picture = black(6, 5);
  drawBox(0, 0.2, 5.0 / 6, 1, kWhite, &picture);
  EXPECT_EQ(textOf(picture),
            "......\n"
            "#####.\n"
            "#...#.\n"
            "#...#.\n"
            "#####.\n");
}

TEST(DrawingTest, WhatLiesOutsideIsLeftOut) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Picture picture = black(4, 3);
  drawBox(-1, 0.34, 0.5, 7, kWhite, &picture);
  EXPECT_EQ(textOf(picture),
            "....\n"
            "##..\n"
            ".#..\n");
  picture = black(4, 3);
  drawBox(0.9, 0.9, 0.1, 0.1, kWhite, &picture);
  drawBox(NAN, NAN, NAN, NAN, kWhite, &picture);
  drawDot(-5, 9, kWhite, &picture);
  EXPECT_EQ(textOf(picture), textOf(black(4, 3)));
  drawBox(-kInfinity, -kInfinity, kInfinity, kInfinity, kWhite, &picture);
  drawDot(kInfinity, NAN, kWhite, &picture);
}

TEST(DrawingTest, DotsAreRound) {
  Picture picture = black(7, 6);
  drawDot(0.5, 0.5, kWhite, &picture);
  EXPECT_EQ(textOf(picture),
            ".......\n"
            "...#...\n"
            "..###..\n"
            ".#####.\n"
            "..###..\n"
            "...#...\n");
}

TEST(DrawingTest, GreyPicturesBecomeColourful) {
  const Picture picture = toRgb({2, 1, 1, {7, 9}});
  EXPECT_EQ(picture.channels, 3u);
  EXPECT_EQ(picture.samples, (std::vector<uint8_t>{7, 7, 7, 9, 9, 9}));
}

}  // namespace
}  // namespace hearth::tools
