// SPDX-License-Identifier: Apache-2.0
// RFFT2D of the extension: the discrete Fourier transform of real images, without the half of each
// row that is the other half's conjugate. Inputs: images (TENSOR_FLOAT32 [..., rows, columns]),
// height and width of the transform (two numbers, powers of two); images are cut to that size or
// padded with zeros at the end. Output: TENSOR_COMPLEX64 [..., height, width / 2 + 1]. Sums are
// double.
#include "ops/rfft_2d.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>
#include <utility>
#include <vector>

#include "ops/registry.h"
#include "ops/tensor_types.h"
#include "ops/validation.h"
#include "threads/parallel_ranges.h"

namespace hearth::ops {
namespace {

// std::complex checks each product for NaN and infinity, which takes longer than the product.
struct Complex {
  double real = 0;
  double imaginary = 0;
};

Complex operator+(Complex a, Complex b) {
  return {a.real + b.real, a.imaginary + b.imaginary};
}
Complex operator-(Complex a, Complex b) {
  return {a.real - b.real, a.imaginary - b.imaginary};
}
Complex operator*(Complex a, Complex b) {
  return {a.real * b.real - a.imaginary * b.imaginary, a.real * b.imaginary + a.imaginary * b.real};
}

// exp(-2 pi i k / size) for k below `count`. Quarter turns are exact, so that transforms of
// symmetric data stay real.
std::vector<Complex> unitRoots(size_t size, size_t count) {
  constexpr Complex kQuarters[] = {{1, 0}, {0, -1}, {-1, 0}, {0, 1}};
  std::vector<Complex> roots(count);
  for (size_t k = 0; k < count; ++k) {
    const double angle = -2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(size);
    roots[k] =
        4 * k % size == 0 ? kQuarters[4 * k / size % 4] : Complex{std::cos(angle), std::sin(angle)};
  }
  return roots;
}

// Transforms of one length, a power of two. Thread-safe.
class Fourier {
 public:
  explicit Fourier(size_t size) : size_(size), roots_(unitRoots(size, size / 2)) {
    places_.resize(size);
    for (size_t i = 1; i < size; ++i) places_[i] = places_[i / 2] / 2 + (i % 2 == 0 ? 0 : size / 2);
  }

  // In place, `size` elements.
  void transform(Complex* values) const {
    for (size_t i = 0; i < size_; ++i)
      if (i < places_[i]) std::swap(values[i], values[places_[i]]);
    for (size_t half = 1; half < size_; half *= 2) {
      const size_t step = size_ / (2 * half);
      for (size_t first = 0; first < size_; first += 2 * half)
        for (size_t i = 0; i < half; ++i) {
          const Complex even = values[first + i];
          const Complex odd = values[first + half + i] * roots_[i * step];
          values[first + i] = even + odd;
          values[first + half + i] = even - odd;
        }
    }
  }

 private:
  size_t size_;
  std::vector<Complex> roots_;
  std::vector<size_t> places_;  // index of each element in bit-reversed order
};

// Transforms of rows of real numbers, each by a complex transform of half its length. Thread-safe.
class RealFourier {
 public:
  explicit RealFourier(size_t size)
      : size_(size), half_(std::max<size_t>(size / 2, 1)), roots_(unitRoots(size, size / 2 + 1)) {}

  // Transforms a row of `size` real numbers in place. `values` has size / 2 + 1 elements; the first
  // size / 2 hold the row, two numbers in each.
  void transform(Complex* values) const {
    if (size_ == 1) return;
    const size_t half = size_ / 2;
    half_.transform(values);
    values[half] = values[0];
    for (size_t k = 0; k <= half / 2; ++k) {
      const Complex a = values[k];
      const Complex b = values[half - k];
      values[k] = combine(a, b, roots_[k]);
      values[half - k] = combine(b, a, roots_[half - k]);
    }
  }

 private:
  // Separates the transforms of the even and the odd elements, which were computed as one, and
  // combines them.
  static Complex combine(Complex value, Complex mirrored, Complex root) {
    const Complex conjugate = {mirrored.real, -mirrored.imaginary};
    const Complex even = value + conjugate;
    const Complex odd = value - conjugate;
    const Complex turned = Complex{odd.imaginary, -odd.real} * root;
    return {(even.real + turned.real) / 2, (even.imaginary + turned.imaginary) / 2};
  }

