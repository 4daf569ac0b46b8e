// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "frontends/tflite/testing/sample_models.h"

namespace hearth::tflite {

// Of sampleModels(): what models of sounds and pictures begin and end with.
std::vector<SampleModel> sampleMedia();

}  // namespace hearth::tflite
