// SPDX-License-Identifier: Apache-2.0
// What the shaders of several operations share. A shader is compiled once for each data type, which
// a definition names: DATA_F32, DATA_F16, DATA_U8, DATA_I8 (of quantised numbers) or others.
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_8bit_storage : require

#if defined(DATA_F32)
#define DATA float
#define REAL
#elif defined(DATA_F16)
#define DATA float16_t
#define REAL
#elif defined(DATA_U8)
#define DATA uint8_t
#define STORED uint
#elif defined(DATA_I8)
#define DATA int8_t
#define STORED int
#elif defined(DATA_I32)
#define DATA int
#define STORED int
#elif defined(DATA_BITS8)
#define DATA uint8_t
#define STORED uint
#elif defined(DATA_BITS16)
#define DATA uint16_t
#define STORED uint
#elif defined(DATA_BITS32)
#define DATA uint
#define STORED uint
#endif

// Sums are float32 for real numbers, and int32, which wraps, for quantised ones.
#if defined(REAL)
#define SUM float
#else
#define SUM int
#endif

// NaN passes unchanged.
float clampReal(float value, float lowest, float highest) {
  const float raised = value < lowest ? lowest : value;
  return raised > highest ? highest : raised;
}

// Dispatches over a row of elements have so many invocations in each group.
#define ROW_GROUP 64
// The element of the invocation. A row that needs more groups than x may have goes on in y.
uint rowElement() {
  return gl_GlobalInvocationID.y * (gl_NumWorkGroups.x * ROW_GROUP) + gl_GlobalInvocationID.x;
}
