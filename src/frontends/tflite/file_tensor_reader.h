// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "base/result.h"
#include "frontends/tflite/file_tensors.h"
#include "frontends/tflite/model_summary.h"

namespace hearth::tflite {

class FileView;

// The work of ModelFile::fileSubgraph(), fileTensor() and signatures().
Result<FileSubgraph> readSubgraph(const FileView& view, size_t subgraph);
Result<FileTensor> readTensor(const FileView& view, size_t subgraph, size_t tensor);
std::vector<SignatureSummary> readSignatures(const FileView& view);

}  // namespace hearth::tflite