  size_t size_;
  Fourier half_;
  std::vector<Complex> roots_;
};

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(2, 1));
  HEARTH_TRY(signature.inputTensor(0, OperandType::kTensorFloat32, 2, kMaximumRank));
  HEARTH_TRY(signature.inputType(1, kIndexTensors));
  return signature.outputType(0, OperandType::kTensorComplex64);
}

Status prepare(OperationContext& context) {
  HEARTH_ASSIGN(RfftParameters parameters, parseRfft(context));
  return context.setOutputDimensions(0, std::move(parameters.outputDimensions));
}

void transformImage(const RfftParameters& p, const RealFourier& row, const Fourier& column,
                    const float* image, float* output) {
  const size_t kept = p.width / 2 + 1;
  const size_t rows = std::min(p.rows, p.height);
  const size_t columns = std::min(p.columns, p.width);
  std::vector<Complex> spectrum(p.height * kept);
  for (size_t y = 0; y < rows; ++y) {
    Complex* values = &spectrum[y * kept];
    for (size_t x = 0; x < columns; ++x)
      (x % 2 == 0 ? values[x / 2].real : values[x / 2].imaginary) = image[y * p.columns + x];
    row.transform(values);
  }
  std::vector<Complex> values(p.height);
  for (size_t x = 0; x < kept && p.height > 1; ++x) {
    for (size_t y = 0; y < p.height; ++y) values[y] = spectrum[y * kept + x];
    column.transform(values.data());
    for (size_t y = 0; y < p.height; ++y) spectrum[y * kept + x] = values[y];
  }
  for (const Complex& value : spectrum) {
    *output++ = static_cast<float>(value.real);
    *output++ = static_cast<float>(value.imaginary);
  }
}

Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const RfftParameters p, parseRfft(context));
  const float* input = context.inputs[0].as<float>();
  float* output = context.outputs[0].as<float>();
  const uint64_t outputSize = p.height * (p.width / 2 + 1);
  const uint64_t images = context.outputs[0].elementCount() / outputSize;
  if (images == 0) return {};
  const RealFourier row(p.width);
  const Fourier column(p.height);
  threads::forRanges(context.threadPool, images, threads::grainOf(outputSize),
                     [&](uint64_t begin, uint64_t end) {
                       for (uint64_t i = begin; i < end; ++i)
                         transformImage(p, row, column, input + i * p.rows * p.columns,
                                        output + i * 2 * outputSize);
                     });
  return {};
}

}  // namespace

Result<RfftParameters> parseRfft(const OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 2, 1));
  HEARTH_TRY(requireRank(context, 0, 2, kMaximumRank));
  HEARTH_ASSIGN(const std::vector<int64_t> lengths, context.intVector(1));
  if (lengths.size() != 2)
    return fail(ErrorCode::kBadData, "{} has {} lengths, it must have two.", context.describe(),
                lengths.size());
  RfftParameters p;
  p.outputDimensions = context.inputs[0].dimensions;
  const size_t rank = p.outputDimensions.size();
  p.rows = p.outputDimensions[rank - 2];
  p.columns = p.outputDimensions[rank - 1];
  for (const int64_t length : lengths)
    if (length <= 0 || length > INT32_MAX || !std::has_single_bit(static_cast<uint64_t>(length)))
      return fail(ErrorCode::kBadData, "The length {} of {} is no power of two below 2^31.", length,
                  context.describe());
  p.height = static_cast<size_t>(lengths[0]);
  p.width = static_cast<size_t>(lengths[1]);
  p.outputDimensions[rank - 2] = static_cast<uint32_t>(p.height);
  p.outputDimensions[rank - 1] = static_cast<uint32_t>(p.width / 2 + 1);
  return p;
}

const OperationDefinition kRfft2dOperation = {OperationType::kRfft2d, validate, prepare, execute};

}  // namespace hearth::ops
