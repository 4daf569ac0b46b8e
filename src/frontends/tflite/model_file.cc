// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite/model_file.h"

#include <algorithm>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <system_error>
#include <utility>

#include "base/format.h"
#include "base/inflate.h"
#include "base/mutex.h"
#include "base/trace.h"
#include "frontends/tflite/container/container.h"
#include "frontends/tflite/container/zip_directory.h"
#include "frontends/tflite/file_tensor_reader.h"
#include "frontends/tflite/metadata_reader.h"
#include "frontends/tflite/reader/file_view.h"
#include "frontends/tflite/reader/foreign_file.h"
#include "frontends/tflite/reader/operator_reader.h"
#include "frontends/tflite/reader/scattered_reads.h"
#include "frontends/tflite/reader/tensor_operand.h"
#include "frontends/tflite/reader/text.h"
#include "frontends/tflite/summarizer.h"
#include "frontends/tflite/translators/model_builder.h"
#include "frontends/tflite/translators/translators.h"

namespace hearth::tflite {

class ModelFile::Contents {
 public:
  explicit Contents(FileView file) : view(std::move(file)) {}
  FileView view;

  // A deflated file behind the model, which is kept. Thread-safe.
  Result<std::span<const uint8_t>> unpacked(std::string_view name, std::span<const uint8_t> packed,
                                            const Deflated& deflated) const {
    const auto bytesOf = [](const std::string& text) {
      return std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size());
    };
    {
      const std::scoped_lock lock(mutex_);
      const auto found = unpacked_.find(name);
      if (found != unpacked_.end()) return bytesOf(found->second);
    }
    auto plain = base::unpackDeflated(packed, deflated.size, deflated.crc);
    if (!plain)
      return std::unexpected(
          std::move(plain.error())
              .addContext(base::formatText("while reading the file {} behind the model", name)));
    const std::scoped_lock lock(mutex_);
    return bytesOf(unpacked_.emplace(name, std::move(*plain)).first->second);
  }

 private:
  mutable base::Mutex mutex_;
  mutable std::map<std::string, std::string, std::less<>> unpacked_;
};

