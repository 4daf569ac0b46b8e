// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace hearth::base {

// Whether the process, when it exits, first finishes what it keeps for later ones: as
// HEARTH_AT_EXIT says, unless setWorkAtExit was called. Thread-safe.
bool worksAtExit();
void setWorkAtExit(bool works);

}  // namespace hearth::base
