// SPDX-License-Identifier: Apache-2.0
#include "graph/model_digest.h"

#include <array>
#include <cstring>
#include <type_traits>
#include <utility>
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
    append(&value, sizeof value);
  }

  template <typename T>
  void list(const std::vector<T>& values) {
    number(static_cast<uint64_t>(values.size()));
    append(values.data(), values.size() * sizeof(T));
  }

  void scales(const ChannelScales& values) {
    number(static_cast<uint64_t>(values.size()));
    if (values.empty()) return;
    const base::Sha256Digest fingerprint = values.fingerprint();
    append(fingerprint.data(), fingerprint.size());
  }

  base::Sha256Digest finish() {
    flush();
    return hash_.finish();
  }

 private:
  void append(const void* bytes, size_t size) {
    if (size > buffer_.size() - used_) flush();
    if (size > buffer_.size()) return hash_.update(bytes, size);
    if (size == 0) return;
    std::memcpy(buffer_.data() + used_, bytes, size);
    used_ += size;
  }

  void flush() { hash_.update(buffer_.data(), std::exchange(used_, 0)); }

  base::Sha256 hash_;
  std::array<uint8_t, 4096> buffer_{};  // the first bytes of it wait for the hash
  size_t used_ = 0;
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
