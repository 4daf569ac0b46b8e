// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite/file_tensor_reader.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "frontends/tflite/reader/file_view.h"
#include "frontends/tflite/reader/text.h"

namespace hearth::tflite {
namespace {

using Indices = flatbuffers::Vector<int32_t>;

Result<std::vector<int32_t>> readIndices(const Indices* source, size_t tensors, const char* what) {
  std::vector<int32_t> indices;
  if (source == nullptr) return indices;
  indices.assign(source->begin(), source->end());
  for (const int32_t index : indices)
    if (index < 0 || static_cast<size_t>(index) >= tensors)
      return fail(ErrorCode::kBadData, "A subgraph has the {} {}; it has {} tensors.", what, index,
                  tensors);
  return indices;
}

// Nothing where the file names tensors that do not exist.
FileBlocks readBlocks(const FileView& view, const schema::SubGraph& graph,
                      const schema::QuantizationParameters* quantization) {
  const auto* const blocks =
      quantization == nullptr ? nullptr : quantization->details_as_BlockwiseQuantization();
  if (blocks == nullptr || view.tensor(graph, blocks->scales()) == nullptr) return {};
  const bool hasZeros = view.tensor(graph, blocks->zero_points()) != nullptr;
  return {blocks->scales(), hasZeros ? blocks->zero_points() : -1, blocks->block_size()};
}

std::vector<SignatureArgument> readArguments(
    const flatbuffers::Vector<flatbuffers::Offset<schema::TensorMap>>* maps) {
  std::vector<SignatureArgument> arguments;
  if (maps == nullptr) return arguments;
  for (const schema::TensorMap* entry : *maps)
    arguments.push_back({cleanText(entry->name()), entry->tensor_index()});
  return arguments;
}

}  // namespace

Result<FileSubgraph> readSubgraph(const FileView& view, size_t subgraph) {
  const schema::SubGraph* const source = view.subgraph(subgraph);
  if (source == nullptr)
    return fail(ErrorCode::kNotFound, "There is no subgraph {}; the model has {}.", subgraph,
                view.subgraphCount());
  FileSubgraph read;
  read.name = cleanText(source->name());
  read.tensorCount = source->tensors() == nullptr ? 0 : source->tensors()->size();
  HEARTH_ASSIGN(read.inputs, readIndices(source->inputs(), read.tensorCount, "input"));
  HEARTH_ASSIGN(read.outputs, readIndices(source->outputs(), read.tensorCount, "output"));
  for (size_t i = 0; i < read.tensorCount; ++i)
    if (const schema::Tensor* tensor = view.tensor(*source, static_cast<int64_t>(i));
        tensor != nullptr && tensor->is_variable())
      read.variables.push_back(static_cast<int32_t>(i));
  return read;
}

Result<FileTensor> readTensor(const FileView& view, size_t subgraph, size_t tensor) {
  const schema::SubGraph* const graph = view.subgraph(subgraph);
  const schema::Tensor* const source =
      graph == nullptr ? nullptr : view.tensor(*graph, static_cast<int64_t>(tensor));
  if (source == nullptr)
    return fail(ErrorCode::kNotFound, "There is no tensor {} in subgraph {}.", tensor, subgraph);
  FileTensor read;
  read.name = cleanText(source->name());
  read.type = static_cast<int32_t>(source->type());
  read.isVariable = source->is_variable();
  if (source->shape() != nullptr)
    read.shape.assign(source->shape()->begin(), source->shape()->end());
  if (std::ranges::any_of(read.shape, [](int32_t dimension) { return dimension < 0; }))
    return fail(ErrorCode::kBadData, "The tensor \"{}\" has a negative dimension.", read.name);
  if (const auto* const signature = source->shape_signature(); signature != nullptr)
    read.shapeSignature.assign(signature->begin(), signature->end());
  if (const schema::QuantizationParameters* const quantization = source->quantization();
      quantization != nullptr && quantization->scale() != nullptr) {
    read.scales.assign(quantization->scale()->begin(), quantization->scale()->end());
    read.zeroPoints.resize(read.scales.size());
    // As with the scales, one stands for all.
    if (const auto* const zeros = quantization->zero_point();
        zeros != nullptr && zeros->size() != 0)
      for (uint32_t i = 0; i < read.zeroPoints.size(); ++i)
        read.zeroPoints[i] = zeroPointAt(*zeros, std::min(i, zeros->size() - 1));
    read.quantizedDimension = quantization->quantized_dimension();
  }
  read.blocks = readBlocks(view, *graph, source->quantization());
  read.sparsity = source->sparsity();
  HEARTH_ASSIGN(const std::optional<BufferRange> range, view.buffer(source->buffer()));
  if (range && !read.isVariable) read.value = view.bytes(*range);
  return read;
}

std::vector<SignatureSummary> readSignatures(const FileView& view) {
  std::vector<SignatureSummary> signatures;
  if (view.model().signature_defs() == nullptr) return signatures;
  for (const schema::SignatureDef* source : *view.model().signature_defs())
    signatures.push_back({.key = cleanText(source->signature_key()),
                          .subgraph = source->subgraph_index(),
                          .inputs = readArguments(source->inputs()),
                          .outputs = readArguments(source->outputs())});
  return signatures;
}

}  // namespace hearth::tflite
