// SPDX-License-Identifier: Apache-2.0
#include "tools/conformance/nntv_file.h"

#include <bit>
#include <cstring>

namespace hearth::conformance {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr char kMagic[8] = {'N', 'N', 'T', 'V', 'E', 'C', '0', '1'};
constexpr size_t kHeaderSize = 64;

// Reads records front to back. After the first read outside the file all further reads return
// zeros, so that callers check once per record.
class Cursor {
 public:
  Cursor(std::span<const uint8_t> bytes, uint64_t offset) : bytes_(bytes) {
    if (offset > bytes.size())
      hasFailed_ = true;
    else
      rest_ = bytes.subspan(offset);
  }

  template <typename T>
  T read() {
    T value{};
    if (sizeof(T) > rest_.size()) {
      hasFailed_ = true;
      rest_ = {};
      return value;
    }
    std::memcpy(&value, rest_.data(), sizeof(T));
    rest_ = rest_.subspan(sizeof(T));
    return value;
  }

  // Reads a count of items of at least `size` bytes each; fails with 0 if the file has fewer bytes.
  uint32_t readCount(size_t size) {
    const auto count = read<uint32_t>();
    if (count <= rest_.size() / size) return count;
    hasFailed_ = true;
    rest_ = {};
    return 0;
  }

  std::string readString() {
    const uint32_t length = readCount(1);
    std::string text(reinterpret_cast<const char*>(rest_.data()), length);
    rest_ = rest_.subspan(length);
    return text;
  }

  template <typename T>
  std::vector<T> readList() {
    std::vector<T> list(readCount(sizeof(T)));
    for (T& value : list) value = read<T>();
    return list;
  }

  // Bytes elsewhere in the file.
  std::span<const uint8_t> blob(uint64_t offset, uint64_t length) {
    if (offset > bytes_.size() || length > bytes_.size() - offset) {
      hasFailed_ = true;
      return {};
    }
    return bytes_.subspan(offset, length);
  }

  void refuse() { hasFailed_ = true; }
  bool hasFailed() const { return hasFailed_; }

 private:
  std::span<const uint8_t> bytes_;
  std::span<const uint8_t> rest_;
  bool hasFailed_ = false;
};

CaseOperand readOperand(Cursor& cursor) {
  CaseOperand operand;
  operand.name = cursor.readString();
  operand.type = static_cast<graph::OperandType>(cursor.read<int32_t>());
  const auto lifetime = cursor.read<uint8_t>();
  if (lifetime > static_cast<uint8_t>(graph::Lifetime::kSubgraph)) cursor.refuse();
  operand.lifetime = static_cast<graph::Lifetime>(lifetime);
  const auto bits = cursor.read<uint8_t>();
  operand.isIgnored = (bits & 1) != 0;
  operand.dimensions = cursor.readList<uint32_t>();
  operand.scale = cursor.read<float>();
  operand.zeroPoint = cursor.read<int32_t>();
  cursor.read<uint32_t>();  // number of consumers
  operand.subgraph = cursor.read<int32_t>();
  if ((bits & 2) != 0) {
    operand.perChannel.channelDim = cursor.read<uint32_t>();
    operand.perChannel.scales = cursor.readList<float>();
  }
  const auto offset = cursor.read<uint64_t>();
  const auto length = cursor.read<uint64_t>();
  operand.data = cursor.blob(offset, length);
  return operand;
}

graph::Operation readOperation(Cursor& cursor) {
  graph::Operation operation;
  operation.type = static_cast<graph::OperationType>(cursor.read<int32_t>());
  operation.name = cursor.readString();
  operation.inputs = cursor.readList<uint32_t>();
  operation.outputs = cursor.readList<uint32_t>();
  return operation;
}

CaseSubgraph readSubgraph(Cursor& cursor) {
  constexpr size_t kSmallestOperand = 46;
  constexpr size_t kSmallestOperation = 16;
  CaseSubgraph subgraph;
  subgraph.name = cursor.readString();
  subgraph.operands.resize(cursor.readCount(kSmallestOperand));
  for (CaseOperand& operand : subgraph.operands) operand = readOperand(cursor);
  subgraph.operations.resize(cursor.readCount(kSmallestOperation));
  for (graph::Operation& operation : subgraph.operations) operation = readOperation(cursor);
  subgraph.inputs = cursor.readList<uint32_t>();
  subgraph.outputs = cursor.readList<uint32_t>();
  return subgraph;
}

}  // namespace

Result<NntvFile> NntvFile::open(const std::string& path) {
  HEARTH_ASSIGN(memory::PoolRef bytes, memory::Pool::openFile(path));
  auto file = parse(std::move(bytes));
  if (!file) return std::unexpected(std::move(file.error()).addContext("while opening " + path));
  return file;
}

Result<NntvFile> NntvFile::parse(memory::PoolRef bytes) {
  NntvFile file;
  file.bytes_ = std::move(bytes);
  const std::span<const uint8_t> all(file.bytes_->data(), file.bytes_->size());
  if (all.size() < kHeaderSize || std::memcmp(all.data(), kMagic, sizeof(kMagic)) != 0)
    return fail(ErrorCode::kBadData, "The file does not begin with NNTVEC01.");
  Cursor header(all, sizeof(kMagic));
  const auto count = header.read<uint64_t>();
  const auto index = header.read<uint64_t>();
  if (index > all.size() || count > (all.size() - index) / sizeof(uint64_t))
    return fail(ErrorCode::kBadData, "The index of {} cases at {} leaves the file of {} bytes.",
                count, index, all.size());
  file.offsets_.resize(count);
  Cursor offsets(all, index);
  for (uint64_t& offset : file.offsets_) offset = offsets.read<uint64_t>();
  return file;
}

Result<Case> NntvFile::readCase(size_t index) const {
  if (index >= offsets_.size())
    return fail(ErrorCode::kBadData, "Case {} is not below {}.", index, offsets_.size());
  Cursor cursor({bytes_->data(), bytes_->size()}, offsets_[index]);
  Case result;
  result.name = cursor.readString();
  result.spec = cursor.readString();
  cursor.readString();  // folder of the specification
  for (uint32_t count = cursor.readCount(4); count > 0; --count) cursor.readString();
  cursor.read<uint32_t>();  // index of the example
  cursor.read<uint32_t>();  // four bytes of HAL versions
  result.flags = cursor.read<uint32_t>();
  result.multinomialTolerance = cursor.read<float>();
  for (Tolerance& tolerance : result.tolerances) {
    tolerance.absolute = cursor.read<float>();
    tolerance.relative = cursor.read<float>();
  }
  cursor.read<float>();  // BOOL8 is compared exactly in all vectors
  cursor.read<float>();
  constexpr size_t kSmallestSubgraph = 20;
  result.subgraphs.resize(cursor.readCount(kSmallestSubgraph));
  for (CaseSubgraph& subgraph : result.subgraphs) subgraph = readSubgraph(cursor);
  if (cursor.hasFailed())
    return fail(ErrorCode::kBadData, "The record of case {} at {} is damaged.", index,
                offsets_[index]);
  if (result.subgraphs.empty()) return fail(ErrorCode::kBadData, "Case {} has no graph.", index);
  return result;
}

}  // namespace hearth::conformance
