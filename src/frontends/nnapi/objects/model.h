// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "android/NeuralNetworksTypes.h"
#include "base/result.h"
#include "frontends/nnapi/objects/memory.h"
#include "graph/model.h"

namespace hearth::nnapi {

// Builds a model and holds it once it is finished. All changes after finish(), failed or not, fail
// with kBadState. Used by one thread at a time until it is finished.
class Model {
 public:
  Model();

  Status addOperand(const ANeuralNetworksOperandType& type);
  Status setOperandValue(int32_t index, const void* buffer, size_t length);
  Status setOperandValueFromMemory(int32_t index, Memory& memory, const MemoryRange& range);
  Status setOperandValueFromModel(int32_t index, const Model& value);
  Status setPerChannelQuantization(int32_t index,
                                   const ANeuralNetworksSymmPerChannelQuantParams& parameters);
  Status setExtensionData(int32_t index, const void* data, size_t length);
  Status addOperation(int32_t type, std::span<const uint32_t> inputs,
                      std::span<const uint32_t> outputs);
  Status identifyInputsAndOutputs(std::span<const uint32_t> inputs,
                                  std::span<const uint32_t> outputs);
  Status relaxFloat32ToFloat16(bool allow);
  Status finish();

  bool isFinished() const { return state_ == State::kFinished; }
  // Only when finished. Immutable; compilations and other models share it.
  const std::shared_ptr<const graph::Model>& graph() const { return graph_; }
  // The position of each operation in the run order, in the order in which they were added; nullopt
  // for an operation without outputs. Only when finished.
  const std::vector<std::optional<uint32_t>>& runPositions() const { return runPositions_; }
  // Whether the model has an unknown operation of hearth.tflite, which no device can run.
  bool hasUnknownOperation() const { return hasUnknownOperation_; }

 private:
  enum class State { kOpen, kFinished, kBroken };

  Status requireOpen() const;
  Result<graph::Operand*> operandForValue(int32_t index);
  void addExtensionOf(int32_t code);
  uint32_t poolIndex(const memory::PoolRef& pool);
  uint32_t embedSubgraph(const graph::Model& source, uint32_t index);
  Status finishGraph();
  Status checkOperands() const;
  Status moveLargeConstants();
  void findRunPositions(const std::vector<graph::Operation>& added);

  State state_ = State::kOpen;
  std::shared_ptr<graph::Model> draft_;
  std::shared_ptr<const graph::Model> graph_;
  std::vector<std::optional<uint32_t>> runPositions_;
  bool hasUnknownOperation_ = false;
  size_t nesting_ = 0;  // of the models that this one refers to
  // The copy of each subgraph of a referenced model. Keys are addresses, so referenced_ keeps the
  // models alive.
  std::map<const graph::Subgraph*, uint32_t> embedded_;
  std::vector<std::shared_ptr<const graph::Model>> referenced_;
};

}  // namespace hearth::nnapi

struct ANeuralNetworksModel final : hearth::nnapi::Model {};
