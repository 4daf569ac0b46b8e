/* SPDX-License-Identifier: Apache-2.0 */
/* An operator for a custom operation of .tflite files: "Decay" weights the numbers of a float32
 * tensor by rate^0, rate^1, ... along its last dimension. The rate is the operation's only option,
 * a float32.
 *
 *   cc -shared -fPIC custom_operator.c -lhearth -o custom_operator.so
 *   hearth run model.tflite --input input.npy --custom-operators custom_operator.so
 *
 * A program calls the function at the end itself, or hearth_custom_operator_register directly.
 */
#include <hearth/hearth.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hearth_status refuse(hearth_custom_call* call, const char* why) {
  snprintf(call->message, HEARTH_CUSTOM_MESSAGE_BYTES, "%s", why);
  return HEARTH_BAD_DATA;
}

static hearth_status init(hearth_custom_call* call) {
  if (call->option_bytes != sizeof(float)) return refuse(call, "The options are not one float32.");
  float* rate = malloc(sizeof(float));
  if (rate == NULL) return HEARTH_OUT_OF_MEMORY;
  memcpy(rate, call->options, sizeof(float));
  call->state = rate;
  return HEARTH_OK;
}

static void release(hearth_custom_call* call) {
  free(call->state);
}

/* The output has the shape of the input. The file comes from anywhere: check what compute uses. */
static hearth_status prepare(hearth_custom_call* call) {
  if (call->input_count != 1 || call->output_count != 1 || call->inputs[0] == NULL)
    return refuse(call, "There must be one input and one output.");
  const hearth_custom_tensor* input = call->inputs[0];
  hearth_custom_tensor* output = call->outputs[0];
  if (input->type != HEARTH_TYPE_FLOAT32 || input->rank == 0)
    return refuse(call, "The input must be float32 and have a dimension.");
  output->type = HEARTH_TYPE_FLOAT32;
  output->rank = input->rank;
  memcpy(output->dimensions, input->dimensions, sizeof(output->dimensions));
  return HEARTH_OK;
}

static hearth_status compute(hearth_custom_call* call) {
  const hearth_custom_tensor* input = call->inputs[0];
  const float rate = *(const float*)call->state;
  const float* from = input->data;
  float* to = call->outputs[0]->data;
  const size_t count = (size_t)(input->byte_size / sizeof(float));
  const uint32_t row = input->dimensions[input->rank - 1];
  float weight = 1;
  for (size_t i = 0; i < count; ++i) {
    weight = i % row == 0 ? 1 : weight * rate;
    to[i] = from[i] * weight;
  }
  return HEARTH_OK;
}

HEARTH_EXPORT hearth_status hearth_register_custom_operators(hearth_error** error) {
  const hearth_custom_operator decay = {.size = sizeof(hearth_custom_operator),
                                        .name = "Decay",
                                        .version = 1,
                                        .init = init,
                                        .free = release,
                                        .prepare = prepare,
                                        .compute = compute};
  return hearth_custom_operator_register(&decay, error);
}
