// SPDX-License-Identifier: Apache-2.0
#include "tools/conformance/nnapi_model.h"

#include <sys/mman.h>

#include <cstring>

#include "android/NeuralNetworksExtensions.h"

namespace hearth::conformance {
namespace {

class ModelBuilder {
 public:
  ModelBuilder(const graph::Model& graph, NnapiModel* built) : graph_(graph), built_(built) {
    built_->models.resize(graph_.subgraphs.size());
  }

  Status build() {
    for (const memory::PoolRef& pool : graph_.pools) {
      built_->memories.emplace_back();
      HEARTH_TRY(
          check(ANeuralNetworksMemory_createFromFd(pool->size(), PROT_READ, pool->fd(),
                                                   pool->offset(), Out(built_->memories.back())),
                "createFromFd"));
    }
    return buildSubgraph(0, 0);
  }

 private:
  Status buildSubgraph(uint32_t index, size_t depth) {
    if (built_->models[index] != nullptr) return {};
    if (depth > graph_.subgraphs.size())
      return fail(ErrorCode::kBadData, "Subgraph {} refers to itself.", index);
    const graph::Subgraph& subgraph = graph_.subgraphs[index];
    for (const graph::Operand& operand : subgraph.operands)
      if (operand.lifetime == graph::Lifetime::kSubgraph)
        HEARTH_TRY(buildSubgraph(operand.subgraphIndex, depth + 1));
    ModelHandle model;
    HEARTH_TRY(check(ANeuralNetworksModel_create(Out(model)), "Model_create"));
    for (size_t i = 0; i < subgraph.operands.size(); ++i)
      HEARTH_TRY_CONTEXT(addOperand(model.get(), subgraph.operands[i], static_cast<int32_t>(i)),
                         "in operand {} of subgraph {}", i, index);
    for (const graph::Operation& operation : subgraph.operations)
      HEARTH_TRY_CONTEXT(
          check(ANeuralNetworksModel_addOperation(
                    model.get(), static_cast<ANeuralNetworksOperationType>(operation.type),
                    static_cast<uint32_t>(operation.inputs.size()), operation.inputs.data(),
                    static_cast<uint32_t>(operation.outputs.size()), operation.outputs.data()),
                "addOperation"),
          "in {}", graph::nameOf(operation.type));
    HEARTH_TRY(check(
        ANeuralNetworksModel_identifyInputsAndOutputs(
            model.get(), static_cast<uint32_t>(subgraph.inputs.size()), subgraph.inputs.data(),
            static_cast<uint32_t>(subgraph.outputs.size()), subgraph.outputs.data()),
        "identifyInputsAndOutputs"));
    HEARTH_TRY(check(ANeuralNetworksModel_relaxComputationFloat32toFloat16(
                         model.get(), graph_.relaxFloat32ToFloat16),
                     "relaxComputationFloat32toFloat16"));
    HEARTH_TRY(check(ANeuralNetworksModel_finish(model.get()), "Model_finish"));
    built_->models[index] = std::move(model);
    return {};
  }

  Status addOperand(ANeuralNetworksModel* model, const graph::Operand& operand, int32_t index) {
    const ANeuralNetworksOperandType type = {
        static_cast<int32_t>(operand.type), static_cast<uint32_t>(operand.dimensions.size()),
        operand.dimensions.empty() ? nullptr : operand.dimensions.data(), operand.scale,
        operand.zeroPoint};
    HEARTH_TRY(check(ANeuralNetworksModel_addOperand(model, &type), "addOperand"));
    if (operand.type == graph::OperandType::kTensorInt4 && !operand.perChannel.scales.empty()) {
      const uint32_t channel = operand.perChannel.channelDim;
      std::vector<uint8_t> bytes(sizeof channel + operand.perChannel.scales.size() * sizeof(float));
      std::memcpy(bytes.data(), &channel, sizeof channel);
      std::memcpy(bytes.data() + sizeof channel, operand.perChannel.scales.data(),
                  bytes.size() - sizeof channel);
      HEARTH_TRY(check(
          ANeuralNetworksModel_setOperandExtensionData(model, index, bytes.data(), bytes.size()),
          "setOperandExtensionData"));
    } else if (!operand.perChannel.scales.empty()) {
      const ANeuralNetworksSymmPerChannelQuantParams parameters = {
          operand.perChannel.channelDim, static_cast<uint32_t>(operand.perChannel.scales.size()),
          operand.perChannel.scales.data()};
      HEARTH_TRY(
          check(ANeuralNetworksModel_setOperandSymmPerChannelQuantParams(model, index, &parameters),
                "setOperandSymmPerChannelQuantParams"));
    }
    switch (operand.lifetime) {
      case graph::Lifetime::kNoValue:
        return check(ANeuralNetworksModel_setOperandValue(model, index, nullptr, 0),
                     "setOperandValue");
      case graph::Lifetime::kConstantCopy:
        return check(ANeuralNetworksModel_setOperandValue(
                         model, index, graph_.constantData(operand), operand.location.length),
                     "setOperandValue");
      case graph::Lifetime::kConstantReference:
        return check(ANeuralNetworksModel_setOperandValueFromMemory(
                         model, index, built_->memories[operand.location.pool].get(),
                         operand.location.offset, operand.location.length),
                     "setOperandValueFromMemory");
      case graph::Lifetime::kSubgraph:
        return check(ANeuralNetworksModel_setOperandValueFromModel(
                         model, index, built_->models[operand.subgraphIndex].get()),
                     "setOperandValueFromModel");
      default:
        return {};
    }
  }

  const graph::Model& graph_;
  NnapiModel* const built_;
};

}  // namespace

Status buildNnapiModel(const graph::Model& graph, NnapiModel* built) {
  return ModelBuilder(graph, built).build();
}

}  // namespace hearth::conformance
