// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "frontends/delegate/partition_source.h"
#include "frontends/delegate/tflite_abi.h"

namespace hearth::delegate {

// Whether the delegate takes builtin operations of this code, as far as the code decides.
bool isKnownOperation(tflite::schema::BuiltinOperator code);

// Reads a node; nothing when the delegate does not take it. Reads no field of its parameters that
// the version of its operation does not have.
std::optional<SourceNode> readNode(const TfLiteNode& node, const TfLiteRegistration& registration);

}  // namespace hearth::delegate
