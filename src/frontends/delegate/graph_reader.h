// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "frontends/delegate/mapped_files.h"
#include "frontends/delegate/partition_source.h"
#include "tflite_abi/structures.h"

namespace hearth::delegate {

// Reads nodes and tensors of the runtime's graph. Constants that lie in no mapped file refer to the
// runtime's memory: copyConstants() before the source outlives the call of the runtime. Used by one
// thread, during one call of TfLiteDelegate::Prepare.
class GraphReader {
 public:
  explicit GraphReader(TfLiteContext* context) : context_(context) {}

  // The execution plan: indices of nodes, in run order. kOpFailed when the runtime refuses.
  Result<std::vector<int32_t>> plan() const;

  struct Node {
    int32_t index = 0;
    std::vector<int32_t> inputs;  // -1 = omitted
    std::vector<int32_t> outputs;
    std::optional<SourceNode> source;  // nothing: the delegate does not take it
  };
  // kOpFailed when the runtime refuses.
  Result<Node> node(int32_t index);

  const TfLiteTensor* tensor(int32_t index) const;
  // Null for a tensor of a kind that the delegate does not take. `index` exists.
  const std::optional<SourceTensor>& sourceTensor(int32_t index);

  // A partition of these nodes. `inputs` may also hold constants and variables, and -1.
  // kUnsupported when a tensor is of a kind that the delegate does not take.
  Result<PartitionSource> partition(std::span<const SourceNode* const> nodes,
                                    std::span<const int32_t> inputs,
                                    std::span<const int32_t> outputs);

  const MappedFiles& files() const { return files_; }

 private:
  std::optional<SourceTensor> readTensor(const TfLiteTensor& tensor);
  bool isOfFile(const PartitionSource& source) const;
  Status addTensor(int32_t index, PartitionSource* source);

  TfLiteContext* const context_;
  MappedFiles files_;
  std::map<int32_t, std::optional<SourceTensor>> tensors_;
};

// Copies the constants that lie in the runtime's memory. Errors: those of memory::constantPool().
Status copyConstants(PartitionSource* source);

// The dimensions of a tensor; nothing when one is negative.
std::optional<graph::Dimensions> dimensionsOf(const TfLiteTensor& tensor);

}  // namespace hearth::delegate
