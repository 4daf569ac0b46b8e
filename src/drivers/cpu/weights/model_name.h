// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "graph/model.h"

namespace hearth::cpu {

// A name of the model for people: that of the file behind its first pool that has one, without
// folders. Empty where the constants come from no file.
std::string modelName(const graph::Model& model);

}  // namespace hearth::cpu
