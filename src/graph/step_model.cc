// SPDX-License-Identifier: Apache-2.0
#include "graph/step_model.h"

#include <algorithm>
#include <optional>

namespace hearth::graph {
namespace {

class Cutter {
 public:
  Cutter(const Model& whole, const std::vector<uint32_t>& operations)
      : whole_(whole),
        main_(whole.main()),
        operations_(operations),
        indexOf_(main_.operands.size()),
        isWritten_(main_.operands.size()),
        isReadElsewhere_(main_.operands.size()) {}

  StepModel cut() {
    model_ = std::make_shared<Model>();
    model_->relaxFloat32ToFloat16 = whole_.relaxFloat32ToFloat16;
    model_->constantBytes = whole_.constantBytes;
    model_->pools = whole_.pools;
    model_->extensions = whole_.extensions;
    // References between subgraphs keep their indices.
    model_->subgraphs.assign(whole_.subgraphs.begin(), whole_.subgraphs.end());
    model_->main() = Subgraph();
    model_->main().name = main_.name;
    markUses();
    for (const uint32_t index : operations_) addOperation(main_.operations[index]);
    listArguments();
    dropUnusedSubgraphs();
    StepModel step;
    step.model = std::move(model_);
    step.inputs = std::move(inputs_);
    step.outputs = std::move(outputs_);
    return step;
  }

 private:
  void markUses() {
    std::vector<bool> isInside(main_.operations.size());
    for (const uint32_t index : operations_) {
      isInside[index] = true;
      for (const uint32_t output : main_.operations[index].outputs) isWritten_[output] = true;
    }
    for (size_t i = 0; i < main_.operations.size(); ++i)
      if (!isInside[i])
        for (const uint32_t input : main_.operations[i].inputs) isReadElsewhere_[input] = true;
  }

  uint32_t operand(uint32_t index) {
    if (indexOf_[index]) return *indexOf_[index];
    Operand operand = main_.operands[index];
    switch (operand.lifetime) {
      case Lifetime::kTemporary:
      case Lifetime::kSubgraphOutput:
        if (!isWritten_[index])
          operand.lifetime = Lifetime::kSubgraphInput;
        else if (operand.lifetime == Lifetime::kTemporary && isReadElsewhere_[index])
          operand.lifetime = Lifetime::kSubgraphOutput;
        break;
      default:
        break;
    }
    const auto mine = static_cast<uint32_t>(model_->main().operands.size());
    model_->main().operands.push_back(std::move(operand));
    source_.push_back(index);
    indexOf_[index] = mine;
    return mine;
  }

  void addOperation(const Operation& operation) {
    Operation copy = operation;
    for (uint32_t& index : copy.inputs) index = operand(index);
    for (uint32_t& index : copy.outputs) index = operand(index);
    model_->main().operations.push_back(std::move(copy));
  }

  void listArguments() {
    Subgraph& mine = model_->main();
    for (uint32_t i = 0; i < mine.operands.size(); ++i) {
      if (mine.operands[i].lifetime == Lifetime::kSubgraphInput) {
        mine.inputs.push_back(i);
        inputs_.push_back(source_[i]);
      } else if (mine.operands[i].lifetime == Lifetime::kSubgraphOutput) {
        mine.outputs.push_back(i);
        outputs_.push_back(source_[i]);
      }
    }
  }

  void dropUnusedSubgraphs() {
    for (const Operand& operand : model_->main().operands)
      if (operand.lifetime == Lifetime::kSubgraph) return;
    model_->subgraphs.resize(1);
  }

  const Model& whole_;
  const Subgraph& main_;
  const std::vector<uint32_t>& operations_;
  std::vector<std::optional<uint32_t>> indexOf_;
  std::vector<bool> isWritten_;
  std::vector<bool> isReadElsewhere_;
  std::vector<uint32_t> source_;  // of each operand of the part
  std::shared_ptr<Model> model_;
  std::vector<uint32_t> inputs_;
  std::vector<uint32_t> outputs_;
};

}  // namespace

StepModel makeStepModel(const Model& whole, const std::vector<uint32_t>& operations) {
  return Cutter(whole, operations).cut();
}

}  // namespace hearth::graph
