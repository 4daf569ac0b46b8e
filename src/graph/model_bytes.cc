// SPDX-License-Identifier: Apache-2.0
#include "graph/model_bytes.h"

#include <cstring>
#include <type_traits>
#include <utility>

#include "base/byte_reader.h"
#include "graph/model_fields.h"

namespace hearth::graph {
namespace {

constexpr uint32_t kVersion = 2;

// Writes to memory that suffices, or only counts.
class Writer {
 public:
  Writer(Scales scales, uint8_t* to) : scales_(scales), to_(to) {}

  template <typename T>
  void number(T value) {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
    bytes(&value, sizeof value);
  }
  template <typename List>
  void list(const List& values) {
    number(static_cast<uint64_t>(values.size()));
    bytes(values.data(), values.size() * sizeof(*values.data()));
  }
  void scales(const ChannelScales& values) {
    if (scales_ == Scales::kAmongTheBytes) return list(values);
    number(static_cast<uint64_t>(values.size()));
  }
  size_t written() const { return written_; }

 private:
  void bytes(const void* data, size_t size) {
    if (to_ != nullptr && size != 0) std::memcpy(to_ + written_, data, size);
    written_ += size;
  }

  const Scales scales_;
  uint8_t* const to_;  // null: counts
  size_t written_ = 0;
};

// Reads a model, whose scales may be kept apart.
class Reader : public base::ByteReader {
 public:
  Reader(std::span<const uint8_t> bytes, std::span<const float> scales)
      : ByteReader(bytes), scales_(scales) {}

  // The next list of scales, wherever it is kept; valid until the next call.
  std::span<const float> scales() {
    const size_t size =
        areApart_ ? bounded(number<uint64_t>(), scales_.size()) : count(sizeof(float));
    if (areApart_) {
      const auto values = scales_.first(size);
      scales_ = scales_.subspan(size);
      return values;
    }
    if (size > floats_.size()) floats_.resize(size);
    take(floats_.data(), size * sizeof(float));
    return std::span(floats_).first(size);
  }
  void readScalesApart() { areApart_ = flag(); }
  bool isAtEnd() const { return !hasBytes() && scales_.empty(); }

