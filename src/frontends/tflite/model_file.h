// SPDX-License-Identifier: Apache-2.0
// Opens `.tflite` model files and translates them to the canonical model.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "frontends/tflite/file_tensors.h"
#include "frontends/tflite/model_metadata.h"
#include "frontends/tflite/model_summary.h"
#include "frontends/tflite/reader/file_operators.h"
#include "graph/model.h"
#include "graph/state_pair.h"
#include "memory/pool.h"

namespace hearth::tflite {

// A visible input or output.
struct TensorInfo {
  std::string name;        // the signature's name where it has one, else the tensor's
  std::string tensorName;  // the tensor's own
  graph::OperandType type = graph::OperandType::kTensorFloat32;
  graph::Dimensions dimensions;      // 0 = unknown
  graph::Dimensions fileDimensions;  // those in the file, which mostly has 1 for unknown ones
  bool isRankZeroTensor = false;
  float scale = 0.0f;  // 0 for types without a scale
  int32_t zeroPoint = 0;
  std::string tfliteType;  // "FLOAT32", "INT8", …

  // `dimensions`, with those of the file in place of unknown ones.
  graph::Dimensions defaultDimensions() const;
};

struct ImportedGraph {
  std::shared_ptr<const graph::Model> model;
  std::vector<TensorInfo> inputs;  // the first inputs of model->main(), in order
  std::vector<TensorInfo> outputs;
  std::vector<graph::StatePair> states;  // one for each variable tensor
  std::vector<int64_t> stateTensors;     // of `states`; -1 where no tensor of the file has it
  std::string signatureKey;              // empty without signature
};

// What the model may rely on.
enum class Shapes : uint8_t {
  kAsInFile,
  // The inputs may get other shapes: what follows from shapes is left to operations.
  kOpen,
};

// Whether the reader itself translates the custom operations of this name.
bool isKnownCustomOperation(std::string_view name);

// Maps a file that may be a model or a container. Errors: kNotFound or kIo from the system;
// kBadData for a folder and for an empty file.
Result<memory::PoolRef> openModelPool(const std::string& path);

// An open model file, or a model in a container (docs/frontends.md). Immutable and thread-safe. The
// models that it returns keep the file's mapping alive and refer to their weights there, so the
// file must not be changed meanwhile.
class ModelFile {
 public:
  // `part` names a model in a container; empty for a model file, and for a container's only model.
  // The model is used in place: its pool is its range of the file. Errors: kNotFound or kIo from
  // the system; kBadData for a file that is damaged, or neither a .tflite model nor a container;
  // for a part those of chooseModel(), and kNotFound for a part of a model file.
  static Result<std::shared_ptr<ModelFile>> open(const std::string& path,
                                                 std::string_view part = {});
  // Opens a file that is already in memory, at an address that is a multiple of 4. Errors as above.
  static Result<std::shared_ptr<ModelFile>> fromPool(memory::PoolRef pool,
                                                     std::string_view part = {});
  // Opens a model whose buffers lie partly in the pools `values`, as FileView::open() says.
  static Result<std::shared_ptr<ModelFile>> fromTables(memory::PoolRef tables,
                                                       std::vector<memory::PoolRef> values);

  ~ModelFile();

  // In the file's order; empty when the file has no signatures.
  std::vector<std::string> signatureKeys() const;
  size_t subgraphCount() const;

  // Translates a signature. An empty key means the first signature or, without signatures, subgraph
  // 0. Errors: kNotFound for an unknown key, kUnsupported for operations and types that are not
  // translated, kBadData for invalid ones. The model has passed graph::validate(), but not
  // ops::validateOperations().
  Result<ImportedGraph> importSignature(std::string_view key,
                                        Shapes shapes = Shapes::kAsInFile) const;
  // `plans` has what subgraphs run; null, and one that is not in it: the operators of the file.
  Result<ImportedGraph> importSubgraph(size_t subgraph, Shapes shapes = Shapes::kAsInFile,
                                       const SubgraphPlans* plans = nullptr) const;

  // The tensors of a subgraph. Errors: kNotFound for an index that does not exist, kBadData for
  // inputs, outputs, shapes, quantisation or values that no file may have.
  Result<FileSubgraph> fileSubgraph(size_t subgraph) const;
  Result<FileTensor> fileTensor(size_t subgraph, size_t tensor) const;
  // In run order. Errors: kNotFound as above, kBadData for tensors and operator codes that do not
  // exist.
  Result<std::vector<FileOperator>> fileOperators(size_t subgraph) const;
  // In the file's order, with all their names.
  std::vector<SignatureSummary> signatures() const;

  // Never fails: what the file lacks is left empty.
  ModelSummary summary() const;
  // What the file says about itself. Never fails, either.
  ModelMetadata metadata() const;

  // The bytes of a file that is packed behind the model, valid as long as this. Errors: kNotFound
  // with the names that there are, kUnsupported for a file that is encrypted, very large, or
  // compressed by other means than deflation, kBadData for a damaged archive.
  Result<std::span<const uint8_t>> packedFile(std::string_view name) const;
  // The labels that the metadata has for output `index` of the first subgraph, one a line: those
  // in the language `locale` ("en", "en-US"), or the first ones if it is empty. Errors: kNotFound,
  // with the languages that there are; those of packedFile().
  Result<std::string> labels(size_t index, std::string_view locale) const;

 private:
  class Contents;
  explicit ModelFile(std::unique_ptr<const Contents> contents);

  std::unique_ptr<const Contents> contents_;
};

}  // namespace hearth::tflite
