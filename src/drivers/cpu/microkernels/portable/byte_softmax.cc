// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/microkernels/portable/byte_softmax.h"

#include "base/vector_dispatch.h"

namespace hearth::cpu {

void distancesFromGreatest(const uint8_t* source, uint8_t* distances, size_t size, uint8_t flip) {
  base::onWidestVectors([=]() HEARTH_INLINE {
    uint8_t greatest = 0;
    for (size_t i = 0; i < size; ++i) {
      const auto value = static_cast<uint8_t>(source[i] ^ flip);
      greatest = value > greatest ? value : greatest;
    }
#pragma GCC ivdep
    for (size_t i = 0; i < size; ++i)
      distances[i] = static_cast<uint8_t>(greatest - (source[i] ^ flip));
  });
}

double sumOfPowers(const float* powers, const uint8_t* distances, size_t size) {
  // Several sums, so that no addition waits for the previous one.
  constexpr size_t kSums = 8;
  double sums[kSums] = {};
  size_t i = 0;
  for (; i + kSums <= size; i += kSums)
    for (size_t j = 0; j < kSums; ++j) sums[j] += static_cast<double>(powers[distances[i + j]]);
  for (; i < size; ++i) sums[0] += static_cast<double>(powers[distances[i]]);
  double sum = 0.0;
  for (const double part : sums) sum += part;
  return sum;
}

}  // namespace hearth::cpu
