// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "frontends/tflite/model_summary.h"
#include "frontends/tflite/reader/file_view.h"

namespace hearth::tflite {

// Never fails: what the file lacks or has wrong is left empty. Takes a small multiple of the
// file's size; scales and names that would take more are left out.
ModelSummary summarize(const FileView& file);

}  // namespace hearth::tflite
