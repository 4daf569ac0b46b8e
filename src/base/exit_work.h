// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace hearth::base {

// Whether the process, when it exits, first writes what it keeps for later starts. HEARTH_AT_EXIT
// decides unless setWorkAtExit was called. Thread-safe.
bool worksAtExit();
void setWorkAtExit(bool works);

}  // namespace hearth::base
