// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "frontends/delegate/partition_source.h"
#include "tflite_abi/structures.h"

namespace hearth::delegate {

// What a list of the runtime holds; nothing for a null pointer.
std::vector<int32_t> listOf(const TfLiteIntArray* array);

// Reads a node; nothing when the delegate does not take it. Reads no field of its parameters that
// the version of its operation does not have.
std::optional<SourceNode> readNode(const TfLiteNode& node, const TfLiteRegistration& registration);

}  // namespace hearth::delegate
