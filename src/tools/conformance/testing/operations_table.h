// SPDX-License-Identifier: Apache-2.0
// docs/operations.md, made from what the devices and the front end say.
#pragma once

#include <string>

#include "base/result.h"

namespace hearth::conformance {

// The page. Kernels are those that hearth-cpu gives to the operations of the conformance cases and
// of the models below `data` ($HEARTH_TEST_DATA), of the samples of the .tflite front end and of
// random graphs. Error: what reading them fails with.
Result<std::string> operationsTable(const std::string& data);

}  // namespace hearth::conformance
