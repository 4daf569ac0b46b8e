// SPDX-License-Identifier: Apache-2.0
#include "tools/custom_operators.h"

#include <dlfcn.h>

#include "hearth/hearth.hpp"

namespace hearth::tools {

Outcome<void> loadCustomOperators(const std::vector<std::string>& libraries) {
  using Register = hearth_status (*)(hearth_error**);
  for (const std::string& library : libraries) {
    const std::string path = library.contains('/') ? library : "./" + library;
    void* const handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr)
      return std::unexpected(
          Failure(kExitFailure, base::formatText("The custom operators of {} cannot be loaded: {}",
                                                 library, ::dlerror())));
    const auto registerAll = reinterpret_cast<Register>(::dlsym(handle, kRegisterFunction));
    if (registerAll == nullptr)
      return std::unexpected(Failure(
          kExitFailure,
          base::formatText("The library {} has no function {}.", library, kRegisterFunction)));
    try {
      detail::call(registerAll);
    } catch (const Exception& exception) {
      return std::unexpected(Failure(
          kExitFailure, base::formatText("The custom operators of {} are not registered: {}",
                                         library, exception.what())));
    }
  }
  return {};
}

}  // namespace hearth::tools
