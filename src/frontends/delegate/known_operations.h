// SPDX-License-Identifier: Apache-2.0
// The builtin operations that the delegate takes, as far as their codes decide.
#pragma once

#include <cstdint>
#include <cstring>

#include "frontends/delegate/partition_source.h"

namespace hearth::delegate {

// An operation's parameters as the runtime keeps them.
struct Parameters {
  const void* data = nullptr;
  int32_t version = 1;

  template <typename Params>
  Params as() const {
    Params params;
    std::memcpy(&params, data, sizeof(params));
    return params;
  }
};

// The same as a table of a file.
struct Options {
  tflite::schema::BuiltinOptions type = tflite::schema::BuiltinOptions::NONE;
  OptionsWriter write;
};

struct KnownOperation {
  tflite::schema::BuiltinOperator code;
  // Null: the reader of files needs no options. Reads no field that the version does not have.
  Options (*read)(const Parameters& parameters);
};

// Null for an operation that the delegate does not take.
const KnownOperation* findKnownOperation(tflite::schema::BuiltinOperator code);

}  // namespace hearth::delegate
