// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "hal/device.h"

namespace hearth::hal {

// The name of a driver option (PrepareOptions::driverOptions) that says, as "1", that a file holds
// no other model than this one: its constants will be prepared in no other model but versions of
// this one and the same for other shapes. Signatures of one file have most constants in common.
inline constexpr char kOnlyModelOption[] = "only_model_of_file";

inline bool isOnlyModelOfFile(const PrepareOptions& options) {
  const auto found = options.driverOptions.find(kOnlyModelOption);
  return found != options.driverOptions.end() && found->second == "1";
}

}  // namespace hearth::hal
