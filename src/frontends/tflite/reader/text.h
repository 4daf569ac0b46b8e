// SPDX-License-Identifier: Apache-2.0
// Texts of a model file, for messages and reports.
#pragma once

#include <string>
#include <string_view>

#include "tflite_schema_generated.h"

namespace hearth::tflite {

// Returns a string of the file as valid UTF-8 without control characters, cut to 1024 bytes: it
// will be shown on terminals and in JSON.
std::string cleanText(std::string_view text);
// The same; "" for null.
std::string cleanText(const flatbuffers::String* text);

// Returns the operation's code. Files have an old 8-bit field and a newer one; the greater value
// counts.
schema::BuiltinOperator builtinCode(const schema::OperatorCode& code);

// "CONV_2D", the custom code of a custom operation, or "BUILTIN_300" for a code without a name.
std::string operationName(const schema::OperatorCode& code);

// "FLOAT32", or "TYPE_77" for a code without a name.
std::string tensorTypeName(schema::TensorType type);

}  // namespace hearth::tflite
