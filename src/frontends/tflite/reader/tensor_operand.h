// SPDX-License-Identifier: Apache-2.0
// How a tensor of the file becomes an operand of the canonical model.
#pragma once

#include "base/result.h"
#include "frontends/tflite/reader/file_view.h"
#include "graph/model.h"

namespace hearth::tflite {

enum class ShapeSource {
  kSignature,  // dimensions that the signature leaves open are unknown
  kFile,       // the shape that the file was written with
};

// Type, dimensions and quantisation of a tensor; name, life time and location stay untouched. The
// name in error messages is `name`. kBadData for what no file may hold (negative dimensions, NaN
// scales, zero points out of range), kUnsupported for types and quantisation without equivalent.
// TENSOR_INT4 that is quantised by blocks has the scale 0: the scales are another tensor. `lists`
// are those of the tensor's file.
Result<graph::Operand> makeOperand(const schema::Tensor& tensor, const std::string& name,
                                   ShapeSource shape, ScaleLists& lists);

// Dimensions as makeOperand() gives them.
Result<graph::Dimensions> readDimensions(const schema::Tensor& tensor, const std::string& name,
                                         ShapeSource source);

}  // namespace hearth::tflite
