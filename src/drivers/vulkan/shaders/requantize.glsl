// SPDX-License-Identifier: Apache-2.0
// Sums of quantised products as numbers of the output's scale, to the last bit what
// round(double(sum) * factor) is, without 64-bit numbers. `factor` is mantissa * 2^exponent; its
// mantissa of 53 bits is (high, low).

struct Factor {
  uint low;
  uint high;
  int exponent;
};

// Any value that no zero point brings back into the range of 8 bits.
const int kBeyond = 1 << 20;

int scaledMagnitude(uint sum, Factor factor) {
  if (sum == 0) return 0;
  // The product has up to 85 bits: p2, p1, p0.
  uint p0, p1, p2, upperHigh, upperLow, carry;
  umulExtended(sum, factor.low, p1, p0);
  umulExtended(sum, factor.high, upperHigh, upperLow);
  p1 = uaddCarry(p1, upperLow, carry);
  p2 = upperHigh + carry;
  int exponent = factor.exponent;
  // A double has 53 bits: the product is first rounded to them, half to even.
  const int bits = p2 != 0 ? 65 + findMSB(p2) : 33 + findMSB(p1);
  const int surplus = bits - 53;
  if (surplus > 0) {
    const uint dropped = p0 & ((1u << surplus) - 1);
    const uint halfStep = 1u << (surplus - 1);
    p0 = (p0 >> surplus) | (p1 << (32 - surplus));
    p1 = (p1 >> surplus) | (p2 << (32 - surplus));
    if (dropped > halfStep || (dropped == halfStep && (p0 & 1) != 0)) {
      p0 = uaddCarry(p0, 1, carry);
      p1 += carry;
    }
    exponent += surplus;
  }
  // Now half away from zero, which for a magnitude is half up. The product is at least 2^52.
  const int shift = -exponent;
  if (shift <= 32) return kBeyond;
  if (shift > 54) return 0;
  return int((p1 + (1u << (shift - 33))) >> (shift - 32));
}

int requantize(int sum, Factor factor, int zeroPoint, int lowest, int highest) {
  const int magnitude = scaledMagnitude(uint(abs(sum)), factor);
  return clamp((sum < 0 ? -magnitude : magnitude) + zeroPoint, lowest, highest);
}
