// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/env.h"

namespace hearth::cache {

// The folder `name` in the folder that the environment variable `parent` names, or else in
// $HOME/`inHome`. Empty when there is neither.
inline std::string userFolder(base::Env parent, const char* inHome, const char* name) {
  if (const std::string folder = base::envFolder(parent); !folder.empty())
    return folder + '/' + name;
  if (const std::string home = base::envFolder(base::Env::kHome); !home.empty())
    return home + '/' + inHome + '/' + name;
  return "";
}

}  // namespace hearth::cache
