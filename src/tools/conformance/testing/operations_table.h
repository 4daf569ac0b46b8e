// SPDX-License-Identifier: Apache-2.0
// Generates docs/operations.md from the answers of the devices and the front end.
#pragma once

#include <string>

#include "base/result.h"

namespace hearth::conformance {

// Returns the page. Its kernels are those that hearth-cpu chooses for the operations of the
// conformance cases and the models below `data` ($HEARTH_TEST_DATA), of the samples of the .tflite
// front end and of random graphs. Fails if one of these cannot be read.
Result<std::string> operationsTable(const std::string& data);

}  // namespace hearth::conformance
