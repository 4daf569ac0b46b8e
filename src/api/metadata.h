// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

#include "frontends/tflite/model_metadata.h"

namespace hearth::api {

// The object of hearth_model_metadata; docs/cli.md describes its keys.
nlohmann::ordered_json metadataJson(const tflite::ModelMetadata& metadata);

}  // namespace hearth::api