 private:
  std::span<const float> scales_;  // scales that are kept apart
  bool areApart_ = false;
  std::vector<float> floats_;  // scales among the bytes; as large as the longest list so far
};

// The least number of bytes of each kind of element, which bounds the lengths of lists.
constexpr size_t kLeastOperand = 32;
constexpr size_t kLeastOperation = 20;
constexpr size_t kLeastSubgraph = 32;
constexpr size_t kLeastExtension = 12;

Result<Operand> readOperand(Reader& reader) {
  Operand operand;
  operand.type = reader.number<OperandType>();
  operand.dimensions = reader.list<uint32_t>();
  operand.scale = reader.number<float>();
  operand.zeroPoint = reader.number<int32_t>();
  operand.perChannel.channelDim = reader.number<uint32_t>();
  operand.perChannel.scales = reader.scales();
  const auto lifetime = reader.number<uint8_t>();
  if (lifetime > static_cast<uint8_t>(Lifetime::kSubgraph))
    return fail(ErrorCode::kBadData, "The life time {} of an operand is unknown.", lifetime);
  operand.lifetime = static_cast<Lifetime>(lifetime);
  operand.location.pool = reader.number<uint32_t>();
  operand.location.offset = reader.number<uint64_t>();
  operand.location.length = reader.number<uint64_t>();
  operand.subgraphIndex = reader.number<uint32_t>();
  operand.isRankZeroTensor = reader.flag();
  if (isDriverCode(operand.type)) {
    operand.driverElementSize = reader.number<uint32_t>();
    operand.driverData = reader.list<uint8_t>();
  }
  return operand;
}

Result<Subgraph> readSubgraph(Reader& reader) {
  Subgraph subgraph;
  const size_t operands = reader.count(kLeastOperand);
  subgraph.operands.reserve(operands);
  for (size_t i = 0; i < operands && reader.isGood(); ++i) {
    HEARTH_ASSIGN(Operand operand, readOperand(reader));
    subgraph.operands.push_back(std::move(operand));
  }
  const size_t operations = reader.count(kLeastOperation);
  subgraph.operations.reserve(operations);
  for (size_t i = 0; i < operations && reader.isGood(); ++i) {
    Operation operation;
    operation.type = reader.number<OperationType>();
    operation.inputs = reader.list<uint32_t>();
    operation.outputs = reader.list<uint32_t>();
    subgraph.operations.push_back(std::move(operation));
  }
  subgraph.inputs = reader.list<uint32_t>();
  subgraph.outputs = reader.list<uint32_t>();
  return subgraph;
}

void readExtensions(Reader& reader, std::vector<Extension>* extensions) {
  const size_t count = reader.count(kLeastExtension);
  for (size_t i = 0; i < count && reader.isGood(); ++i) {
    Extension extension;
    extension.prefix = reader.number<int32_t>();
    const auto name = reader.list<char>();
    extension.name.assign(name.begin(), name.end());
    extensions->push_back(std::move(extension));
  }
}

// Returns the number of bytes.
size_t write(const Model& model, Scales scales, uint8_t* to) {
  Writer writer(scales, to);
  writer.number(kVersion);
  writer.number(static_cast<uint8_t>(scales == Scales::kApart));
  writer.number(static_cast<uint8_t>(model.relaxFloat32ToFloat16));
  writer.list(model.constantBytes);
  writeFields(writer, model.subgraphs);
  writeFields(writer, model.extensions);
  return writer.written();
}

}  // namespace

size_t encodedSize(const Model& model, Scales scales) {
  return write(model, scales, nullptr);
}

void encodeModel(const Model& model, std::span<uint8_t> to, Scales scales) {
  write(model, scales, to.data());
}

std::vector<uint8_t> encodeModel(const Model& model, Scales scales) {
  std::vector<uint8_t> bytes(encodedSize(model, scales));
  encodeModel(model, bytes, scales);
  return bytes;
}

std::vector<float> channelScales(const Model& model) {
  std::vector<float> scales;
  for (const Subgraph& subgraph : model.subgraphs)
    for (const Operand& operand : subgraph.operands)
      scales.insert(scales.end(), operand.perChannel.scales.begin(),
                    operand.perChannel.scales.end());
  return scales;
}

Result<Model> decodeModel(std::span<const uint8_t> bytes, std::vector<memory::PoolRef> pools,
                          std::span<const float> scales) {
  Reader reader(bytes, scales);
  if (const auto version = reader.number<uint32_t>(); version != kVersion)
    return fail(ErrorCode::kBadData, "The bytes of a model have the version {}, not {}.", version,
                kVersion);
  reader.readScalesApart();
  Model model;
  model.relaxFloat32ToFloat16 = reader.flag();
  model.constantBytes = reader.list<uint8_t>();
  model.pools = std::move(pools);
  const size_t subgraphs = reader.count(kLeastSubgraph);
  for (size_t i = 0; i < subgraphs && reader.isGood(); ++i) {
    HEARTH_ASSIGN(Subgraph subgraph, readSubgraph(reader));
    model.subgraphs.push_back(std::move(subgraph));
  }
  if (reader.isGood() && reader.hasBytes()) {
    readExtensions(reader, &model.extensions);
    if (model.extensions.empty())
      return fail(ErrorCode::kBadData, "The bytes of a model end with an empty list.");
  }
  if (!reader.isGood() || !reader.isAtEnd())
    return fail(ErrorCode::kBadData, "The {} bytes of a model {}.", bytes.size(),
                reader.isGood() ? "go on behind its end" : "end before it does");
  HEARTH_TRY(validate(model));
  return model;
}

}  // namespace hearth::graph
