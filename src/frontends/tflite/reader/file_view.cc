// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite/reader/file_view.h"

#include <algorithm>
#include <utility>

#include "frontends/tflite/reader/foreign_file.h"

namespace hearth::tflite {
namespace {

constexpr uint32_t kSchemaVersion = 3;
// The accessors read in place. Offsets and lengths have 4 bytes; the few scalars of 8 bytes are
// read one at a time, which 4 suffices for. Archives for MediaPipe align their members to 4 bytes.
constexpr uintptr_t kAlignment = 4;
constexpr size_t kIdentifierEnd = 8;
// Root offset, identifier and the smallest root table.
constexpr size_t kSmallestFile = 16;
// A table takes 4 bytes itself and 4 for the offset to it, so more tables than this are aliased.
// They would let work and memory grow out of proportion to the file.
constexpr size_t kBytesPerTable = 8;
constexpr size_t kSpareTables = 64;

template <typename T>
auto elementAt(const flatbuffers::Vector<T>* list, uint64_t index) -> decltype(list->Get(0)) {
  if (list == nullptr || index >= list->size()) return nullptr;
  return list->Get(static_cast<flatbuffers::uoffset_t>(index));
}

}  // namespace

Result<FileView> FileView::open(memory::PoolRef pool) {
  return open(std::move(pool), {});
}

Result<FileView> FileView::open(memory::PoolRef pool, std::vector<memory::PoolRef> values) {
  const bool hasIdentifier =
      pool->size() >= kIdentifierEnd &&
      flatbuffers::BufferHasIdentifier(pool->data(), schema::ModelIdentifier());
  if (!hasIdentifier) {
    const std::string seen = foreignFileText({pool->data(), pool->size()});
    return fail(ErrorCode::kBadData,
                "The {} bytes are not a .tflite model: the identifier TFL3 is missing.{}{}",
                pool->size(), seen.empty() ? "" : " ", seen);
  }
  if (pool->size() < kSmallestFile)
    return fail(ErrorCode::kBadData,
                "The model is cut off: it has {} bytes. Copy or download it again.", pool->size());
  if (reinterpret_cast<uintptr_t>(pool->data()) % kAlignment != 0)
    return fail(ErrorCode::kBadData, "The model lies at an address that is not a multiple of {}.",
                kAlignment);

  flatbuffers::Verifier::Options options;
  const size_t size = std::min<size_t>(pool->size(), FLATBUFFERS_MAX_BUFFER_SIZE - 1);
  options.max_tables = static_cast<flatbuffers::uoffset_t>(
      pool->size() < FLATBUFFERS_MAX_BUFFER_SIZE ? size / kBytesPerTable + kSpareTables
                                                 : size / kBytesPerTable);
  flatbuffers::Verifier verifier(pool->data(), size, options);
  if (!schema::VerifyModelBuffer(verifier))
    return fail(ErrorCode::kBadData,
                "The model is damaged: its tables refer to places outside the {} bytes of the "
                "file, or to each other too often. If the file is cut off, copy or download it "
                "again.",
                pool->size());

  FileView view;
  view.model_ = schema::GetModel(pool->data());
  view.pools_.push_back(std::move(pool));
  view.pools_.insert(view.pools_.end(), values.begin(), values.end());
  if (view.model_->version() != kSchemaVersion)
    return fail(ErrorCode::kBadData, "The model has format version {}, only {} is known.",
                view.model_->version(), kSchemaVersion);
  if (view.model_->subgraphs() == nullptr || view.model_->subgraphs()->size() == 0)
    return fail(ErrorCode::kBadData, "The model has no subgraph.");
  return view;
}

uint64_t FileView::totalBytes() const {
  uint64_t bytes = 0;
  for (const memory::PoolRef& pool : pools_) bytes += pool->size();
  return bytes;
}

const schema::SubGraph* FileView::subgraph(size_t index) const {
  return elementAt(model_->subgraphs(), index);
}

const schema::Tensor* FileView::tensor(const schema::SubGraph& subgraph, int64_t index) const {
  return index < 0 ? nullptr : elementAt(subgraph.tensors(), static_cast<uint64_t>(index));
}

const schema::OperatorCode* FileView::operatorCode(uint32_t index) const {
  return elementAt(model_->operator_codes(), index);
}

Result<std::optional<BufferRange>> FileView::buffer(uint32_t index) const {
  const schema::Buffer* buffer = elementAt(model_->buffers(), index);
  if (buffer == nullptr) {
    // A file may have no buffers at all; its tensors then have no values.
    if (index == 0) return std::nullopt;
    return fail(ErrorCode::kBadData, "It refers to buffer {}, the model has {}.", index,
                model_->buffers() == nullptr ? 0 : model_->buffers()->size());
  }
  if (buffer->data() != nullptr && buffer->data()->size() != 0)
    return BufferRange{0, static_cast<uint64_t>(buffer->data()->data() - pool()->data()),
                       buffer->data()->size()};
  if (buffer->size() == 0 || buffer->offset() == 0) return std::nullopt;
  BufferRange range{0, buffer->offset(), buffer->size()};
  if (pools_.size() > 1) {
    range.pool =
        static_cast<uint32_t>(std::min<uint64_t>(range.offset / kPoolSpan, pools_.size() - 1));
    range.offset -= range.pool * kPoolSpan;
  }
  const memory::Pool& holder = *pools_[range.pool];
  if (!holder.contains(range.offset, range.length))
    return fail(ErrorCode::kBadData, "Its buffer {} lies at {}+{}, outside the {} bytes.", index,
                range.offset, range.length, holder.size());
  return range;
}

}  // namespace hearth::tflite
