// SPDX-License-Identifier: Apache-2.0
// Operators as the file declares them, for front ends that show them to programs, and what programs
// put in their place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace hearth::tflite {

namespace schema {
struct Operator;
}

struct FileOperator {
  int32_t code = 0;  // BuiltinOperator of the file format
  int32_t version = 1;
  std::string name;             // "ADD"
  std::string customName;       // of CUSTOM
  std::vector<int32_t> inputs;  // tensors, all of which exist; -1 = omitted
  std::vector<int32_t> outputs;
  std::vector<int32_t> intermediates;
  std::span<const uint8_t> customOptions;   // in the file's memory
  const schema::Operator* table = nullptr;  // likewise
};

// One custom operation in place of operators of a subgraph. Variables among its inputs get new
// values, which are its last outputs, in the order of the inputs.
struct Replacement {
  std::string name;  // of an operator in ops/custom_operator.h
  std::vector<uint8_t> options;
  std::vector<int32_t> inputs;  // tensors of the subgraph; -1 = omitted
  std::vector<int32_t> outputs;
};

// A step of a subgraph that runs in part by replacements: an operator of the file, or one of these.
struct PlannedOperator {
  size_t operation = 0;  // its position in the file, without a replacement
  std::optional<Replacement> replacement;
};

// What subgraphs run in place of their operators, each in order. The keys are subgraphs of the
// file.
using SubgraphPlans = std::map<size_t, std::vector<PlannedOperator>>;

// Names of operators that begin like this belong to Hearth: no file can refer to them.
inline constexpr char kReservedPrefix = '\x01';

}  // namespace hearth::tflite
