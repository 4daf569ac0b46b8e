// SPDX-License-Identifier: Apache-2.0
// Fourier transforms and operations on the complex numbers that they give.
#include "frontends/tflite/translators/translators.h"

namespace hearth::tflite {
namespace {

using graph::OperationType;
using schema::BuiltinOperator;

Status translateRfft2d(OperatorView& view, OperationType type) {
  HEARTH_ASSIGN(const uint32_t images, view.input(0));
  HEARTH_ASSIGN(const uint32_t lengths, view.intTensorInput(1));
  return view.emit(type, {images, lengths});
}

Status translatePart(OperatorView& view, OperationType type) {
  HEARTH_ASSIGN(const uint32_t input, view.input(0));
  return view.emit(type, {input});
}

constexpr TranslatorEntry kTranslators[] = {
    {BuiltinOperator::RFFT2D, translateRfft2d, OperationType::kRfft2d},
    {BuiltinOperator::REAL, translatePart, OperationType::kReal},
    {BuiltinOperator::IMAG, translatePart, OperationType::kImag},
    {BuiltinOperator::COMPLEX_ABS, translatePart, OperationType::kComplexAbs},
};

}  // namespace

std::span<const TranslatorEntry> complexTranslators() {
  return kTranslators;
}

}  // namespace hearth::tflite
