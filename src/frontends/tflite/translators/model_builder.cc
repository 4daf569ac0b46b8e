// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite/translators/model_builder.h"

#include <utility>

#include "frontends/tflite/translators/row_updates.h"
#include "frontends/tflite/translators/subgraph_builder.h"
#include "graph/validated_model.h"

namespace hearth::tflite {
namespace {

// An operand takes up to eight times the bytes of the smallest tensor that it represents.
constexpr uint64_t kBudgetPerFileByte = 8;
constexpr uint64_t kSpareBudget = uint64_t{4} << 20;
constexpr size_t kConstantAlignment = 16;

}  // namespace

ModelBuilder::ModelBuilder(const FileView& file, bool hasOpenShapes, const SubgraphPlans* plans)
    : file_(file),
      hasOpenShapes_(hasOpenShapes),
      plans_(plans),
      budget_(kBudgetPerFileByte * file.totalBytes() + kSpareBudget),
      model_(std::make_shared<graph::Model>()) {
  model_->pools = file.pools();
}

const std::vector<PlannedOperator>* ModelBuilder::planOf(size_t subgraph) const {
  if (plans_ == nullptr) return nullptr;
  const auto found = plans_->find(subgraph);
  return found == plans_->end() ? nullptr : &found->second;
}

Result<std::shared_ptr<const graph::Model>> ModelBuilder::build(size_t subgraph,
                                                                std::vector<int32_t> moreOutputs) {
  moreOutputs_ = std::move(moreOutputs);
  HEARTH_TRY(reference(static_cast<int64_t>(subgraph)));
  for (size_t i = 0; i < order_.size(); ++i) {
    SubgraphBuilder builder(*this, *file_.subgraph(order_[i]), order_[i], i == 0);
    auto result = builder.build();
    if (!result) return std::unexpected(std::move(result.error()));
    model_->subgraphs.push_back(std::move(*result));
  }
  writeRowUpdates(*this, model_.get());
  HEARTH_TRY(graph::sortIntoRunOrder(model_.get()));
  return graph::ValidatedModel::of(std::move(*model_));
}

Result<uint32_t> ModelBuilder::reference(int64_t subgraph) {
  if (subgraph < 0 || static_cast<uint64_t>(subgraph) >= file_.subgraphCount())
    return fail(ErrorCode::kBadData, "Subgraph {} does not exist, the model has {}.", subgraph,
                file_.subgraphCount());
  const size_t index = static_cast<size_t>(subgraph);
  const auto [entry, isNew] = indices_.try_emplace(index, static_cast<uint32_t>(order_.size()));
  if (isNew) order_.push_back(index);
  return entry->second;
}

Status ModelBuilder::charge(uint64_t bytes) {
  if (bytes > budget_)
    return fail(ErrorCode::kBadData,
                "The model takes more than {} times its {} bytes when it is read: its tables "
                "refer to the same data too often.",
                kBudgetPerFileByte, file_.totalBytes());
  budget_ -= bytes;
  return {};
}

Result<graph::DataLocation> ModelBuilder::copyConstant(std::span<const uint8_t> bytes) {
  HEARTH_TRY(charge(bytes.size() + kConstantAlignment));
  return copyUncharged(bytes);
}

graph::DataLocation ModelBuilder::copyUncharged(std::span<const uint8_t> bytes) {
  std::vector<uint8_t>& all = model_->constantBytes;
  const size_t offset =
      (all.size() + kConstantAlignment - 1) / kConstantAlignment * kConstantAlignment;
  all.resize(offset);
  all.insert(all.end(), bytes.begin(), bytes.end());
  return {.pool = 0, .offset = offset, .length = bytes.size()};
}

}  // namespace hearth::tflite
