// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "frontends/tflite/testing/sample_models.h"

namespace hearth::tflite {

// Of sampleModels(): layers of networks in all their number types.
std::vector<SampleModel> sampleLayers();

}  // namespace hearth::tflite
