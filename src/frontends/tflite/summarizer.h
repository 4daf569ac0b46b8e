// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "frontends/tflite/model_summary.h"
#include "frontends/tflite/reader/file_view.h"

namespace hearth::tflite {

// Never fails: what is missing or invalid in the file is left empty. Takes a small multiple of the
// file's size in memory; scales and names that would exceed that are left out.
ModelSummary summarize(const FileView& file);

}  // namespace hearth::tflite
