// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "frontends/tflite/model_file.h"
#include "hearth/hearth.h"
#include "runtime/device_manager.h"

namespace hearth::api {

// The JSON of hearth_model_inspect; docs/cli.md describes its keys. A signature that cannot be
// imported or an operation that a device refuses is in the text with the reason, and is no error.
std::string inspectModel(const tflite::ModelFile& file, const runtime::DeviceManager& devices);
// The same of hearth_model_inspect_shapes, with its errors.
Result<std::string> inspectModel(const tflite::ModelFile& file,
                                 const runtime::DeviceManager& devices,
                                 const hearth_compile_options& options);
// The JSON of hearth_model_signature_describe; problems as above.
std::string describeSignature(const tflite::ModelFile& file, const std::string& key);

// The JSON of hearth_container_describe. Errors: kNotFound or kIo from the system, kBadData.
Result<std::string> describeContainer(const std::string& path);

}  // namespace hearth::api
