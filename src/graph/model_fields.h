// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "graph/model.h"

namespace hearth::graph {

// Writes the fields of a model that its bytes and its digest have in common, in an order that both
// rely on: a change of it needs new versions of both. A Writer has the functions number(), list()
// and scales().
template <typename Writer>
void writeFields(Writer& writer, const Operand& operand) {
  writer.number(operand.type);
  writer.list(operand.dimensions);
  writer.number(operand.scale);
  writer.number(operand.zeroPoint);
  writer.number(operand.perChannel.channelDim);
  writer.scales(operand.perChannel.scales);
  writer.number(operand.lifetime);
  writer.number(operand.location.pool);
  writer.number(operand.location.offset);
  writer.number(operand.location.length);
  writer.number(operand.subgraphIndex);
  writer.number(static_cast<uint8_t>(operand.isRankZeroTensor));
  if (!isDriverCode(operand.type)) return;
  writer.number(operand.driverElementSize);
  writer.list(operand.driverData);
}

// Behind the subgraphs, and nothing for a model without extensions.
template <typename Writer>
void writeFields(Writer& writer, const std::vector<Extension>& extensions) {
  if (extensions.empty()) return;
  writer.number(static_cast<uint64_t>(extensions.size()));
  for (const Extension& extension : extensions) {
    writer.number(extension.prefix);
    writer.list(std::vector<char>(extension.name.begin(), extension.name.end()));
  }
}

template <typename Writer>
void writeFields(Writer& writer, const std::vector<Subgraph>& subgraphs) {
  writer.number(static_cast<uint64_t>(subgraphs.size()));
  for (const Subgraph& subgraph : subgraphs) {
    writer.number(static_cast<uint64_t>(subgraph.operands.size()));
    for (const Operand& operand : subgraph.operands) writeFields(writer, operand);
    writer.number(static_cast<uint64_t>(subgraph.operations.size()));
    for (const Operation& operation : subgraph.operations) {
      writer.number(operation.type);
      writer.list(operation.inputs);
      writer.list(operation.outputs);
    }
    writer.list(subgraph.inputs);
    writer.list(subgraph.outputs);
  }
}

}  // namespace hearth::graph
