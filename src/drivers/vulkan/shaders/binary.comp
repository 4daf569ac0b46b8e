// SPDX-License-Identifier: Apache-2.0
// Arithmetic of two inputs, element by element.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"
#include "broadcast.glsl"

layout(local_size_x = ROW_GROUP) in;

// The values of BinaryKind in lowering/elementwise.cc.
layout(constant_id = 0) const uint kKind = 0;

layout(binding = 0) readonly buffer LeftBuffer { DATA lefts[]; };
layout(binding = 1) readonly buffer RightBuffer { DATA rights[]; };
layout(binding = 2) writeonly buffer OutputBuffer { DATA outputs[]; };

#if defined(REAL)
// pow() of GLSL has no value for negative bases.
float powerOf(float base, float exponent) {
  if (exponent == 0.0 || base == 1.0) return 1.0;
  if (base == 0.0) return exponent < 0.0 ? 1.0 / 0.0 : 0.0;
  const float magnitude = pow(abs(base), exponent);
  if (base > 0.0) return magnitude;
  if (floor(exponent) != exponent) return intBitsToFloat(0x7fc00000);
  return mod(exponent, 2.0) != 0.0 ? -magnitude : magnitude;
}
#endif

SUM combine(SUM left, SUM right) {
  switch (kKind) {
    case 0: return left + right;
    case 1: return left - right;
    case 2: return left * right;
    case 3: return left != left || right != right ? left + right : max(left, right);
    case 4: return left != left || right != right ? left + right : min(left, right);
    case 5: return (left - right) * (left - right);
#if defined(REAL)
    case 6: return left / right;
    case 7: return left >= 0.0 ? left : left * right;
    default: return powerOf(left, right);
#else
    default: return 0;
#endif
  }
}

void main() {
  const uint element = rowElement();
  if (element >= p.count) return;
  uint left, right;
  operandsOf(element, left, right);
  const SUM result = combine(SUM(lefts[left]), SUM(rights[right]));
#if defined(REAL)
  outputs[element] = DATA(clampReal(result, intBitsToFloat(p.lowest), intBitsToFloat(p.highest)));
#else
  outputs[element] = DATA(clamp(result, p.lowest, p.highest));
#endif
}
