/* SPDX-License-Identifier: Apache-2.0 */
/* The Neural Networks API in one page: output = max(0, a + b * 3), over whatever devices there are.
 *
 *   cc nnapi_hello.c -lneuralnetworks -o nnapi_hello && ./nnapi_hello
 */
#include <android/NeuralNetworks.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Ends the program when a call fails; the library has said why on standard error. */
#define CHECK(call)                                            \
  do {                                                         \
    const int code = (call);                                   \
    if (code != ANEURALNETWORKS_NO_ERROR) {                    \
      fprintf(stderr, "%s gives the code %d.\n", #call, code); \
      exit(1);                                                 \
    }                                                          \
  } while (0)

enum { COUNT = 4 };

static void listDevices(void) {
  uint32_t count = 0;
  CHECK(ANeuralNetworks_getDeviceCount(&count));
  for (uint32_t i = 0; i < count; ++i) {
    ANeuralNetworksDevice* device = NULL;
    const char* name = NULL;
    int64_t level = 0;
    CHECK(ANeuralNetworks_getDevice(i, &device));
    CHECK(ANeuralNetworksDevice_getName(device, &name));
    CHECK(ANeuralNetworksDevice_getFeatureLevel(device, &level));
    printf("device %" PRIu32 ": %s, feature level %" PRId64 "\n", i, name, level);
  }
}

/* Operands are numbered in the order in which they are added. */
enum { A, B, THREE, NONE, PRODUCT, RELU, SUM };

static ANeuralNetworksModel* makeModel(void) {
  const uint32_t dimensions[] = {COUNT};
  const uint32_t one[] = {1};
  const ANeuralNetworksOperandType tensor = {ANEURALNETWORKS_TENSOR_FLOAT32, 1, dimensions, 0, 0};
  const ANeuralNetworksOperandType constant = {ANEURALNETWORKS_TENSOR_FLOAT32, 1, one, 0, 0};
  const ANeuralNetworksOperandType activation = {ANEURALNETWORKS_INT32, 0, NULL, 0, 0};
  const float three = 3;
  const int32_t none = ANEURALNETWORKS_FUSED_NONE;
  const int32_t relu = ANEURALNETWORKS_FUSED_RELU;

  ANeuralNetworksModel* model = NULL;
  CHECK(ANeuralNetworksModel_create(&model));
  CHECK(ANeuralNetworksModel_addOperand(model, &tensor));     /* A */
  CHECK(ANeuralNetworksModel_addOperand(model, &tensor));     /* B */
  CHECK(ANeuralNetworksModel_addOperand(model, &constant));   /* THREE */
  CHECK(ANeuralNetworksModel_addOperand(model, &activation)); /* NONE */
  CHECK(ANeuralNetworksModel_addOperand(model, &tensor));     /* PRODUCT */
  CHECK(ANeuralNetworksModel_addOperand(model, &activation)); /* RELU */
  CHECK(ANeuralNetworksModel_addOperand(model, &tensor));     /* SUM */
  CHECK(ANeuralNetworksModel_setOperandValue(model, THREE, &three, sizeof(three)));
  CHECK(ANeuralNetworksModel_setOperandValue(model, NONE, &none, sizeof(none)));
  CHECK(ANeuralNetworksModel_setOperandValue(model, RELU, &relu, sizeof(relu)));

  const uint32_t multiplied[] = {B, THREE, NONE};
  const uint32_t product[] = {PRODUCT};
  CHECK(ANeuralNetworksModel_addOperation(model, ANEURALNETWORKS_MUL, 3, multiplied, 1, product));
  const uint32_t added[] = {A, PRODUCT, RELU};
  const uint32_t sum[] = {SUM};
  CHECK(ANeuralNetworksModel_addOperation(model, ANEURALNETWORKS_ADD, 3, added, 1, sum));
  const uint32_t inputs[] = {A, B};
  CHECK(ANeuralNetworksModel_identifyInputsAndOutputs(model, 2, inputs, 1, sum));
  CHECK(ANeuralNetworksModel_finish(model));
  return model;
}

int main(void) {
  listDevices();
  ANeuralNetworksModel* model = makeModel();
  ANeuralNetworksCompilation* compilation = NULL;
  CHECK(ANeuralNetworksCompilation_create(model, &compilation));
  CHECK(ANeuralNetworksCompilation_finish(compilation));

  const float a[COUNT] = {1, 2, 3, 4};
  const float b[COUNT] = {10, -1, 0.5f, -2};
  float sum[COUNT] = {0};
  ANeuralNetworksExecution* execution = NULL;
  CHECK(ANeuralNetworksExecution_create(compilation, &execution));
  CHECK(ANeuralNetworksExecution_setInput(execution, 0, NULL, a, sizeof(a)));
  CHECK(ANeuralNetworksExecution_setInput(execution, 1, NULL, b, sizeof(b)));
  CHECK(ANeuralNetworksExecution_setOutput(execution, 0, NULL, sum, sizeof(sum)));
  CHECK(ANeuralNetworksExecution_compute(execution));
  for (int i = 0; i < COUNT; ++i) printf("max(0, %g + %g * 3) = %g\n", a[i], b[i], sum[i]);

  ANeuralNetworksExecution_free(execution);
  ANeuralNetworksCompilation_free(compilation);
  ANeuralNetworksModel_free(model);
  return 0;
}
