/* SPDX-License-Identifier: Apache-2.0 */
/* Computes with an operation of a driver's extension, and goes on with one of NNAPI on another
 * device: the first Fibonacci numbers, and the same times 10.
 *
 *   HEARTH_DRIVER_PATH=FOLDER_OF_THE_MANIFEST ./fibonacci 12
 */
#include <android/NeuralNetworks.h>
#include <android/NeuralNetworksExtensions.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "extension.h"

/* Ends the program when a call fails; the library has said why on standard error. */
#define CHECK(call)                                            \
  do {                                                         \
    const int code = (call);                                   \
    if (code != ANEURALNETWORKS_NO_ERROR) {                    \
      fprintf(stderr, "%s gives the code %d.\n", #call, code); \
      exit(1);                                                 \
    }                                                          \
  } while (0)

enum { MOST = 92 };

/* Operands are numbered in the order in which they are added. */
enum { HOW_MANY, QUANTIZED, NUMBERS, TEN, NONE, PRODUCTS };

static ANeuralNetworksModel* makeModel(void) {
  ANeuralNetworksModel* model = NULL;
  CHECK(ANeuralNetworksModel_create(&model));
  ANeuralNetworksOperandType count = {0}, quantized = {0};
  ANeuralNetworksOperationType fibonacci = 0;
  CHECK(ANeuralNetworksModel_getExtensionOperandType(model, EXAMPLE_FIBONACCI_EXTENSION,
                                                     EXAMPLE_INT64, &count.type));
  CHECK(ANeuralNetworksModel_getExtensionOperandType(
      model, EXAMPLE_FIBONACCI_EXTENSION, EXAMPLE_TENSOR_QUANT64_ASYMM, &quantized.type));
  CHECK(ANeuralNetworksModel_getExtensionOperationType(model, EXAMPLE_FIBONACCI_EXTENSION,
                                                       EXAMPLE_FIBONACCI, &fibonacci));
  /* How many numbers there are is known only at run time. */
  const uint32_t unknown[] = {0};
  const uint32_t one[] = {1};
  quantized.dimensionCount = 1;
  quantized.dimensions = unknown;
  const ANeuralNetworksOperandType floats = {ANEURALNETWORKS_TENSOR_FLOAT32, 1, unknown, 0, 0};
  const ANeuralNetworksOperandType constant = {ANEURALNETWORKS_TENSOR_FLOAT32, 1, one, 0, 0};
  const ANeuralNetworksOperandType activation = {ANEURALNETWORKS_INT32, 0, NULL, 0, 0};
  CHECK(ANeuralNetworksModel_addOperand(model, &count));      /* HOW_MANY */
  CHECK(ANeuralNetworksModel_addOperand(model, &quantized));  /* QUANTIZED */
  CHECK(ANeuralNetworksModel_addOperand(model, &floats));     /* NUMBERS */
  CHECK(ANeuralNetworksModel_addOperand(model, &constant));   /* TEN */
  CHECK(ANeuralNetworksModel_addOperand(model, &activation)); /* NONE */
  CHECK(ANeuralNetworksModel_addOperand(model, &floats));     /* PRODUCTS */
  const ExampleQuant64 halves = {0.5, 100};
  CHECK(ANeuralNetworksModel_setOperandExtensionData(model, QUANTIZED, &halves, sizeof(halves)));
  const float ten = 10;
  const int32_t none = ANEURALNETWORKS_FUSED_NONE;
  CHECK(ANeuralNetworksModel_setOperandValue(model, TEN, &ten, sizeof(ten)));
  CHECK(ANeuralNetworksModel_setOperandValue(model, NONE, &none, sizeof(none)));

  const uint32_t howMany[] = {HOW_MANY};
  const uint32_t exact[] = {QUANTIZED};
  const uint32_t numbers[] = {NUMBERS};
  CHECK(ANeuralNetworksModel_addOperation(model, fibonacci, 1, howMany, 1, exact));
  CHECK(ANeuralNetworksModel_addOperation(model, fibonacci, 1, howMany, 1, numbers));
  const uint32_t multiplied[] = {NUMBERS, TEN, NONE};
  const uint32_t products[] = {PRODUCTS};
  CHECK(ANeuralNetworksModel_addOperation(model, ANEURALNETWORKS_MUL, 3, multiplied, 1, products));
  const uint32_t outputs[] = {QUANTIZED, PRODUCTS};
  CHECK(ANeuralNetworksModel_identifyInputsAndOutputs(model, 1, howMany, 2, outputs));
  CHECK(ANeuralNetworksModel_finish(model));
  return model;
}

int main(int argc, char** argv) {
  const int64_t count = argc > 1 ? atoi(argv[1]) : 12;
  ANeuralNetworksModel* model = makeModel();
  ANeuralNetworksCompilation* compilation = NULL;
  CHECK(ANeuralNetworksCompilation_create(model, &compilation));
  CHECK(ANeuralNetworksCompilation_finish(compilation));

  static int64_t quantized[MOST];
  static float products[MOST];
  ANeuralNetworksExecution* execution = NULL;
  CHECK(ANeuralNetworksExecution_create(compilation, &execution));
  CHECK(ANeuralNetworksExecution_setInput(execution, 0, NULL, &count, sizeof(count)));
  CHECK(ANeuralNetworksExecution_setOutput(execution, 0, NULL, quantized, sizeof(quantized)));
  CHECK(ANeuralNetworksExecution_setOutput(execution, 1, NULL, products, sizeof(products)));
  CHECK(ANeuralNetworksExecution_compute(execution));
  uint32_t length = 0;
  CHECK(ANeuralNetworksExecution_getOutputOperandDimensions(execution, 1, &length));
  for (uint32_t i = 0; i < length; ++i)
    printf("%" PRId64 " %.0f\n", (quantized[i] - 100) / 2, (double)products[i]);

  ANeuralNetworksExecution_free(execution);
  ANeuralNetworksCompilation_free(compilation);
  ANeuralNetworksModel_free(model);
  return 0;
}
