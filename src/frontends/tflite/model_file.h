// SPDX-License-Identifier: Apache-2.0
// The `.tflite` front end: opens a model file and translates it to the canonical model.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "frontends/tflite/model_summary.h"
#include "graph/model.h"
#include "memory/pool.h"

namespace hearth::tflite {

// A visible input or output.
struct TensorInfo {
  std::string name;        // the signature's name where it has one, else the tensor's
  std::string tensorName;  // the tensor's own
  graph::OperandType type = graph::OperandType::kTensorFloat32;
  graph::Dimensions dimensions;      // 0: unknown
  graph::Dimensions fileDimensions;  // as the file was written: unknown ones mostly 1
  bool isRankZeroTensor = false;
  float scale = 0.0f;  // 0 for types without
  int32_t zeroPoint = 0;
  std::string tfliteType;  // "FLOAT32", "INT8", …
};

// A variable tensor, which keeps its value between runs: what comes out at position `output` goes
// in at position `input` the next time. Both lie behind the visible inputs and outputs.
struct StatePair {
  uint32_t input = 0;
  uint32_t output = 0;
  std::vector<uint8_t> initialValue;  // zero, or the zero point of quantised types
};

struct ImportedGraph {
  std::shared_ptr<const graph::Model> model;
  std::vector<TensorInfo> inputs;  // the first inputs of model->main(), in order
  std::vector<TensorInfo> outputs;
  std::vector<StatePair> states;
  std::string signatureKey;  // empty without signature
};

// An open file. Immutable and safe to use from any thread. The models that it gives out keep the
// file's mapping alive and refer to their weights there; the file must not be changed meanwhile.
class ModelFile {
 public:
  // kNotFound or kIo from the system, kBadData for a file that is no .tflite model or is damaged.
  static Result<std::shared_ptr<ModelFile>> open(const std::string& path);
  // A file that is in memory already, at an address that is a multiple of 8.
  static Result<std::shared_ptr<ModelFile>> fromPool(memory::PoolRef pool);

  ~ModelFile();

  // In the file's order; empty when it has no signatures.
  std::vector<std::string> signatureKeys() const;
  size_t subgraphCount() const;

  // An empty key means the first signature, or subgraph 0 without any. kNotFound for an unknown
  // key; kUnsupported for operations and types that are not translated, kBadData for wrong ones.
  // The model passed graph::validate(), not ops::validateOperations().
  Result<ImportedGraph> importSignature(std::string_view key) const;
  Result<ImportedGraph> importSubgraph(size_t subgraph) const;

  // Never fails: what the file lacks is empty.
  ModelSummary summary() const;

 private:
  class Contents;
  explicit ModelFile(std::unique_ptr<const Contents> contents);

  std::unique_ptr<const Contents> contents_;
};

}  // namespace hearth::tflite
