// SPDX-License-Identifier: Apache-2.0
#include "tools/load_model.h"

#include <unistd.h>

namespace hearth::tools {

Outcome<Model> loadModel(const std::string& path, const std::string& part) {
  try {
    return Model(path, part);
  } catch (const Exception& exception) {
    Failure failure(exception);
    // What is missing is the file, or else the part.
    if (exception.code() == HEARTH_NOT_FOUND && ::access(path.c_str(), F_OK) == 0)
      failure.exitCode = kExitUsage;
    return std::unexpected(std::move(failure));
  }
}

}  // namespace hearth::tools
