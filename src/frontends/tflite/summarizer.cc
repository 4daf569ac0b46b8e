// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite/summarizer.h"

#include <map>
#include <set>
#include <utility>

#include "frontends/tflite/reader/tensor_operand.h"
#include "frontends/tflite/reader/text.h"
#include "frontends/tflite/translators/translators.h"

namespace hearth::tflite {
namespace {

class Summarizer {
 public:
  explicit Summarizer(const FileView& file)
      : file_(file), budget_(8 * file.pool()->size() + (uint64_t{1} << 20)) {}

  ModelSummary run() {
    ModelSummary summary;
    const schema::Model& model = file_.model();
    summary.description = cleanText(model.description());
    summary.version = model.version();
    summary.fileBytes = file_.pool()->size();
    for (size_t i = 0; i < file_.subgraphCount(); ++i)
      summary.subgraphs.push_back(summarizeSubgraph(*file_.subgraph(i)));
    if (model.signature_defs() != nullptr)
      for (const schema::SignatureDef* signature : *model.signature_defs())
        summary.signatures.push_back({.key = cleanText(signature->signature_key()),
                                      .subgraph = signature->subgraph_index(),
                                      .inputs = summarizeArguments(signature->inputs()),
                                      .outputs = summarizeArguments(signature->outputs())});
    summary.weightBytes = weightBytes_;
    return summary;
  }

 private:
  // Takes `bytes` from the budget; false when there is no room for them.
  bool take(uint64_t bytes) {
    if (bytes > budget_) return false;
    budget_ -= bytes;
    return true;
  }

  std::string text(const flatbuffers::String* source) {
    return source != nullptr && take(source->size()) ? cleanText(source) : std::string();
  }

  std::vector<SignatureArgument> summarizeArguments(
      const flatbuffers::Vector<flatbuffers::Offset<schema::TensorMap>>* maps) {
    std::vector<SignatureArgument> arguments;
    if (maps == nullptr) return arguments;
    for (const schema::TensorMap* entry : *maps)
      if (take(sizeof(SignatureArgument)))
        arguments.push_back({text(entry->name()), entry->tensor_index()});
    return arguments;
  }

  TensorSummary summarizeTensor(const schema::Tensor& tensor) {
    TensorSummary summary;
    summary.name = text(tensor.name());
    summary.tfliteType = tensorTypeName(tensor.type());
    summary.isVariable = tensor.is_variable();
    if (auto dimensions = readDimensions(tensor, summary.name, ShapeSource::kSignature))
      summary.dimensions = std::move(*dimensions);
    if (const schema::QuantizationParameters* quantization = tensor.quantization()) {
      const auto* scales = quantization->scale();
      if (scales != nullptr && take(scales->size() * sizeof(float)))
        summary.scales.assign(scales->begin(), scales->end());
      const auto* zeroPoints = quantization->zero_point();
      if (zeroPoints != nullptr && take(zeroPoints->size() * sizeof(int64_t)))
        for (uint32_t i = 0; i < zeroPoints->size(); ++i)
          summary.zeroPoints.push_back(zeroPointAt(*zeroPoints, i));
    }
    const auto range = file_.buffer(tensor.buffer());
    if (range && range->has_value() && !tensor.is_variable()) {
      summary.constantBytes = (*range)->length;
      if (buffers_.insert(tensor.buffer()).second) weightBytes_ += (*range)->length;
    }
    return summary;
  }

  std::vector<uint32_t> indices(const flatbuffers::Vector<int32_t>* source, size_t tensors) {
    std::vector<uint32_t> found;
    if (source == nullptr || !take(source->size() * sizeof(uint32_t))) return found;
    for (const int32_t index : *source)
      if (index >= 0 && static_cast<size_t>(index) < tensors)
        found.push_back(static_cast<uint32_t>(index));
    return found;
  }

  void addOperation(const schema::Operator& source, size_t index,
                    std::map<uint32_t, size_t>* positions, SubgraphSummary* summary) {
    const auto [entry, isNew] =
        positions->try_emplace(source.opcode_index(), summary->operations.size());
    if (isNew) {
      OperationSummary operation;
      operation.firstIndex = index;
      if (const schema::OperatorCode* code = file_.operatorCode(source.opcode_index())) {
        const schema::BuiltinOperator builtin = builtinCode(*code);
        operation.name = operationName(*code);
        operation.builtinCode = static_cast<int32_t>(builtin);
        operation.isCustom = builtin == schema::BuiltinOperator::CUSTOM;
        operation.version = code->version();
        operation.isSupported = findTranslator(*code) != nullptr;
      }
      summary->operations.push_back(std::move(operation));
    }
    ++summary->operations[entry->second].count;
  }

  SubgraphSummary summarizeSubgraph(const schema::SubGraph& source) {
    SubgraphSummary summary;
    summary.name = text(source.name());
    if (source.tensors() != nullptr) {
      for (const schema::Tensor* tensor : *source.tensors()) {
        if (!take(sizeof(TensorSummary))) break;
        summary.tensors.push_back(summarizeTensor(*tensor));
      }
    }
    summary.inputs = indices(source.inputs(), summary.tensors.size());
    summary.outputs = indices(source.outputs(), summary.tensors.size());
    if (source.operators() != nullptr) {
      summary.operationCount = source.operators()->size();
      // Codes that a file repeats get a line each. No converter writes such files.
      std::map<uint32_t, size_t> positions;
      for (uint32_t i = 0; i < source.operators()->size(); ++i)
        addOperation(*source.operators()->Get(i), i, &positions, &summary);
    }
    return summary;
  }

  const FileView& file_;
  uint64_t budget_;
  uint64_t weightBytes_ = 0;
  std::set<uint32_t> buffers_;
};

}  // namespace

ModelSummary summarize(const FileView& file) {
  return Summarizer(file).run();
}

}  // namespace hearth::tflite