namespace {

using TensorMaps = flatbuffers::Vector<flatbuffers::Offset<schema::TensorMap>>;

// The visible arguments on one side of a subgraph, and the names that the signature gives them.
struct Arguments {
  std::vector<int32_t> tensors;
  std::map<int64_t, std::deque<std::string>> names;  // by tensor, in the order of the signature
};

Arguments argumentsOf(const flatbuffers::Vector<int32_t>* indices, const TensorMaps* signature) {
  Arguments arguments;
  if (indices != nullptr) arguments.tensors.assign(indices->begin(), indices->end());
  if (signature == nullptr) return arguments;
  for (const schema::TensorMap* entry : *signature)
    arguments.names[entry->tensor_index()].push_back(cleanText(entry->name()));
  return arguments;
}

// Several names of a signature may stand for one tensor, which the subgraph lists once or as often:
// each name is an output.
std::vector<int32_t> addSharedOutputs(Arguments* arguments) {
  std::map<int64_t, size_t> listed;
  for (const int32_t tensor : arguments->tensors) ++listed[tensor];
  std::vector<int32_t> added;
  for (const auto& [tensor, count] : listed)
    if (const auto names = arguments->names.find(tensor); names != arguments->names.end())
      for (size_t i = count; i < names->second.size(); ++i)
        added.push_back(static_cast<int32_t>(tensor));
  arguments->tensors.insert(arguments->tensors.end(), added.begin(), added.end());
  return added;
}

// Describes the arguments of a subgraph. It was imported, so every index and type is valid, unless
// somebody truncates the file meanwhile.
Result<std::vector<TensorInfo>> describeTensors(const FileView& view,
                                                const schema::SubGraph& subgraph,
                                                Arguments arguments) {
  std::vector<TensorInfo> tensors;
  for (const int32_t index : arguments.tensors) {
    const schema::Tensor* const found = view.tensor(subgraph, index);
    if (found == nullptr)
      return fail(ErrorCode::kBadData, "The file was written while it was read; read it again.");
    const schema::Tensor& tensor = *found;
    TensorInfo info;
    info.tensorName = cleanText(tensor.name());
    HEARTH_ASSIGN(const graph::Operand operand,
                  makeOperand(tensor, info.tensorName, ShapeSource::kSignature, view.scaleLists()));
    HEARTH_ASSIGN(info.fileDimensions, readDimensions(tensor, info.tensorName, ShapeSource::kFile));
    info.name = info.tensorName;
    if (const auto names = arguments.names.find(index);
        names != arguments.names.end() && !names->second.empty()) {
      if (!names->second.front().empty()) info.name = std::move(names->second.front());
      names->second.pop_front();
    }
    info.type = operand.type;
    info.dimensions = operand.dimensions;
    info.isRankZeroTensor = operand.isRankZeroTensor;
    info.scale = operand.scale;
    info.zeroPoint = operand.zeroPoint;
    info.tfliteType = tensorTypeName(tensor.type());
    tensors.push_back(std::move(info));
  }
  return tensors;
}

// Reads ahead the lists of scales and zero points. Those of language models have megabytes and the
// import reads all of them; from a disk they then come at once instead of page by page.
void readListsAhead(const FileView& view, size_t index, const ScatteredReads& reads) {
  constexpr size_t kLong = size_t{16} << 10;
  bool isFirst = true;
  const auto readAhead = [&](const auto* list, size_t elementSize) {
    if (list == nullptr || list->size() < kLong / elementSize) return true;
    const size_t size = list->size() * elementSize;
    // If the middle of the first list is in memory, the rest mostly is, too. Its ends prove
    // nothing: the verifier has read both.
    if (std::exchange(isFirst, false) && reads.isResident(list->Data() + size / 2)) return false;
    reads.begin(list->Data(), size);
    return true;
  };
  const schema::SubGraph* const subgraph = view.subgraph(index);
  const auto* const tensors = subgraph == nullptr ? nullptr : subgraph->tensors();
  if (tensors == nullptr) return;
  for (uint32_t i = 0; i < tensors->size(); ++i) {
    const schema::Tensor* const tensor = view.tensor(*subgraph, i);
    const auto* const quantization = tensor == nullptr ? nullptr : tensor->quantization();
    if (quantization == nullptr) continue;
    if (!readAhead(quantization->scale(), sizeof(float)) ||
        !readAhead(quantization->zero_point(), sizeof(int64_t)))
      return;
  }
}

Result<ImportedGraph> importGraph(const FileView& view, size_t index,
                                  const schema::SignatureDef* signature, Shapes shapes,
                                  const SubgraphPlans* plans = nullptr) {
  const base::TraceSpan span("tflite", "import");
  const ScatteredReads scattered(*view.pool());
  readListsAhead(view, index, scattered);
  ModelBuilder builder(view, shapes == Shapes::kOpen, plans);
  ImportedGraph imported;
  const schema::SubGraph* const subgraph = view.subgraph(index);
  Arguments inputs;
  Arguments outputs;
  std::vector<int32_t> shared;
  if (subgraph != nullptr) {
    inputs = argumentsOf(subgraph->inputs(), signature == nullptr ? nullptr : signature->inputs());
    outputs =
        argumentsOf(subgraph->outputs(), signature == nullptr ? nullptr : signature->outputs());
    shared = addSharedOutputs(&outputs);
  }
  HEARTH_ASSIGN(imported.model, builder.build(index, std::move(shared)));
  HEARTH_ASSIGN(imported.inputs, describeTensors(view, *subgraph, std::move(inputs)));
  HEARTH_ASSIGN(imported.outputs, describeTensors(view, *subgraph, std::move(outputs)));
  // Some operations say themselves what their outputs are, whatever the file holds.
  const graph::Subgraph& main = imported.model->main();
  for (size_t i = 0; i < imported.outputs.size(); ++i) {
    const graph::Operand& output = main.operands[main.outputs[i]];
    TensorInfo& info = imported.outputs[i];
    info.type = output.type;
    info.dimensions = output.dimensions;
    info.isRankZeroTensor = output.isRankZeroTensor;
    info.scale = output.scale;
    info.zeroPoint = output.zeroPoint;
  }
  for (VariablePosition& variable : builder.takeVariables()) {
    imported.states.push_back({variable.input, variable.output, std::move(variable.initialValue)});
    imported.stateTensors.push_back(variable.tensor);
  }
  if (signature != nullptr) imported.signatureKey = cleanText(signature->signature_key());
  return imported;
}

// "en" of "en-US".
std::string_view languageOf(std::string_view locale) {
  return locale.substr(0, locale.find_first_of("-_"));
}

// The range of the file that holds the model: the whole of it, or a part of a container.
Result<memory::PoolRef> modelPool(memory::PoolRef file, std::string_view name) {
  std::optional<Container> container;
  {
    const ScatteredReads scattered(*file);
    HEARTH_ASSIGN(container, readContainer({file->data(), file->size()}));
  }
  if (!container) {
    if (name.empty()) return file;
    return fail(ErrorCode::kNotFound,
                "The file is no container, so it has no part \"{}\"; leave the part out.", name);
  }
  HEARTH_ASSIGN(const Part part, chooseModel(*container, name));
  if (file->fd() < 0) {
    memory::PoolRef bytes = memory::Pool::borrowed(file->data() + part.offset, part.size);
    // Who reads the part keeps the whole.
    return memory::PoolRef(bytes.get(), [bytes, file](const memory::Pool*) {});
  }
  return memory::Pool::ofFile(file->fd(), file->offset() + part.offset, part.size,
                              memory::Mapping::Access::kReadOnly);
}

}  // namespace

