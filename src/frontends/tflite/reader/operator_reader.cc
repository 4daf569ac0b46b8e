// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite/reader/operator_reader.h"

#include <utility>

#include "frontends/tflite/reader/text.h"

namespace hearth::tflite {
namespace {

Result<std::vector<int32_t>> readTensors(const flatbuffers::Vector<int32_t>* source, size_t count,
                                         bool mayOmit) {
  std::vector<int32_t> tensors;
  if (source == nullptr) return tensors;
  tensors.assign(source->begin(), source->end());
  for (const int32_t tensor : tensors)
    if (tensor < (mayOmit ? -1 : 0) || (tensor >= 0 && static_cast<size_t>(tensor) >= count))
      return fail(ErrorCode::kBadData, "An operation refers to tensor {} of {}.", tensor, count);
  return tensors;
}

}  // namespace

Result<std::span<const uint8_t>> customOptionsOf(const FileView& view,
                                                 const schema::Operator& source) {
  if (const auto* bytes = source.custom_options(); bytes != nullptr && bytes->size() != 0)
    return std::span(bytes->data(), bytes->size());
  const uint64_t offset = source.large_custom_options_offset();
  const uint64_t size = source.large_custom_options_size();
  // Converters write an offset of 1 where there are none.
  if (offset <= 1 || size == 0) return std::span<const uint8_t>();
  const memory::PoolRef& file = view.pool();
  if (offset > file->size() || size > file->size() - offset)
    return fail(ErrorCode::kBadData,
                "Its options are {} bytes at {}, outside of the file of {} bytes.", size, offset,
                file->size());
  return std::span(file->data() + offset, size);
}

Result<std::vector<FileOperator>> readOperators(const FileView& view, size_t subgraph) {
  const schema::SubGraph* const graph = view.subgraph(subgraph);
  if (graph == nullptr)
    return fail(ErrorCode::kNotFound, "There is no subgraph {}; the model has {}.", subgraph,
                view.subgraphCount());
  std::vector<FileOperator> read;
  if (graph->operators() == nullptr) return read;
  const size_t tensors = graph->tensors() == nullptr ? 0 : graph->tensors()->size();
  for (const schema::Operator* source : *graph->operators()) {
    const schema::OperatorCode* const code = view.operatorCode(source->opcode_index());
    if (code == nullptr)
      return fail(ErrorCode::kBadData,
                  "An operation of subgraph {} has the operator code {}, which the model lacks.",
                  subgraph, source->opcode_index());
    FileOperator& operation = read.emplace_back();
    operation.code = static_cast<int32_t>(builtinCode(*code));
    operation.version = code->version();
    operation.name = operationName(*code);
    operation.customName = cleanText(code->custom_code());
    HEARTH_ASSIGN(operation.inputs, readTensors(source->inputs(), tensors, true));
    HEARTH_ASSIGN(operation.outputs, readTensors(source->outputs(), tensors, false));
    HEARTH_ASSIGN(operation.intermediates, readTensors(source->intermediates(), tensors, true));
    HEARTH_ASSIGN(operation.customOptions, customOptionsOf(view, *source));
    operation.table = source;
  }
  return read;
}

}  // namespace hearth::tflite
