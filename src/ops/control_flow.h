// SPDX-License-Identifier: Apache-2.0
// Where the arguments of IF and WHILE lie (NNAPI feature level 4).
#pragma once

#include <cstddef>

namespace hearth::ops {

inline constexpr size_t kIfCondition = 0;
inline constexpr size_t kIfThen = 1;
inline constexpr size_t kIfElse = 2;
inline constexpr size_t kIfFirstInput = 3;

inline constexpr size_t kWhileCondition = 0;
inline constexpr size_t kWhileBody = 1;
inline constexpr size_t kWhileFirstInput = 2;

}  // namespace hearth::ops
