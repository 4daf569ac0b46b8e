// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "hal/device.h"

namespace hearth::cpu {

// What a model with one input and one output of `outputs` numbers computes. Empty, with a failure
// of the test, where it has no execution.
inline std::vector<float> runOnce(hal::PreparedModel& prepared, std::vector<float> input,
                                  size_t outputs) {
  std::vector<float> output(outputs);
  hal::Request request;
  request.inputs.resize(1);
  request.inputs[0].kind = hal::Argument::Kind::kPointer;
  request.inputs[0].pointer = input.data();
  request.inputs[0].length = input.size() * sizeof(float);
  request.outputs.resize(1);
  request.outputs[0].kind = hal::Argument::Kind::kPointer;
  request.outputs[0].pointer = output.data();
  request.outputs[0].length = output.size() * sizeof(float);
  auto execution = prepared.createExecution(std::move(request));
  EXPECT_TRUE(execution) << execution.error().toString();
  if (!execution) return {};
  const hal::ExecutionResult ran = (*execution)->compute(base::Deadline());
  EXPECT_TRUE(ran.status) << ran.status.error().toString();
  return output;
}

}  // namespace hearth::cpu
