// SPDX-License-Identifier: Apache-2.0
// Turns tensors of the file into operands of the canonical model.
#pragma once

#include "base/result.h"
#include "frontends/tflite/reader/file_view.h"
#include "graph/model.h"

namespace hearth::tflite {

enum class ShapeSource {
  kSignature,  // dimensions that the signature leaves open are unknown
  kFile,       // the shape that the file was written with
};

// Returns an operand with the type, dimensions and quantisation of a tensor; name, life time and
// location are not set. Error messages use `name`. A TENSOR_INT4 that is quantised by blocks gets
// the scale 0, since its scales are another tensor. `lists` are those of the tensor's file. Errors:
// kBadData for what no file may hold (negative dimensions, NaN scales, zero points out of range),
// kUnsupported for types and quantisation without an equivalent.
Result<graph::Operand> makeOperand(const schema::Tensor& tensor, const std::string& name,
                                   ShapeSource shape, ScaleLists& lists);

// Gives an operand of makeOperand() another type than the file says, with the quantisation that the
// file has for the tensor. Errors: those of makeOperand().
Status setType(const schema::Tensor& tensor, schema::TensorType type, const std::string& name,
               ScaleLists& lists, graph::Operand* operand);

// The dimensions that makeOperand() returns.
Result<graph::Dimensions> readDimensions(const schema::Tensor& tensor, const std::string& name,
                                         ShapeSource source);

}  // namespace hearth::tflite
