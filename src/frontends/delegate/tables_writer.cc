// SPDX-License-Identifier: Apache-2.0
#include "frontends/delegate/tables_writer.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "frontends/tflite/reader/file_view.h"

namespace hearth::delegate {
namespace {

namespace schema = tflite::schema;
using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

// A FlatBuffer cannot grow to 2 GiB.
constexpr size_t kMostTableBytes = size_t{1} << 29;

template <typename T>
Offset<flatbuffers::Vector<T>> listOrNone(FlatBufferBuilder& builder, const std::vector<T>& list) {
  return list.empty() ? Offset<flatbuffers::Vector<T>>() : builder.CreateVector(list);
}

Offset<void> writeIndices(FlatBufferBuilder& builder, const std::vector<int32_t>& values) {
  return schema::CreateInt32VectorDirect(builder, &values).Union();
}

Offset<schema::SparsityParameters> writeSparsity(FlatBufferBuilder& builder,
                                                 const SourceSparsity& source) {
  std::vector<Offset<schema::DimensionMetadata>> dimensions;
  for (const SourceSparsity::Dimension& dimension : source.dimensions) {
    if (dimension.format == schema::DimensionType::DENSE) {
      dimensions.push_back(
          schema::CreateDimensionMetadata(builder, dimension.format, dimension.denseSize));
      continue;
    }
    const auto segments = writeIndices(builder, dimension.segments);
    const auto indices = writeIndices(builder, dimension.indices);
    dimensions.push_back(schema::CreateDimensionMetadata(
        builder, dimension.format, dimension.denseSize, schema::SparseIndexVector::Int32Vector,
        segments, schema::SparseIndexVector::Int32Vector, indices));
  }
  return schema::CreateSparsityParametersDirect(builder, &source.traversalOrder, &source.blockMap,
                                                &dimensions);
}

// About as many bytes as the tables of a partition take. The builder would copy all of them
// whenever it grows, into pages that are new.
size_t expectedSize(const PartitionSource& source) {
  constexpr size_t kEach = 320;
  size_t size = kEach * (source.tensors.size() + source.nodes.size() + 1);
  for (const auto& [index, tensor] : source.tensors) {
    size += tensor.name.size() + tensor.zeroPoints.size() * sizeof(int64_t);
    if (tensor.scales != nullptr) size += tensor.scales->size() * sizeof(float);
  }
  return std::min(size, kMostTableBytes);
}

class Writer {
 public:
  Writer(const PartitionSource& source, ShapeTrust trust)
      : source_(source), trust_(trust), builder_(expectedSize(source)) {}

  Result<WrittenTables> write() {
    for (const auto& [index, tensor] : source_.tensors) {
      indices_.emplace(index, static_cast<int32_t>(result_.tensors.size()));
      result_.tensors.push_back(index);
    }
    // Buffer 0 is that of tensors without a value.
    buffers_.push_back(schema::CreateBuffer(builder_));
    for (const auto& [index, tensor] : source_.tensors) {
      HEARTH_TRY(writeTensor(index, tensor));
      HEARTH_TRY(checkSize());
    }
    for (const SourceNode& node : source_.nodes) {
      writeNode(node);
      HEARTH_TRY(checkSize());
    }
    const std::vector<int32_t> inputs = renumbered(source_.inputs);
    const std::vector<int32_t> outputs = renumbered(source_.outputs);
    const std::vector<Offset<schema::SubGraph>> subgraphs = {
        schema::CreateSubGraphDirect(builder_, &tensors_, &inputs, &outputs, &operators_)};
    constexpr uint32_t kVersion = 3;
    schema::FinishModelBuffer(builder_, schema::CreateModelDirect(builder_, kVersion, &codes_,
                                                                  &subgraphs, nullptr, &buffers_));
    keepTables();
    return std::move(result_);
  }

 private:
  Status checkSize() const {
    if (builder_.GetSize() <= kMostTableBytes) return {};
    return fail(ErrorCode::kUnsupported,
                "The tables of the partition have more than {} bytes, which is not supported.",
                kMostTableBytes);
  }

  // The pool owns the bytes. The content of a pool without a descriptor is identified by reading
  // all of it, which suits tables that are written anew at each start.
  void keepTables() {
    struct Kept {
      flatbuffers::DetachedBuffer bytes;
      memory::PoolRef pool;
    };
    const auto kept = std::make_shared<Kept>();
    kept->bytes = builder_.Release();
    kept->pool = memory::Pool::borrowed(kept->bytes.data(), kept->bytes.size());
    result_.tables = memory::PoolRef(kept, kept->pool.get());
  }

  std::vector<int32_t> renumbered(const std::vector<int32_t>& tensors) const {
    std::vector<int32_t> result;
    for (const int32_t tensor : tensors) result.push_back(tensor < 0 ? -1 : indices_.at(tensor));
    return result;
  }

  uint32_t writeBuffer(const ConstantPlace& place) {
    auto found = std::ranges::find(result_.values, place.pool);
    if (found == result_.values.end())
      found = result_.values.insert(result_.values.end(), place.pool);
    const auto pool = static_cast<uint64_t>(found - result_.values.begin()) + 1;
    buffers_.push_back(
        schema::CreateBuffer(builder_, 0, pool * tflite::kPoolSpan + place.offset, place.length));
    return static_cast<uint32_t>(buffers_.size()) - 1;
  }

