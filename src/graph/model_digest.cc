// SPDX-License-Identifier: Apache-2.0
#include "graph/model_digest.h"

#include <type_traits>
#include <vector>

#include "graph/model_fields.h"

namespace hearth::graph {
namespace {

// Writes numbers and lists, each list after its length, so that no two models write the same bytes.
class DigestWriter {
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

  void scales(const ChannelScales& values) {
    number(static_cast<uint64_t>(values.size()));
    if (values.empty()) return;
    const base::Sha256Digest fingerprint = values.fingerprint();
    buffer_.insert(buffer_.end(), fingerprint.begin(), fingerprint.end());
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

}  // namespace

base::Sha256Digest structureDigest(const Model& model) {
  DigestWriter writer;
  writer.number(uint32_t{3});  // version of this list of fields
  writer.number(model.relaxFloat32ToFloat16);
  writer.list(model.constantBytes);
  writer.number(static_cast<uint64_t>(model.pools.size()));
  for (const memory::PoolRef& pool : model.pools)
    writer.number(static_cast<uint64_t>(pool->size()));
  writeFields(writer, model.subgraphs);
  writeFields(writer, model.extensions);
  return writer.finish();
}

}  // namespace hearth::graph
