// SPDX-License-Identifier: Apache-2.0
// Why several lowerings leave an operation to the shared kernel: words for PlanBuilder::decline().
#pragma once

namespace hearth::cpu {

inline constexpr char kNchw[] = "only the order NHWC has a faster kernel";
inline constexpr char kHalf[] = "float16 has no faster kernel";
inline constexpr char kOneValue[] = "its activation leaves its output one value";
inline constexpr char kHighScales[] = "its input's and weights' scales are 256 times its output's";
inline constexpr char kWrongOnThisCpu[] = "XNNPACK's kernel gives wrong results on this CPU";
inline constexpr char kComputedWeights[] = "its weights or biases are not constant";
inline constexpr char kOnlyFloat32[] = "only float32 has a faster kernel";
inline constexpr char kOnlyFloat32Or8Bits[] =
    "only float32 and quantised numbers of 8 bits have a faster kernel";
inline constexpr char kOtherScale[] = "its output has another scale or zero point than its input";
inline constexpr char kOtherInputScale[] = "its inputs have different scales or zero points";
inline constexpr char kNotLastAxis[] = "its axis is not the last one";
inline constexpr char kMixedTypes[] = "its types are mixed, or its weights are not constant";

}  // namespace hearth::cpu
