// SPDX-License-Identifier: Apache-2.0
// Numbers as they are stored, made numbers of another type: TO_F32, TO_F16, TO_I32, TO_U8, TO_I8.
// Real numbers are cut towards zero and saturate, and NaN becomes 0; integers keep their lower bits,
// but those without a sign saturate.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"

layout(local_size_x = ROW_GROUP) in;

#if defined(TO_F32)
#define RESULT float
#elif defined(TO_F16)
#define RESULT float16_t
#elif defined(TO_I32)
#define RESULT int
#elif defined(TO_U8)
#define RESULT uint8_t
#else
#define RESULT int8_t
#endif

// Whether the result is a truth value, 0 or 1.
layout(constant_id = 0) const uint kIsTruth = 0;

layout(binding = 0) readonly buffer InputBuffer { DATA inputs[]; };
layout(binding = 1) writeonly buffer OutputBuffer { RESULT outputs[]; };

layout(push_constant) uniform Parameters { uint count; } p;

// The greatest float32 number below 2^31 is 2147483520.
int integerOf(float value, int lowest, int highest) {
  if (value != value) return 0;
  if (value >= 2147483648.0 || int(min(value, 2147483520.0)) > highest) return highest;
  return max(int(max(value, -2147483648.0)), lowest);
}

#if defined(REAL)
#define NUMBER float
#else
#define NUMBER int
#endif
#if defined(TO_F32) || defined(TO_F16)
float convert(NUMBER value) { return float(value); }
#else
int convert(NUMBER value) {
  if (kIsTruth != 0) return value != NUMBER(0) ? 1 : 0;
#if defined(REAL) && defined(TO_I32)
  return integerOf(value, -2147483647 - 1, 2147483647);
#elif defined(REAL) && defined(TO_U8)
  return integerOf(value, 0, 255);
#elif defined(REAL)
  return integerOf(value, -128, 127);
#elif defined(TO_U8)
  return clamp(value, 0, 255);
#elif defined(TO_I8)
  return bitfieldExtract(value, 0, 8);
#else
  return value;
#endif
}
#endif

void main() {
  const uint element = rowElement();
  if (element >= p.count) return;
#if defined(REAL)
  const float value = float(inputs[element]);
#else
  const int value = int(STORED(inputs[element]));
#endif
#if defined(TO_U8)
  outputs[element] = RESULT(uint(convert(value)));
#else
  outputs[element] = RESULT(convert(value));
#endif
}
