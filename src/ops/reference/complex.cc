// SPDX-License-Identifier: Apache-2.0
// Complex numbers and Fourier transforms.
#include <cmath>
#include <complex>
#include <numbers>
#include <vector>

#include "ops/reference/elements.h"
#include "ops/reference/kernels.h"
#include "ops/rfft_2d.h"

namespace hearth::ops::reference {
namespace {

using Complex = std::complex<double>;

// The transform of a power of two of numbers: combines the transforms of the even and of the odd
// elements.
std::vector<Complex> transformed(const std::vector<Complex>& values) {
  const size_t size = values.size();
  if (size == 1) return values;
  std::vector<Complex> even;
  std::vector<Complex> odd;
  for (size_t i = 0; i < size; ++i) (i % 2 == 0 ? even : odd).push_back(values[i]);
  even = transformed(even);
  odd = transformed(odd);
  std::vector<Complex> result(size);
  for (size_t k = 0; k < size; ++k) {
    const double turn = static_cast<double>(k) / static_cast<double>(size);
    const Complex root = std::polar(1.0, -2 * std::numbers::pi * turn);
    result[k] = even[k % (size / 2)] + root * odd[k % (size / 2)];
  }
  return result;
}

}  // namespace

Status takeComplexPart(const OperationContext& context) {
  const OperationType type = context.operation->type;
  for (int64_t i = 0; i < countOf(context.outputs[0].dimensions); ++i) {
    const double real = loadAs<float>(context.inputs[0], 2 * i);
    const double imaginary = loadAs<float>(context.inputs[0], 2 * i + 1);
    const double value = type == OperationType::kReal   ? real
                         : type == OperationType::kImag ? imaginary
                                                        : std::hypot(real, imaginary);
    putReal(context.outputs[0], i, value);
  }
  return {};
}

Status transformFourier(const OperationContext& context) {
  HEARTH_ASSIGN(const RfftParameters p, parseRfft(context));
  const size_t kept = p.width / 2 + 1;
  const auto images = static_cast<size_t>(countOf(p.outputDimensions)) / (p.height * kept);
  for (size_t image = 0; image < images; ++image) {
    std::vector<std::vector<Complex>> rows;
    for (size_t y = 0; y < p.height; ++y) {
      std::vector<Complex> row(p.width);
      for (size_t x = 0; x < p.width && x < p.columns && y < p.rows; ++x)
        row[x] = loadAs<float>(context.inputs[0],
                               static_cast<int64_t>((image * p.rows + y) * p.columns + x));
      rows.push_back(transformed(row));
    }
    for (size_t x = 0; x < kept; ++x) {
      std::vector<Complex> column;
      for (size_t y = 0; y < p.height; ++y) column.push_back(rows[y][x]);
      column = transformed(column);
      for (size_t y = 0; y < p.height; ++y) {
        const auto place = static_cast<int64_t>((image * p.height + y) * kept + x);
        storeAs(context.outputs[0], 2 * place, static_cast<float>(column[y].real()));
        storeAs(context.outputs[0], 2 * place + 1, static_cast<float>(column[y].imag()));
      }
    }
  }
  return {};
}

}  // namespace hearth::ops::reference
