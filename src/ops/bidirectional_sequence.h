// SPDX-License-Identifier: Apache-2.0
// What BIDIRECTIONAL_SEQUENCE_LSTM and BIDIRECTIONAL_SEQUENCE_RNN share: a cell that runs forward
// and one that runs backward over the same steps, whose outputs may be merged into one tensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "ops/operation.h"
#include "ops/real_values.h"
#include "ops/sequence_shape.h"
#include "ops/validation.h"

namespace hearth::ops {

// Indices of the arguments that belong to neither cell.
struct BidirectionalLayout {
  size_t auxInput;
  size_t auxWeights;  // forward cell's; without them the auxiliary input feeds the backward cell
  size_t activation;
  size_t timeMajor;
  size_t mergeOutputs;
};

// Types of input 0, of these arguments and of all outputs.
Status validateBidirectional(const Signature& signature, const BidirectionalLayout& layout);

struct BidirectionalParameters {
  SequenceShape shape;
  uint32_t inputSize = 0;     // of the forward cell
  uint32_t auxSize = 0;       // of the auxiliary input; 0 when it is omitted
  uint32_t backwardSize = 0;  // of the backward cell's input
  bool backwardReadsAux = false;
  bool mergesOutputs = false;
};

// Checks the input's and the auxiliary input's shape.
Result<BidirectionalParameters> parseBidirectional(const OperationContext& context,
                                                   const BidirectionalLayout& layout);

// Sets the shapes of the one or two output sequences and returns the index of the first output
// after them. kBadData when the merged size exceeds 32 bits.
Result<size_t> setSequenceDimensions(OperationContext& context,
                                     const BidirectionalParameters& parameters,
                                     uint32_t forwardSize, uint32_t backwardSize);

// Inputs and outputs of the two cells during one execution, as float; rows are those of
// SequenceShape.
class BidirectionalValues {
 public:
  BidirectionalValues(const OperationContext& context, const BidirectionalLayout& layout,
                      const BidirectionalParameters& parameters, uint32_t forwardSize,
                      uint32_t backwardSize);

  const float* forwardInput() const { return input_.data(); }
  const float* backwardInput() const {
    return parameters_.backwardReadsAux ? aux() : input_.data();
  }
  // Null when it is omitted.
  const float* aux() const { return aux_ == nullptr ? nullptr : aux_->data(); }

  // Row r of a cell's output starts at r times the stride.
  float* forwardOutput() { return forward_.data(); }
  float* backwardOutput() {
    return parameters_.mergesOutputs ? forward_.data() + forwardSize_ : backward_.data();
  }
  size_t forwardStride() const { return forwardStride_; }
  size_t backwardStride() const { return backwardStride_; }

  // Stores the outputs and returns the index of the first output after them.
  size_t store(OperationContext& context) const;

 private:
  const BidirectionalParameters parameters_;
  const size_t forwardSize_, forwardStride_, backwardStride_;
  const RealInput input_;
  std::unique_ptr<const RealInput> aux_;
  std::vector<float> forward_, backward_;
};

}  // namespace hearth::ops
