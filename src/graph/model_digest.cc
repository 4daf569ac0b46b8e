// SPDX-License-Identifier: Apache-2.0
#include "graph/model_digest.h"

#include <type_traits>
#include <vector>

namespace hearth::graph {
namespace {

// Writes numbers and lists, each list after its length, so that no two models write the same bytes.
class Writer {
 public:
  template <typename T>
  void number(T value) {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
    const auto* bytes = reinterpret_cast<const uint8_t*>(&value);
    buffer_.insert(buffer_.end(), bytes, bytes + sizeof value);
    if (buffer_.size() >= kFlush) flush();
  }

  template <typename T>
  void list(const std::vector<T>& values) {
    number(static_cast<uint64_t>(values.size()));
    flush();
    hash_.update(values.data(), values.size() * sizeof(T));
  }

  void digest(const base::Sha256Digest& digest) {
    buffer_.insert(buffer_.end(), digest.begin(), digest.end());
  }

  base::Sha256Digest finish() {
    flush();
    return hash_.finish();
  }

 private:
  static constexpr size_t kFlush = 4096;

  void flush() {
    hash_.update(buffer_);
    buffer_.clear();
  }

  base::Sha256 hash_;
  std::vector<uint8_t> buffer_;
};

void write(Writer& writer, const Operand& operand) {
  writer.number(operand.type);
  writer.list(operand.dimensions);
  writer.number(operand.scale);
  writer.number(operand.zeroPoint);
  writer.number(operand.perChannel.channelDim);
  writer.number(static_cast<uint64_t>(operand.perChannel.scales.size()));
  if (!operand.perChannel.scales.empty()) writer.digest(operand.perChannel.scales.fingerprint());
  writer.number(operand.lifetime);
  writer.number(operand.location.pool);
  writer.number(operand.location.offset);
  writer.number(operand.location.length);
  writer.number(operand.subgraphIndex);
  writer.number(operand.isRankZeroTensor);
}

}  // namespace

base::Sha256Digest structureDigest(const Model& model) {
  Writer writer;
  writer.number(uint32_t{3});  // version of this list of fields
  writer.number(model.relaxFloat32ToFloat16);
  writer.list(model.constantBytes);
  writer.number(static_cast<uint64_t>(model.pools.size()));
  for (const memory::PoolRef& pool : model.pools)
    writer.number(static_cast<uint64_t>(pool->size()));
  writer.number(static_cast<uint64_t>(model.subgraphs.size()));
  for (const Subgraph& subgraph : model.subgraphs) {
    writer.number(static_cast<uint64_t>(subgraph.operands.size()));
    for (const Operand& operand : subgraph.operands) write(writer, operand);
    writer.number(static_cast<uint64_t>(subgraph.operations.size()));
    for (const Operation& operation : subgraph.operations) {
      writer.number(operation.type);
      writer.list(operation.inputs);
      writer.list(operation.outputs);
    }
    writer.list(subgraph.inputs);
    writer.list(subgraph.outputs);
  }
  return writer.finish();
}

}  // namespace hearth::graph