Result<memory::PoolRef> openModelPool(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    return fail(ErrorCode::kBadData, "{} is a folder and no model file. {}", path,
                foreignFolderText(path));
  return memory::Pool::openFile(path);
}

graph::Dimensions TensorInfo::defaultDimensions() const {
  if (fileDimensions.size() != dimensions.size()) return dimensions;
  graph::Dimensions known = dimensions;
  for (size_t i = 0; i < known.size(); ++i)
    if (known[i] == 0) known[i] = fileDimensions[i];
  return known;
}

bool isKnownCustomOperation(std::string_view name) {
  return std::ranges::find(customTranslators(), name, &CustomTranslatorEntry::name) !=
         customTranslators().end();
}

ModelFile::ModelFile(std::unique_ptr<const Contents> contents) : contents_(std::move(contents)) {}
ModelFile::~ModelFile() = default;

Result<std::shared_ptr<ModelFile>> ModelFile::open(const std::string& path, std::string_view part) {
  HEARTH_ASSIGN(memory::PoolRef pool, openModelPool(path));
  auto file = fromPool(std::move(pool), part);
  if (!file)
    return std::unexpected(
        std::move(file.error()).addContext(base::formatText("while opening {}", path)));
  return file;
}

Result<std::shared_ptr<ModelFile>> ModelFile::fromPool(memory::PoolRef pool,
                                                       std::string_view part) {
  HEARTH_ASSIGN(pool, modelPool(std::move(pool), part));
  const ScatteredReads scattered(*pool);
  HEARTH_ASSIGN(FileView view, FileView::open(pool));
  return std::shared_ptr<ModelFile>(
      new ModelFile(std::make_unique<const Contents>(std::move(view))));
}

Result<std::shared_ptr<ModelFile>> ModelFile::fromTables(memory::PoolRef tables,
                                                         std::vector<memory::PoolRef> values) {
  HEARTH_ASSIGN(FileView view, FileView::open(std::move(tables), std::move(values)));
  return std::shared_ptr<ModelFile>(
      new ModelFile(std::make_unique<const Contents>(std::move(view))));
}

std::vector<std::string> ModelFile::signatureKeys() const {
  std::vector<std::string> keys;
  const auto* signatures = contents_->view.model().signature_defs();
  if (signatures == nullptr) return keys;
  for (const schema::SignatureDef* signature : *signatures)
    keys.push_back(cleanText(signature->signature_key()));
  return keys;
}

size_t ModelFile::subgraphCount() const {
  return contents_->view.subgraphCount();
}

