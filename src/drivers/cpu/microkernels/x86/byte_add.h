// SPDX-License-Identifier: Apache-2.0
// Sums of two 8-bit tensors, with XNNPACK's very results. XNNPACK multiplies in 32 bits, which
// takes these CPUs two steps; here each factor is a multiple of 256 and a rest, with which numbers
// are multiplied in 16 and in 8 bits, those of both tensors at once.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hearth::cpu {

// Whether this CPU has the instructions. Thread-safe.
bool hasByteAdd();

// sum[i] = clamp(zero point + round(scaleA * (a[i] - zero point of a) + the same of b)) to the
// range of the type, with scales in fixed point.
class ByteAdd {
 public:
  struct Quantization {
    float scale = 0;
    int32_t zeroPoint = 0;
  };
  // `isSigned`: int8, else uint8. The scales of `a` and `b` divided by that of `sum` have to be at
  // least 2^-10 and below 2^8.
  ByteAdd(const Quantization& a, const Quantization& b, const Quantization& sum, bool isSigned);

  // Adds `count` numbers. `sum` may be `a` or `b`. Requires hasByteAdd().
  void run(const uint8_t* a, const uint8_t* b, size_t count, uint8_t* sum) const;

 private:
  friend struct ByteAddOnAvx512;
  friend struct ByteAddOnAvx2;

  // Two neighbouring words: of `a` and of `b`.
  using Pair = uint32_t;

  Pair multiples_ = 0;  // of 256 in the factors
  Pair rests_ = 0;      // at least 0 and below 256
  int32_t bias_ = 0;
  int32_t shift_ = 0;
  int16_t zeroPoint_ = 0;  // of the sum as int8
  uint8_t flip_ = 0;       // makes numbers int8 by exclusive-or
};

}  // namespace hearth::cpu
