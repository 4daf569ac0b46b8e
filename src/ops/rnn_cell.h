// SPDX-License-Identifier: Apache-2.0
// The basic recurrent cell that RNN and the sequence RNNs share:
// hidden = activation(input * W + hidden * R + bias).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "ops/operation.h"
#include "ops/real_values.h"
#include "ops/recurrent_activation.h"
#include "ops/validation.h"

namespace hearth::ops {

// Where the arguments of one cell stand in an operation's input list.
struct RnnLayout {
  size_t weights = 1;     // weights, recurrent weights, bias and hidden state follow each other
  size_t auxWeights = 0;  // 0: none

  size_t recurrentWeights() const { return weights + 1; }
  size_t bias() const { return weights + 2; }
  size_t hiddenState() const { return weights + 3; }
};

struct RnnParameters {
  uint32_t inputSize = 0;
  uint32_t auxSize = 0;  // 0: no auxiliary weights
  uint32_t unitCount = 0;
  RecurrentActivation activation = RecurrentActivation::kNone;
};

// Types of one cell's inputs: all like input 0, which the caller has checked.
Status validateRnn(const Signature& signature, const RnnLayout& layout);

// Sizes from the weights, with every shape checked; the activation is left to the caller.
Result<RnnParameters> parseRnn(const OperationContext& context, const RnnLayout& layout,
                               uint32_t inputSize, uint32_t auxSize, uint32_t batches);

// One cell with hidden states for all batch elements. Not thread-safe.
class RnnCell {
 public:
  RnnCell(const OperationContext& context, const RnnLayout& layout,
          const RnnParameters& parameters);

  // One time step of one batch element; `aux` may be null without auxiliary weights.
  void step(size_t batch, const float* input, const float* aux);

  const float* hiddenState(size_t batch) const {
    return hidden_.data() + batch * parameters_.unitCount;
  }
  const std::vector<float>& hiddenStates() const { return hidden_; }

 private:
  RnnParameters parameters_;
  RealInput weights_, recurrentWeights_, bias_;
  std::unique_ptr<RealInput> auxWeights_;
  std::vector<float> hidden_, next_;
};

}  // namespace hearth::ops
