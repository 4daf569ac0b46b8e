// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "frontends/tflite/reader/file_operators.h"
#include "frontends/tflite/reader/file_view.h"

namespace hearth::tflite {

// The work of ModelFile::fileOperators().
Result<std::vector<FileOperator>> readOperators(const FileView& view, size_t subgraph);

// The options of a custom operation. Long ones may lie behind the tables of the file. kBadData when
// they lie outside of it.
Result<std::span<const uint8_t>> customOptionsOf(const FileView& view,
                                                 const schema::Operator& source);

}  // namespace hearth::tflite
