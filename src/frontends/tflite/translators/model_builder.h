// SPDX-License-Identifier: Apache-2.0
// Assembles the canonical model of one subgraph and of those that it refers to.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "frontends/tflite/reader/file_view.h"
#include "graph/model.h"

namespace hearth::tflite {

// A variable tensor of the main subgraph: positions among the model's inputs and outputs.
struct VariablePosition {
  uint32_t input = 0;
  uint32_t output = 0;
  std::vector<uint8_t> initialValue;
};

// One import. Used by one thread, once.
class ModelBuilder {
 public:
  explicit ModelBuilder(const FileView& file);

  const FileView& file() const { return file_; }

  // Translates the subgraph and what it refers to. The model passed sortIntoRunOrder and validate.
  Result<std::shared_ptr<const graph::Model>> build(size_t subgraph);

  // After build().
  std::vector<VariablePosition> takeVariables() { return std::move(variables_); }

  // For the builders of subgraphs: ------------------------------------------------------------

  // Index in the model of a subgraph of the file; it is translated later if it is new.
  Result<uint32_t> reference(int64_t subgraph);

  // Accounts for memory about to be taken. kBadData once the model would take more than a small
  // multiple of the file's size: only tables that refer to the same bytes many times get there.
  Status charge(uint64_t bytes);

  // Appends to the copied constants, aligned for any element type.
  Result<graph::DataLocation> copyConstant(std::span<const uint8_t> bytes);
  // For bytes that the caller accounted for.
  graph::DataLocation copyUncharged(std::span<const uint8_t> bytes);
  const graph::Model& model() const { return *model_; }

  void addVariable(VariablePosition variable) { variables_.push_back(std::move(variable)); }

 private:
  const FileView& file_;
  uint64_t budget_;
  std::shared_ptr<graph::Model> model_;
  std::map<size_t, uint32_t> indices_;  // subgraph of the file -> of the model
  std::vector<size_t> order_;           // the reverse
  std::vector<VariablePosition> variables_;
};

}  // namespace hearth::tflite
