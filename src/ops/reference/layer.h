// SPDX-License-Identifier: Apache-2.0
// What layers with data, filter and bias (inputs 0, 1, 2) share: the factors of their sums of
// products, and the conversion of a sum to an element of the output.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/activation.h"
#include "ops/half.h"
#include "ops/reference/elements.h"

namespace hearth::ops::reference {

// Whether the layer sums whole numbers: quantised data give exact sums of stored numbers less their
// zero points, which are scaled once at the end. All other layers sum real numbers.
bool areStepsSummed(const OperationContext& context);

// The data of a hybrid layer as it quantises them: each of `rows` rows is rounded to 256 steps from
// its least to its greatest value, 0 included, by XNNPACK's rule, which is defined in float32. A
// row with an infinity or NaN stays as it is.
std::vector<double> roundedRows(const Tensor& data, int64_t rows);
// Whether inputs 0 and 1 make the layer a hybrid one.
bool isHybridLayer(const OperationContext& context);

// Calls visit(first element, number to subtract from each) for the data, input 0. A hybrid layer
// rounds `rows` rows of them. The element's type is float, Half, double or an integer.
template <typename Visit>
void visitData(const OperationContext& context, int64_t rows, const Visit& visit) {
  const Tensor& data = context.inputs[0];
  const double zeroPoint = data.operand->zeroPoint;
  if (isHybridLayer(context)) return visit(roundedRows(data, rows).data(), 0.0);
  switch (data.type()) {
    case OperandType::kTensorFloat16:
      return visit(data.as<const Half>(), 0.0);
    case OperandType::kTensorQuant8Asymm:
      return visit(data.as<const uint8_t>(), zeroPoint);
    case OperandType::kTensorQuant8AsymmSigned:
      return visit(data.as<const int8_t>(), zeroPoint);
    case OperandType::kTensorQuant16Symm:
      return visit(data.as<const int16_t>(), 0.0);
    default:
      return visit(data.as<const float>(), 0.0);
  }
}

// The sum of `count` products of neighbouring weights with elements that are `step` apart.
template <typename T>
double sumOfProducts(const T* data, int64_t step, double zeroPoint, const double* weights,
                     int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i)
    sum += (static_cast<double>(data[i * step]) - zeroPoint) * weights[i];
  return sum;
}

// A sum of 8-bit products wrapped to 32 bits: a sum that is too large loses its upper bits.
double wrappedSum(double sum);

// Weights `first`, `first + step`, ... of the filter, as factors of such sums.
std::vector<double> weightsAt(const OperationContext& context, int64_t first, int64_t step,
                              int64_t count);

// Adds the bias, which may be omitted, applies the activation, rounds and stores. The context must
// outlive this object.
class LayerOutput {
 public:
  LayerOutput(const OperationContext& context, FusedActivation activation);

  void put(int64_t place, int64_t channel, double sum) const;

 private:
  const OperationContext& context_;
  const FusedActivation activation_;
  const QuantizedRange range_;  // limits of the stored results
};

}  // namespace hearth::ops::reference
