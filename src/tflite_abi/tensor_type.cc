// SPDX-License-Identifier: Apache-2.0
#include "tflite_abi/tensor_type.h"

#include <algorithm>
#include <iterator>

namespace hearth::tflite_abi {
namespace {

struct TypeFacts {
  TfLiteType type;
  int32_t inFile;
  uint32_t bits;
  const char* name;
};

constexpr TypeFacts kTypes[] = {
    {kTfLiteFloat32, 0, 32, "FLOAT32"},
    {kTfLiteFloat16, 1, 16, "FLOAT16"},
    {kTfLiteInt32, 2, 32, "INT32"},
    {kTfLiteUInt8, 3, 8, "UINT8"},
    {kTfLiteInt64, 4, 64, "INT64"},
    {kTfLiteString, 5, 0, "STRING"},
    {kTfLiteBool, 6, 8, "BOOL"},
    {kTfLiteInt16, 7, 16, "INT16"},
    {kTfLiteComplex64, 8, 64, "COMPLEX64"},
    {kTfLiteInt8, 9, 8, "INT8"},
    {kTfLiteFloat64, 10, 64, "FLOAT64"},
    {kTfLiteComplex128, 11, 128, "COMPLEX128"},
    {kTfLiteUInt64, 12, 64, "UINT64"},
    {kTfLiteResource, 13, 0, "RESOURCE"},
    {kTfLiteVariant, 14, 0, "VARIANT"},
    {kTfLiteUInt32, 15, 32, "UINT32"},
    {kTfLiteUInt16, 16, 16, "UINT16"},
    {kTfLiteInt4, 17, 4, "INT4"},
    {kTfLiteBFloat16, 18, 16, "BFLOAT16"},
    {kTfLiteInt2, 19, 2, "INT2"},
};

}  // namespace

TfLiteType typeOfFile(int32_t type) {
  const auto* const found = std::ranges::find(kTypes, type, &TypeFacts::inFile);
  return found == std::end(kTypes) ? kTfLiteNoType : found->type;
}

uint32_t elementBits(TfLiteType type) {
  const auto* const found = std::ranges::find(kTypes, type, &TypeFacts::type);
  return found == std::end(kTypes) ? 0 : found->bits;
}

const char* typeName(TfLiteType type) {
  if (type == kTfLiteNoType) return "NOTYPE";
  const auto* const found = std::ranges::find(kTypes, type, &TypeFacts::type);
  return found == std::end(kTypes) ? "Unknown type" : found->name;
}

}  // namespace hearth::tflite_abi