  Offset<schema::QuantizationParameters> writeQuantization(const SourceTensor& tensor) {
    if (tensor.blockScales >= 0) {
      const auto blocks = schema::CreateBlockwiseQuantization(
          builder_, indices_.at(tensor.blockScales),
          tensor.blockZeroPoints > 0 ? indices_.at(tensor.blockZeroPoints) : -1, tensor.blockSize);
      return schema::CreateQuantizationParameters(
          builder_, 0, 0, 0, 0, schema::QuantizationDetails::BlockwiseQuantization, blocks.Union());
    }
    if (tensor.scales == nullptr) return {};
    const auto scales = builder_.CreateVector(*tensor.scales);
    const auto zeroPoints = builder_.CreateVector(tensor.zeroPoints);
    return schema::CreateQuantizationParameters(builder_, 0, 0, scales, zeroPoints,
                                                schema::QuantizationDetails::NONE, 0,
                                                tensor.quantizedDimension);
  }

  Status writeTensor(int32_t index, const SourceTensor& tensor) {
    std::vector<int32_t> shape(tensor.dimensions.begin(), tensor.dimensions.end());
    std::vector<int32_t> signature;
    const bool isGiven = tensor.constant || tensor.isVariable ||
                         std::ranges::find(source_.inputs, index) != source_.inputs.end();
    if (!isGiven && !shape.empty() && (trust_ == ShapeTrust::kUnknown || !tensor.isOpen.empty())) {
      signature = shape;
      for (size_t i = 0; i < signature.size(); ++i)
        if (trust_ == ShapeTrust::kUnknown || (i < tensor.isOpen.size() && tensor.isOpen[i]))
          signature[i] = -1;
    }
    const uint32_t buffer = tensor.constant ? writeBuffer(*tensor.constant) : 0;
    const auto name = builder_.CreateString(tensor.name);
    const auto quantization = writeQuantization(tensor);
    const auto sparsity = tensor.sparsity ? writeSparsity(builder_, *tensor.sparsity)
                                          : Offset<schema::SparsityParameters>();
    const auto shapeList = builder_.CreateVector(shape);
    const auto signatureList = listOrNone(builder_, signature);
    tensors_.push_back(schema::CreateTensor(builder_, shapeList, tensor.type, buffer, name,
                                            quantization, tensor.isVariable, sparsity,
                                            signatureList));
    return {};
  }

  uint32_t codeOf(const SourceNode& node) {
    const auto key = std::make_tuple(node.code, node.version, node.customCode);
    const auto [entry, isNew] = codeIndices_.try_emplace(key, static_cast<uint32_t>(codes_.size()));
    if (isNew) {
      const auto custom = node.customCode.empty() ? Offset<flatbuffers::String>()
                                                  : builder_.CreateString(node.customCode);
      constexpr int32_t kLastOldCode = 127;
      codes_.push_back(schema::CreateOperatorCode(
          builder_, static_cast<int8_t>(std::min(static_cast<int32_t>(node.code), kLastOldCode)),
          custom, node.version, node.code));
    }
    return entry->second;
  }

  void writeNode(const SourceNode& node) {
    const uint32_t code = codeOf(node);
    const auto inputs = builder_.CreateVector(renumbered(node.inputs));
    const auto outputs = builder_.CreateVector(renumbered(node.outputs));
    const auto intermediates = listOrNone(builder_, renumbered(node.intermediates));
    const Offset<void> options = node.options ? node.options(builder_) : Offset<void>();
    const auto custom = listOrNone(builder_, node.customOptions);
    schema::OperatorBuilder table(builder_);
    table.add_opcode_index(code);
    table.add_inputs(inputs);
    table.add_outputs(outputs);
    table.add_builtin_options_type(node.optionsType);
    if (node.optionsType != schema::BuiltinOptions::NONE) table.add_builtin_options(options);
    table.add_builtin_options_2_type(node.optionsType2);
    if (node.optionsType2 != schema::BuiltinOptions2::NONE) table.add_builtin_options_2(options);
    table.add_custom_options(custom);
    table.add_intermediates(intermediates);
    operators_.push_back(table.Finish());
  }

  const PartitionSource& source_;
  const ShapeTrust trust_;
  FlatBufferBuilder builder_;
  WrittenTables result_;
  std::map<int32_t, int32_t> indices_;  // the source's tensor -> the model's
  std::map<std::tuple<schema::BuiltinOperator, int32_t, std::string>, uint32_t> codeIndices_;
  std::vector<Offset<schema::OperatorCode>> codes_;
  std::vector<Offset<schema::Tensor>> tensors_;
  std::vector<Offset<schema::Operator>> operators_;
  std::vector<Offset<schema::Buffer>> buffers_;
};

}  // namespace

Result<WrittenTables> writeTables(const PartitionSource& source, ShapeTrust trust) {
  return Writer(source, trust).write();
}

}  // namespace hearth::delegate