Result<ImportedGraph> ModelFile::importSignature(std::string_view key, Shapes shapes) const {
  const auto* signatures = contents_->view.model().signature_defs();
  const bool hasSignatures = signatures != nullptr && signatures->size() != 0;
  if (!hasSignatures && key.empty()) return importGraph(contents_->view, 0, nullptr, shapes);
  if (hasSignatures) {
    for (const schema::SignatureDef* signature : *signatures) {
      if (!key.empty() && cleanText(signature->signature_key()) != key) continue;
      return importGraph(contents_->view, signature->subgraph_index(), signature, shapes);
    }
  }
  return fail(ErrorCode::kNotFound, "The model has no signature \"{}\", it has {}.", key,
              hasSignatures ? signatures->size() : 0);
}

Result<ImportedGraph> ModelFile::importSubgraph(size_t subgraph, Shapes shapes,
                                                const SubgraphPlans* plans) const {
  return importGraph(contents_->view, subgraph, nullptr, shapes, plans);
}

Result<std::vector<FileOperator>> ModelFile::fileOperators(size_t subgraph) const {
  return readOperators(contents_->view, subgraph);
}

Result<FileSubgraph> ModelFile::fileSubgraph(size_t subgraph) const {
  return readSubgraph(contents_->view, subgraph);
}

Result<FileTensor> ModelFile::fileTensor(size_t subgraph, size_t tensor) const {
  return readTensor(contents_->view, subgraph, tensor);
}

std::vector<SignatureSummary> ModelFile::signatures() const {
  return readSignatures(contents_->view);
}

ModelSummary ModelFile::summary() const {
  return summarize(contents_->view);
}

ModelMetadata ModelFile::metadata() const {
  return readMetadata(contents_->view);
}

Result<std::span<const uint8_t>> ModelFile::packedFile(std::string_view name) const {
  const memory::Pool& pool = *contents_->view.pool();
  const std::span<const uint8_t> bytes(pool.data(), pool.size());
  std::vector<Part> parts;
  if (endsLikeZip(bytes)) {
    HEARTH_ASSIGN(parts, readZipDirectory(bytes));
  }
  std::string names;
  for (const Part& part : parts) {
    if (part.name != name) {
      names += (names.empty() ? "" : ", ") + part.name;
      continue;
    }
    const std::string problem = part.deflated ? packedFileProblem(*part.deflated) : part.problem;
    if (!problem.empty())
      return fail(ErrorCode::kUnsupported, "The file {} behind the model cannot be read: {}", name,
                  problem);
    const std::span<const uint8_t> packed = bytes.subspan(part.offset, part.size);
    return part.deflated ? contents_->unpacked(name, packed, *part.deflated) : packed;
  }
  return fail(ErrorCode::kNotFound, "There is no file \"{}\" behind the model; there are: {}.",
              name, names.empty() ? "none" : names);
}

Result<std::string> ModelFile::labels(size_t index, std::string_view locale) const {
  const ModelMetadata all = metadata();
  const AssociatedFile* found = nullptr;
  const AssociatedFile* sameLanguage = nullptr;
  std::string locales;
  if (index < all.outputs.size()) {
    for (const AssociatedFile& file : all.outputs[index].files) {
      if (file.type != "axis labels" && file.type != "value labels") continue;
      if (found == nullptr && (locale.empty() || file.locale == locale)) found = &file;
      if (sameLanguage == nullptr && languageOf(file.locale) == languageOf(locale))
        sameLanguage = &file;
      if (!file.locale.empty()) locales += (locales.empty() ? "" : ", ") + file.locale;
    }
  }
  if (found == nullptr && !locale.empty()) found = sameLanguage;
  if (found == nullptr && !locales.empty())
    return fail(ErrorCode::kNotFound,
                "Output {} has no labels in the language \"{}\"; the languages are: {}.", index,
                locale, locales);
  if (found == nullptr)
    return fail(ErrorCode::kNotFound, "The model has no labels for output {}.", index);
  HEARTH_ASSIGN(const std::span<const uint8_t> bytes, packedFile(found->name));
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

}  // namespace hearth::tflite
