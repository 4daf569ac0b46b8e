// SPDX-License-Identifier: Apache-2.0
// What runs a model on a GPU: dispatches of shaders in their order, and where each tensor lies.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "graph/model.h"

namespace hearth::vulkan {

using TensorId = uint32_t;
inline constexpr TensorId kNoTensor = UINT32_MAX;

// The memory of one tensor. Its elements lie as the model has them.
struct PlannedTensor {
  enum class Place : uint8_t {
    kArena,      // activation memory of an execution
    kConstants,  // memory that all executions share
  };
  Place place = Place::kArena;
  uint64_t bytes = 0;
  TensorId root = 0;    // the tensor in whose memory it lies: itself, or one of as many bytes
  uint64_t offset = 0;  // of roots, in bytes: set by placeTensors()
  // The bytes of a constant: the model's, or those that `make` returns, which is called once.
  const uint8_t* constant = nullptr;
  std::function<Result<std::vector<uint8_t>>()> make;
  std::string name;  // for people
};

struct Binding {
  TensorId tensor = 0;
  bool isWritten = false;
};

// One run of a shader.
struct Dispatch {
  std::string shader;             // of EmbeddedShader::name
  uint32_t constant = 0;          // the value of its constant 0
  std::vector<Binding> bindings;  // of its buffers 0, 1, ...; at most kBindings
  std::vector<uint32_t> parameters;
  std::array<uint32_t, 3> groups = {1, 1, 1};
  uint64_t products = 0;  // multiplications with an addition at most, of a layer of many
};

struct Plan {
  std::vector<PlannedTensor> tensors;
  std::vector<Dispatch> dispatches;
  // Of the main subgraph. kNoTensor for an input that nothing uses.
  std::vector<TensorId> inputs;
  std::vector<TensorId> outputs;
  std::vector<graph::Dimensions> outputDimensions;
  // The model's inputs and outputs without the rest of it: what requests are checked against.
  graph::Subgraph arguments;
  // A uint32 of the arena that is another number than 0 after an execution whose inputs were wrong.
  TensorId fault = kNoTensor;
  uint64_t arenaBytes = 0;
  uint64_t constantBytes = 0;

  // Drops what refers to the model: the constants, which are then elsewhere.
  void forgetModel() {
    for (PlannedTensor& tensor : tensors) {
      tensor.constant = nullptr;
      tensor.make = nullptr;
    }
  }

  const PlannedTensor& rootOf(TensorId id) const {
    while (tensors[id].root != id) id = tensors[id].root;
    return tensors[id];
  }
};

// Leaves out tensors that no dispatch uses and that are no arguments, such as constants from which
// only shapes follow.
void dropUnused(Plan* plan);

// Gives each root its offset, a multiple of `alignment`, and sets arenaBytes and constantBytes.
// Tensors of the arena share memory where they are in use at different times. kOutOfMemory, naming
// a tensor, where the arena exceeds `limit` bytes (0 = none).
Status placeTensors(Plan* plan, uint64_t alignment, uint64_t limit);

}  // namespace hearth::vulkan
