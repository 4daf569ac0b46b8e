// SPDX-License-Identifier: Apache-2.0
#include "frontends/delegate/graph_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "frontends/delegate/node_reader.h"
#include "memory/constant_pool.h"

namespace hearth::delegate {
namespace {

namespace schema = tflite::schema;

constexpr size_t kLongestName = 1024;
constexpr size_t kConstantAlignment = 64;

std::optional<schema::TensorType> typeOf(TfLiteType type) {
  switch (type) {
    case kTfLiteFloat32:
      return schema::TensorType::FLOAT32;
    case kTfLiteInt32:
      return schema::TensorType::INT32;
    case kTfLiteUInt8:
      return schema::TensorType::UINT8;
    case kTfLiteInt64:
      return schema::TensorType::INT64;
    case kTfLiteBool:
      return schema::TensorType::BOOL;
    case kTfLiteInt16:
      return schema::TensorType::INT16;
    case kTfLiteComplex64:
      return schema::TensorType::COMPLEX64;
    case kTfLiteInt8:
      return schema::TensorType::INT8;
    case kTfLiteFloat16:
      return schema::TensorType::FLOAT16;
    case kTfLiteFloat64:
      return schema::TensorType::FLOAT64;
    case kTfLiteUInt64:
      return schema::TensorType::UINT64;
    case kTfLiteUInt32:
      return schema::TensorType::UINT32;
    case kTfLiteUInt16:
      return schema::TensorType::UINT16;
    case kTfLiteInt4:
      return schema::TensorType::INT4;
    case kTfLiteInt2:
      return schema::TensorType::INT2;
    default:
      return std::nullopt;
  }
}

template <typename Array>
std::vector<std::remove_extent_t<decltype(Array::data)>> valuesOf(const Array* array) {
  if (array == nullptr || array->size <= 0) return {};
  return {array->data, array->data + array->size};
}

// Whether the delegate takes tensors that are quantised like this one.
bool readQuantization(const TfLiteQuantization& from, SourceTensor* to) {
  if (from.type == kTfLiteNoQuantization || from.params == nullptr)
    return from.type == kTfLiteNoQuantization;
  if (from.type == kTfLiteAffineQuantization) {
    const auto& affine = *static_cast<const TfLiteAffineQuantization*>(from.params);
    if (affine.scale != nullptr && affine.scale->size > 0)
      to->scales = std::make_shared<const std::vector<float>>(valuesOf(affine.scale));
    if (affine.zero_point != nullptr && affine.zero_point->size > 0) {
      const std::span<const int32_t> points(affine.zero_point->data,
                                            static_cast<size_t>(affine.zero_point->size));
      const bool areSame = std::ranges::all_of(
          points, [first = points[0]](int32_t zeroPoint) { return zeroPoint == first; });
      to->zeroPoints.assign(points.begin(), areSame ? points.begin() + 1 : points.end());
    }
    to->quantizedDimension = affine.quantized_dimension;
    return true;
  }
  if (from.type != kTfLiteBlockwiseQuantization) return false;
  const auto& blocks = *static_cast<const TfLiteBlockwiseQuantization*>(from.params);
  to->blockScales = blocks.scale;
  to->blockZeroPoints = blocks.zero_point;
  to->blockSize = blocks.blocksize;
  return to->blockScales >= 0;
}

SourceSparsity readSparsity(const TfLiteSparsity& from) {
  SourceSparsity sparsity;
  sparsity.traversalOrder = valuesOf(from.traversal_order);
  sparsity.blockMap = valuesOf(from.block_map);
  for (int32_t i = 0; from.dim_metadata != nullptr && i < from.dim_metadata_size; ++i) {
    const TfLiteDimensionMetadata& dimension = from.dim_metadata[i];
    sparsity.dimensions.push_back(
        {dimension.format == 0 ? schema::DimensionType::DENSE : schema::DimensionType::SPARSE_CSR,
         dimension.dense_size, valuesOf(dimension.array_segments),
         valuesOf(dimension.array_indices)});
  }
  return sparsity;
}

}  // namespace

std::optional<graph::Dimensions> dimensionsOf(const TfLiteTensor& tensor) {
  graph::Dimensions dimensions;
  for (const int32_t dimension : valuesOf(tensor.dims)) {
    if (dimension < 0) return std::nullopt;
    dimensions.push_back(static_cast<uint32_t>(dimension));
  }
  return dimensions;
}

Result<std::vector<int32_t>> GraphReader::plan() const {
  TfLiteIntArray* plan = nullptr;
  if (context_->GetExecutionPlan(context_, &plan) != kTfLiteOk)
    return fail(ErrorCode::kOpFailed, "The runtime does not give its execution plan.");
  return valuesOf(plan);
}

Result<GraphReader::Node> GraphReader::node(int32_t index) {
  TfLiteNode* node = nullptr;
  TfLiteRegistration* registration = nullptr;
  if (context_->GetNodeAndRegistration(context_, index, &node, &registration) != kTfLiteOk ||
      node == nullptr || registration == nullptr)
    return fail(ErrorCode::kOpFailed, "The runtime does not give node {} of its execution plan.",
                index);
  Node read;
  read.index = index;
  read.inputs = valuesOf(node->inputs);
  read.outputs = valuesOf(node->outputs);
  const auto exists = [this](int32_t tensor) {
    return this->tensor(tensor) != nullptr;
  };
  const auto existsOrOmitted = [&](int32_t tensor) {
    return tensor == -1 || exists(tensor);
  };
  // Nodes that another delegate has taken belong to it.
  if (node->delegate == nullptr && std::ranges::all_of(read.inputs, existsOrOmitted) &&
      std::ranges::all_of(read.outputs, exists))
    read.source = readNode(*node, *registration);
  return read;
}

const TfLiteTensor* GraphReader::tensor(int32_t index) const {
  return index < 0 || static_cast<size_t>(index) >= context_->tensors_size
             ? nullptr
             : &context_->tensors[index];
}

std::optional<SourceTensor> GraphReader::readTensor(const TfLiteTensor& tensor) {
  SourceTensor read;
  const auto type = typeOf(tensor.type);
  const auto dimensions = dimensionsOf(tensor);
  if (!type || !dimensions || !readQuantization(tensor.quantization, &read)) return std::nullopt;
  read.type = *type;
  read.dimensions = *dimensions;
  if (tensor.name != nullptr) read.name.assign(tensor.name, ::strnlen(tensor.name, kLongestName));
  read.isVariable = tensor.is_variable;
  if (tensor.sparsity != nullptr) read.sparsity = readSparsity(*tensor.sparsity);
  if (tensor.allocation_type == kTfLiteMmapRo) {
    // A tensor without elements has no value, as in a file; RESHAPE to a scalar has such an input.
    if (tensor.bytes == 0) return read;
    if (tensor.data == nullptr) return std::nullopt;
    read.constant = files_.find(tensor.data, tensor.bytes);
    if (!read.constant)
      read.constant =
          ConstantPlace{memory::Pool::borrowed(tensor.data, tensor.bytes), 0, tensor.bytes};
    return read;
  }
  const std::vector<int32_t> signature = valuesOf(tensor.dims_signature);
  if (signature.size() == read.dimensions.size() &&
      std::ranges::find(signature, -1) != signature.end())
    for (const int32_t dimension : signature) read.isOpen.push_back(dimension == -1);
  return read;
}

const std::optional<SourceTensor>& GraphReader::sourceTensor(int32_t index) {
  const auto found = tensors_.find(index);
  if (found != tensors_.end()) return found->second;
  return tensors_.emplace(index, readTensor(context_->tensors[index])).first->second;
}

Status GraphReader::addTensor(int32_t index, PartitionSource* source) {
  if (index < 0 || source->tensors.contains(index)) return {};
  if (tensor(index) == nullptr)
    return fail(ErrorCode::kBadData, "The tensor {} does not exist, the runtime has {}.", index,
                context_->tensors_size);
  const std::optional<SourceTensor>& read = sourceTensor(index);
  if (!read)
    return fail(ErrorCode::kUnsupported,
                "The tensor {} has a type or a quantisation that is not supported.", index);
  source->tensors.emplace(index, *read);
  if (read->blockScales >= 0) HEARTH_TRY(addTensor(read->blockScales, source));
  if (read->blockZeroPoints > 0) HEARTH_TRY(addTensor(read->blockZeroPoints, source));
  return {};
}

Result<PartitionSource> GraphReader::partition(std::span<const SourceNode* const> nodes,
                                               std::span<const int32_t> inputs,
                                               std::span<const int32_t> outputs) {
  PartitionSource source;
  for (const SourceNode* node : nodes) {
    for (const auto* list : {&node->inputs, &node->outputs, &node->intermediates})
      for (const int32_t tensor : *list) HEARTH_TRY(addTensor(tensor, &source));
    source.nodes.push_back(*node);
  }
  for (const int32_t input : inputs) {
    const auto found = source.tensors.find(input);
    // The runtime counts constants among the inputs.
    if (found == source.tensors.end() || found->second.isVariable ||
        tensor(input)->allocation_type == kTfLiteMmapRo)
      continue;
    source.inputs.push_back(input);
  }
  for (const int32_t output : outputs) {
    HEARTH_TRY(addTensor(output, &source));
    if (!source.tensors.at(output).isVariable) source.outputs.push_back(output);
  }
  source.isOfFile = isOfFile(source);
  return source;
}

// The runtime has its tensors' names where it has the tables that it reads the graph from.
bool GraphReader::isOfFile(const PartitionSource& source) const {
  const memory::Pool* file = nullptr;
  for (const auto& [index, read] : source.tensors) {
    if (!read.constant) continue;
    if (file != nullptr && file != read.constant->pool.get()) return false;
    file = read.constant->pool.get();
  }
  return file != nullptr && std::ranges::all_of(source.tensors, [&](const auto& entry) {
           return files_.fileAt(tensor(entry.first)->name) == file;
         });
}

Status copyConstants(PartitionSource* source) {
  std::vector<ConstantPlace*> places;
  std::vector<size_t> offsets;
  size_t size = 0;
  for (auto& [index, tensor] : source->tensors) {
    if (!tensor.constant || tensor.constant->pool->kind() != memory::PoolKind::kBorrowed) continue;
    places.push_back(&*tensor.constant);
    offsets.push_back(size);
    size += (tensor.constant->length + kConstantAlignment - 1) / kConstantAlignment *
            kConstantAlignment;
  }
  if (places.empty()) return {};
  HEARTH_ASSIGN(const memory::PoolRef pool, memory::constantPool(size, [&](uint8_t* bytes) {
                  for (size_t i = 0; i < places.size(); ++i)
                    std::memcpy(bytes + offsets[i], places[i]->pool->data() + places[i]->offset,
                                places[i]->length);
                }));
  for (size_t i = 0; i < places.size(); ++i) *places[i] = {pool, offsets[i], places[i]->length};
  return {};
}

}  // namespace hearth::delegate
