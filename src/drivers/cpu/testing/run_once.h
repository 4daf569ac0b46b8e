// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <span>
#include <utility>
#include <vector>

#include "hal/device.h"

namespace hearth::cpu {

// Runs a model with one input and one output of numbers.
inline Status tryOnce(hal::PreparedModel& prepared, std::span<float> input,
                      std::span<float> output) {
  hal::Request request;
  request.inputs.resize(1);
  request.inputs[0].kind = hal::Argument::Kind::kPointer;
  request.inputs[0].pointer = input.data();
  request.inputs[0].length = input.size_bytes();
  request.outputs.resize(1);
  request.outputs[0].kind = hal::Argument::Kind::kPointer;
  request.outputs[0].pointer = output.data();
  request.outputs[0].length = output.size_bytes();
  HEARTH_ASSIGN(const auto execution, prepared.createExecution(std::move(request)));
  return execution->compute(base::Deadline()).status;
}

// The same, returning the `outputs` numbers of the output. An error fails the test.
inline std::vector<float> runOnce(hal::PreparedModel& prepared, std::vector<float> input,
                                  size_t outputs) {
  std::vector<float> output(outputs);
  const Status status = tryOnce(prepared, input, output);
  EXPECT_TRUE(status) << status.error().toString();
  return output;
}

}  // namespace hearth::cpu
