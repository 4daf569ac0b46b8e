// SPDX-License-Identifier: Apache-2.0
// Fourier transforms and operations on the complex numbers that they give.
#include "frontends/tflite/translators/translators.h"

namespace hearth::tflite {
namespace {

using graph::OperationType;
using schema::BuiltinOperator;

}  // namespace

std::span<const TranslatorEntry> complexTranslators() {
  static constexpr TranslatorEntry kTranslators[] = {
      {BuiltinOperator::RFFT2D, translateWithInts<2>, OperationType::kRfft2d},
      {BuiltinOperator::REAL, translatePlain<1>, OperationType::kReal},
      {BuiltinOperator::IMAG, translatePlain<1>, OperationType::kImag},
      {BuiltinOperator::COMPLEX_ABS, translatePlain<1>, OperationType::kComplexAbs},
  };
  return kTranslators;
}

}  // namespace hearth::tflite
