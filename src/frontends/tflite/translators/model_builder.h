// SPDX-License-Identifier: Apache-2.0
// Assembles the canonical model of a subgraph and of the subgraphs that it refers to.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "frontends/tflite/reader/file_operators.h"
#include "frontends/tflite/reader/file_view.h"
#include "graph/model.h"

namespace hearth::tflite {

// A variable tensor of the main subgraph: its positions among the model's inputs and outputs.
struct VariablePosition {
  int64_t tensor = -1;  // of the subgraph; -1: a state that no tensor shows
  uint32_t input = 0;
  uint32_t output = 0;
  std::vector<uint8_t> initialValue;
};

// One import. Used once, by one thread.
class ModelBuilder {
 public:
  // `hasOpenShapes`: the inputs of the model may get other shapes than those of the file.
  // `plans` has what subgraphs run and outlives this; null: their operators.
  explicit ModelBuilder(const FileView& file, bool hasOpenShapes = false,
                        const SubgraphPlans* plans = nullptr);

  const FileView& file() const { return file_; }
  bool hasOpenShapes() const { return hasOpenShapes_; }
  // What a subgraph of the file runs; null: its operators.
  const std::vector<PlannedOperator>* planOf(size_t subgraph) const;

  // Translates the subgraph and those that it refers to. `moreOutputs` are tensors of the subgraph
  // that become outputs of the model behind those that it lists. The model has passed
  // sortIntoRunOrder and validate.
  Result<std::shared_ptr<const graph::Model>> build(size_t subgraph,
                                                    std::vector<int32_t> moreOutputs = {});

  // To be called after build().
  std::vector<VariablePosition> takeVariables() { return std::move(variables_); }

  // For SubgraphBuilder: -----------------------------------------------------------------------

  // The index in the model of a subgraph of the file. A new one is translated later.
  Result<uint32_t> reference(int64_t subgraph);

  // Accounts for memory that is about to be taken. kBadData once the model would take more than a
  // small multiple of the file's size: only tables that refer to the same bytes many times get
  // there.
  Status charge(uint64_t bytes);

  // Appends bytes to the copied constants, aligned for any element type.
  Result<graph::DataLocation> copyConstant(std::span<const uint8_t> bytes);
  // The same for bytes that the caller has charged.
  graph::DataLocation copyUncharged(std::span<const uint8_t> bytes);
  const graph::Model& model() const { return *model_; }
  const std::vector<int32_t>& moreOutputs() const { return moreOutputs_; }

  void addVariable(VariablePosition variable) { variables_.push_back(std::move(variable)); }

 private:
  const FileView& file_;
  const bool hasOpenShapes_;
  const SubgraphPlans* const plans_;
  uint64_t budget_;
  std::shared_ptr<graph::Model> model_;
  std::map<size_t, uint32_t> indices_;  // subgraph of the file -> of the model
  std::vector<size_t> order_;           // the inverse
  std::vector<VariablePosition> variables_;
  std::vector<int32_t> moreOutputs_;
};

}  // namespace hearth::tflite
