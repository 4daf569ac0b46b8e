// SPDX-License-Identifier: Apache-2.0
#include "tools/conformance/compare.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace hearth::conformance {
namespace {

using graph::OperandType;

template <typename T>
T elementAt(std::span<const uint8_t> bytes, size_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
Status compareElements(const Tolerance& tolerance, std::span<const uint8_t> expected,
                       std::span<const uint8_t> actual) {
  const size_t count = expected.size() / sizeof(T);
  size_t mismatches = 0;
  size_t first = 0;
  for (size_t i = 0; i < count; ++i) {
    const auto want = static_cast<double>(elementAt<T>(expected, i));
    const auto have = static_cast<double>(elementAt<T>(actual, i));
    const double limit = static_cast<double>(tolerance.absolute) +
                         static_cast<double>(tolerance.relative) * std::fabs(want);
    // A NaN fails every comparison. Infinity matches itself alone: parts of it are infinite, too.
    if (want == have || (std::isfinite(want) && std::fabs(have - want) <= limit)) continue;
    if (mismatches++ == 0) first = i;
  }
  if (mismatches == 0) return {};
  return fail(ErrorCode::kBadData,
              "{} of {} elements differ; element {} is {}, {} is expected (tolerance {} + {} of "
              "it).",
              mismatches, count, first, static_cast<double>(elementAt<T>(actual, first)),
              static_cast<double>(elementAt<T>(expected, first)), tolerance.absolute,
              tolerance.relative);
}

}  // namespace

Status compareValues(const Case& testCase, const CaseValue& expected,
                     std::span<const uint8_t> actual) {
  if (actual.size() != expected.data.size())
    return fail(ErrorCode::kBadData, "The output has {} bytes, {} are expected.", actual.size(),
                expected.data.size());
  const auto& tolerances = testCase.tolerances;
  switch (expected.type) {
    case OperandType::kTensorFloat32:
      return compareElements<float>(tolerances[0], expected.data, actual);
    case OperandType::kTensorFloat16:
      return compareElements<_Float16>(tolerances[1], expected.data, actual);
    case OperandType::kTensorInt32:
    case OperandType::kInt32:
      return compareElements<int32_t>(tolerances[2], expected.data, actual);
    case OperandType::kTensorQuant8Asymm:
      return compareElements<uint8_t>(tolerances[3], expected.data, actual);
    case OperandType::kTensorQuant8AsymmSigned:
      return compareElements<int8_t>(tolerances[4], expected.data, actual);
    case OperandType::kTensorQuant8Symm:
      return compareElements<int8_t>(tolerances[5], expected.data, actual);
    case OperandType::kTensorQuant16Asymm:
      return compareElements<uint16_t>(tolerances[6], expected.data, actual);
    case OperandType::kTensorQuant16Symm:
      return compareElements<int16_t>(tolerances[7], expected.data, actual);
    case OperandType::kTensorBool8:
      return compareElements<uint8_t>({}, expected.data, actual);
    default:
      return fail(ErrorCode::kBadData, "Outputs of type {} cannot be compared.",
                  graph::nameOf(expected.type));
  }
}

Status compareMultinomial(const Case& testCase, const CaseValue& logits,
                          std::span<const uint8_t> actual) {
  const size_t classes = logits.dimensions.empty() ? 0 : logits.dimensions.back();
  const bool isHalf = logits.type == OperandType::kTensorFloat16;
  const size_t samples = actual.size() / sizeof(int32_t);
  if (classes == 0 || samples == 0 || logits.data.size() / (isHalf ? 2 : 4) < classes)
    return fail(ErrorCode::kBadData, "{} samples of {} classes cannot be judged.", samples,
                classes);
  std::vector<double> probabilities(classes);
  for (size_t i = 0; i < classes; ++i)
    probabilities[i] = isHalf ? static_cast<double>(elementAt<_Float16>(logits.data, i))
                              : static_cast<double>(elementAt<float>(logits.data, i));
  const double highest = *std::max_element(probabilities.begin(), probabilities.end());
  double sum = 0.0;
  for (double& value : probabilities) sum += value = std::exp(value - highest);
  std::vector<size_t> counts(classes, 0);
  for (size_t i = 0; i < samples; ++i) {
    const auto sample = elementAt<int32_t>(actual, i);
    if (sample < 0 || static_cast<size_t>(sample) >= classes)
      return fail(ErrorCode::kBadData, "Sample {} is {}, there are {} classes.", i, sample,
                  classes);
    ++counts[static_cast<size_t>(sample)];
  }
  for (size_t i = 0; i < classes; ++i) {
    const double want = probabilities[i] / sum;
    const double have = static_cast<double>(counts[i]) / static_cast<double>(samples);
    if (std::fabs(have - want) > static_cast<double>(testCase.multinomialTolerance))
      return fail(ErrorCode::kBadData, "Class {} has the frequency {}, {} is expected.", i, have,
                  want);
  }
  return {};
}

}  // namespace hearth::conformance
