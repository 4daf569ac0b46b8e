// SPDX-License-Identifier: Apache-2.0
// Where the arguments of IF and WHILE lie (NNAPI feature level 4).
#pragma once

#include <cstddef>

namespace hearth::ops {

inline constexpr size_t kIfCondition = 0, kIfThen = 1, kIfElse = 2, kIfFirstInput = 3;
inline constexpr size_t kWhileCondition = 0, kWhileBody = 1, kWhileFirstInput = 2;

}  // namespace hearth::ops
