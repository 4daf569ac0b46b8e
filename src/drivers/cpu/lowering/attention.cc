// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/lowering/attention.h"

#include <memory>
#include <utility>
#include <vector>

#include "drivers/cpu/kernels/attention_kernel.h"
#include "drivers/cpu/lowering/declined.h"

namespace hearth::cpu {
namespace {

// The row of the mask of each place, [batch][query][head]; the mask's own rows are those of heads
// and then queries.
std::vector<uint32_t> maskRowsByPlace(const ops::AttentionParameters& p,
                                      const graph::Dimensions& mask) {
  const std::vector<uint32_t> rows = repeatedRows({p.batches, p.heads, p.queries, p.keys}, mask);
  std::vector<uint32_t> byPlace;
  byPlace.reserve(rows.size());
  for (size_t batch = 0; batch < p.batches; ++batch)
    for (size_t query = 0; query < p.queries; ++query)
      for (size_t head = 0; head < p.heads; ++head)
        byPlace.push_back(rows[(batch * p.heads + head) * p.queries + query]);
  return byPlace;
}

}  // namespace

void setMask(AttentionLayout* layout, const graph::Dimensions& mask,
             std::vector<uint32_t> rowsByPlace) {
  layout->maskRows = std::move(rowsByPlace);
  layout->maskRowCount = 1;
  for (size_t i = 0; i + 1 < mask.size(); ++i) layout->maskRowCount *= mask[i];
  layout->isMaskPerKey = !mask.empty() && mask.back() != 1;
}

void addAttentionNode(PlanBuilder* builder, AttentionLayout layout) {
  std::vector<ValueId> inputs = {layout.queries, layout.keys, layout.values};
  if (!layout.maskRows.empty()) inputs.push_back(layout.mask);
  const ValueId output = layout.output;
  Node& node = builder->add("own", std::move(inputs), {output});
  node.name = "SCALED_DOT_PRODUCT_ATTENTION";
  node.create = [shared = std::make_shared<const AttentionLayout>(
                     std::move(layout))]() -> Result<std::unique_ptr<Kernel>> {
    return makeAttentionKernel(shared);
  };
}

Result<bool> addAttention(PlanBuilder* builder, const Attention& attention) {
  for (const uint32_t operand :
       {attention.queries, attention.keys, attention.values, attention.mask, attention.output})
    if (operand != UINT32_MAX &&
        builder->operand(operand).type != graph::OperandType::kTensorFloat32)
      return builder->decline(kOnlyFloat32);
  const ops::AttentionParameters& p = attention.parameters;
  AttentionLayout layout;
  layout.parameters = p;
  layout.queries = builder->read(attention.queries);
  layout.keys = builder->read(attention.keys);
  layout.values = builder->read(attention.values);
  layout.keyStride = size_t{p.groups} * p.size;
  layout.valueStride = size_t{p.groups} * p.valueSize;
  // A group's heads with all queries share keys and values.
  const size_t headsOfGroup = p.heads / p.groups;
  layout.rowsPerGroup = headsOfGroup * p.queries;
  layout.placesPerRun = headsOfGroup;
  layout.runStride = p.heads;
  for (size_t batch = 0; batch < p.batches; ++batch) {
    for (size_t group = 0; group < p.groups; ++group) {
      layout.keyOffsets.push_back(batch * p.keys * layout.keyStride + group * p.size);
      layout.valueOffsets.push_back(batch * p.keys * layout.valueStride + group * p.valueSize);
      layout.firstPlaces.push_back(batch * p.queries * p.heads + group * headsOfGroup);
    }
  }
  if (attention.mask != UINT32_MAX) {
    layout.mask = builder->read(attention.mask);
    const graph::Dimensions& mask = builder->tensor(attention.mask).dimensions;
    setMask(&layout, mask, maskRowsByPlace(p, mask));
  }
  layout.output = builder->write(attention.output);
  addAttentionNode(builder, std::move(layout));
  return true;
}

}  // namespace hearth::cpu
