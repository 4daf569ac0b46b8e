// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "frontends/tflite/model_file.h"
#include "runtime/device_manager.h"

namespace hearth::api {

// The JSON of hearth_model_inspect; its keys are described in docs/cli.md. What cannot be imported
// or is refused by a device is in the text with its reason, never an error.
std::string inspectModel(const tflite::ModelFile& file, const runtime::DeviceManager& devices);

}  // namespace hearth::api
