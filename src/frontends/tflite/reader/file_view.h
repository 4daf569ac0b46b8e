// SPDX-License-Identifier: Apache-2.0
// A verified .tflite file in memory: its FlatBuffer tables and the places of its buffers.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "frontends/tflite/reader/scale_lists.h"
#include "memory/pool.h"
#include "tflite_schema_generated.h"

namespace hearth::tflite {

// Returns zero point `index`, which must exist. Copies it, because the verifier checks only the
// alignment of a vector's length, 4 bytes: in a hostile file 8-byte elements may be misaligned.
inline int64_t zeroPointAt(const flatbuffers::Vector<int64_t>& zeroPoints, uint32_t index) {
  int64_t value;
  std::memcpy(&value, zeroPoints.Data() + size_t{index} * sizeof(value), sizeof(value));
  return flatbuffers::EndianScalar(value);
}

// Where the offsets of buffers in the pools behind the first begin; those in the pool after the
// next are as far again from it (FileView::open()).
inline constexpr uint64_t kPoolSpan = uint64_t{1} << 44;

// The bytes of one buffer, as an offset from the start of a pool.
struct BufferRange {
  uint32_t pool = 0;  // index into FileView::pools()
  uint64_t offset = 0;
  uint64_t length = 0;
};

// Immutable after open(). Pointers into the pool are valid as long as the pool.
class FileView {
 public:
  // Verifies identifier, version and every offset that the schema knows, in time and memory
  // proportional to the file. Buffers may lie outside the FlatBuffer, which ends below 2 GiB.
  // Error: kBadData, in one sentence.
  static Result<FileView> open(memory::PoolRef pool);
  // The same for a model whose buffers lie in pools of their own, `values`: the offset of a buffer
  // in the first of these is kPoolSpan plus its place there, in the second twice kPoolSpan, …
  static Result<FileView> open(memory::PoolRef pool, std::vector<memory::PoolRef> values);

  const schema::Model& model() const { return *model_; }
  const memory::PoolRef& pool() const { return pools_.front(); }
  // The pool with the tables, and those that hold nothing but values of buffers.
  const std::vector<memory::PoolRef>& pools() const { return pools_; }
  uint64_t totalBytes() const;

  size_t subgraphCount() const { return model_->subgraphs()->size(); }
  // Null when there is none at `index`. Members of the table may still be absent.
  const schema::SubGraph* subgraph(size_t index) const;
  const schema::Tensor* tensor(const schema::SubGraph& subgraph, int64_t index) const;
  const schema::OperatorCode* operatorCode(uint32_t index) const;

  // The place of a tensor's value; nothing for a tensor without one. kBadData when the buffer does
  // not exist or lies outside the file.
  Result<std::optional<BufferRange>> buffer(uint32_t index) const;
  std::span<const uint8_t> bytes(const BufferRange& range) const {
    return {pools_[range.pool]->data() + range.offset, range.length};
  }

  ScaleLists& scaleLists() const { return *scaleLists_; }

 private:
  FileView() = default;

  std::vector<memory::PoolRef> pools_;
  const schema::Model* model_ = nullptr;
  std::shared_ptr<ScaleLists> scaleLists_ = std::make_shared<ScaleLists>();
};

}  // namespace hearth::tflite
