// SPDX-License-Identifier: Apache-2.0
// Functions of one real number.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"

layout(local_size_x = ROW_GROUP) in;

// The values of UnaryKind in lowering/elementwise.cc.
layout(constant_id = 0) const uint kKind = 0;

layout(binding = 0) readonly buffer InputBuffer { DATA inputs[]; };
layout(binding = 1) writeonly buffer OutputBuffer { DATA outputs[]; };

layout(push_constant) uniform Parameters {
  uint count;
  float first, second;  // of clamp: the limits; of ELU: alpha; of a soft cap: the cap
} p;

// exp(-|x|) cannot overflow.
float logistic(float x) {
  const float power = exp(-abs(x));
  return (x < 0.0 ? power : 1.0) / (1.0 + power);
}

float hyperbolicTangent(float x) {
  // 2 * logistic(2 * x) - 1 loses all digits near 0.
  if (abs(x) < 0.125) {
    const float square = x * x;
    return x * (1.0 - square * (1.0 / 3.0 - square * (2.0 / 15.0 - square * (17.0 / 315.0))));
  }
  const float power = exp(-2.0 * abs(x));
  const float magnitude = (1.0 - power) / (1.0 + power);
  return x < 0.0 ? -magnitude : magnitude;
}

// 1 - erf(x) of x >= 0. The polynomial was fitted to (1 - erf(x)) * exp(x * x), of which it is off
// by 1e-7 at most, so that small results keep their digits.
float errorComplement(float x) {
  const float t = 1.0 / (1.0 + 0.33 * x);
  float sum = -0.135927961;
  sum = sum * t + 0.462684698;
  sum = sum * t - 0.355432723;
  sum = sum * t + 0.412535703;
  sum = sum * t + 0.045013902;
  sum = sum * t + 0.201922781;
  sum = sum * t + 0.182837421;
  sum = sum * t + 0.186366097;
  return sum * t * exp(-x * x);
}

// 1 + erf(x / sqrt(2)) loses all digits of a negative x if erf is computed first.
float gelu(float x) {
  const float rest = errorComplement(abs(x) * 0.70710678);
  return 0.5 * x * (x < 0.0 ? rest : 2.0 - rest);
}

float compute(float x) {
  switch (kKind) {
    case 0: return clampReal(x, p.first, p.second);
    case 1: return logistic(x);
    case 2: return hyperbolicTangent(x);
    case 3: return x * clamp(x + 3.0, 0.0, 6.0) / 6.0;
    case 4: return x >= 0.0 ? x : p.first * (exp(x) - 1.0);
    case 5: return exp(x);
    case 6: return log(x);
    case 7: return sqrt(x);
    case 8: return inversesqrt(x);
    case 9: return abs(x);
    case 10: return -x;
    case 11: return floor(x);
    case 12: return sin(x);
    case 13: return cos(x);
    case 14: return ceil(x);
    case 15: return roundEven(x);
    case 16: return gelu(x);
    case 17: return x * logistic(1.5957691 * (x + 0.044715 * x * x * x));
    case 18: return p.first * hyperbolicTangent(x / p.first);
    default: return x > 0.0 ? 1.0 : x < 0.0 ? -1.0 : x;
  }
}

void main() {
  const uint element = rowElement();
  if (element >= p.count) return;
  outputs[element] = DATA(compute(float(inputs[element])));
}
