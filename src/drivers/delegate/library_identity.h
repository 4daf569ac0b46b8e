// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/sha256.h"

namespace hearth::drivers::delegate {

// A digest of the code that this process has loaded, by the paths, sizes and times of change of its
// files, and of the kernel's version. What a vendor's library answered is remembered under it: an
// update of the library, of one that it needs, of the kernel's driver or of Hearth gives another
// one. Libraries that are loaded later do not count.
base::Sha256Digest identityOfLoadedCode();

}  // namespace hearth::drivers::delegate
