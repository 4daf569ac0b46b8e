// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace hearth::hal {

// The name of a driver option (PrepareOptions::driverOptions) that says how long an execution of
// the model may take for one step, in nanoseconds: an operation, or all of them where the driver
// tells no progress (hal/progress.h). Whoever waits for a driver in another process then knows that
// one which has begun no step for longer hangs. Devices in the process ignore it.
inline constexpr char kLongestStepOption[] = "longest_step_ns";

}  // namespace hearth::hal
