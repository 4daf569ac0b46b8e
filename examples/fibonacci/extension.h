/* SPDX-License-Identifier: Apache-2.0 */
/* The extension of the example driver, for the driver and for its clients. */
#ifndef EXAMPLE_FIBONACCI_EXTENSION_H
#define EXAMPLE_FIBONACCI_EXTENSION_H

#include <stdint.h>

#define EXAMPLE_FIBONACCI_EXTENSION "com.example.fibonacci"

/* Operand types. */
enum {
  /* A scalar: int64_t. */
  EXAMPLE_INT64 = 0,
  /* A tensor of int64_t, each of which stands for (element - zeroPoint) * scale. Its extension data
     is an ExampleQuant64. */
  EXAMPLE_TENSOR_QUANT64_ASYMM = 1
};

typedef struct {
  double scale; /* finite, above 0 */
  int64_t zeroPoint;
} ExampleQuant64;

/* Operations. */
enum {
  /* The first Fibonacci numbers: 1, 1, 2, 3, 5, ...
     Input 0: how many, an EXAMPLE_INT64 from 1 to 92.
     Output 0: TENSOR_FLOAT32 or EXAMPLE_TENSOR_QUANT64_ASYMM of that many elements. Computed as
     double, so that numbers above 2^53 are rounded. */
  EXAMPLE_FIBONACCI = 0
};

#endif
