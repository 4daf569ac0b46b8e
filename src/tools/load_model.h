// SPDX-License-Identifier: Apache-2.0
// The model that a command line names.
#pragma once

#include <string>

#include "hearth/hearth.hpp"
#include "tools/failure.h"

namespace hearth::tools {

inline constexpr const char* kModelHelp =
    "The .tflite file, or a .task or .litertlm file with models in it";
inline constexpr const char* kPartHelp =
    "The model in a .task or .litertlm file (the only one); hearth inspect lists them";

// `part` is empty for a model file, and for the only model of a container. A part that does not
// exist is a failure of the command line.
Outcome<Model> loadModel(const std::string& path, const std::string& part);

}  // namespace hearth::tools
