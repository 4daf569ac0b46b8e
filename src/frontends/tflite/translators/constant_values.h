// SPDX-License-Identifier: Apache-2.0
// The values of the file's tensors as constants of the model. Errors of all: kBadData for a buffer
// that does not fit type and shape, and where a model would take too much memory
// (ModelBuilder::charge); kUnsupported for a shape that is not said.
#pragma once

#include <string>

#include "base/result.h"
#include "frontends/tflite/reader/file_view.h"
#include "frontends/tflite/translators/model_builder.h"
#include "graph/model.h"

namespace hearth::tflite {

// Gives `operand`, which has the tensor's type and shape, the bytes of its buffer: in place where
// they are aligned, else as a copy. `name` is for errors.
Status setDenseValue(ModelBuilder& model, const BufferRange& range, const std::string& name,
                     graph::Operand* operand);

// The same for a tensor as the file keeps it: sparse, or with elements of 2 bits, which become
// elements of 8.
Status setValue(ModelBuilder& model, const schema::Tensor& tensor, const BufferRange& range,
                const std::string& name, graph::Operand* operand);

}  // namespace hearth::tflite
