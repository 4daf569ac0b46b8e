// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "frontends/tflite/model_file.h"
#include "frontends/tflite_c/declarations.h"
#include "frontends/tflite_c/node_parameters.h"
#include "frontends/tflite_c/node_partition.h"
#include "frontends/tflite_c/operator.h"
#include "frontends/tflite_c/program_context.h"
#include "frontends/tflite_c/program_resolver.h"
#include "frontends/tflite_c/tensor_memory.h"
#include "frontends/tflite_c/tensor_table.h"
#include "ops/custom_operator.h"

namespace hearth::tflite_c {

// A subgraph as delegates of the program see it: tensors, nodes and an execution plan, with the
// kernels that delegates have put in place of nodes and the operators that the program has for
// single ones. Each of these is one custom operation of the model (plannedOperators()), and the
// graph is what computes it.
//
// apply() is for one thread at a time; functions of kernels may be called by any thread, one at a
// time.
class ProgramGraph final : public ProgramContext,
                           public std::enable_shared_from_this<ProgramGraph> {
 public:
  // `threads` is what the interpreter recommends to its kernels. Errors: those of
  // ModelFile::fileSubgraph(), fileTensor() and fileOperators().
  static Result<std::shared_ptr<ProgramGraph>> create(std::shared_ptr<const tflite::ModelFile> file,
                                                      size_t subgraph, int32_t threads);
  ~ProgramGraph();

  // Lets operators of the program compute the nodes for which the resolver has one. To be called
  // before apply(). kUnsupported for a built-in operation that nobody computes.
  Status useOperators(const ProgramResolver& resolver);
  // Lets the delegate take nodes, then calls `accept`. Where one of them fails, the nodes are as
  // before: kOpFailed with what the delegate reported; kUnsupported for a delegate that wants the
  // sizes of all tensors, if `hasDynamicTensors`; errors of `accept`.
  Status apply(TfLiteDelegate* delegate, bool hasDynamicTensors,
               const std::function<Status()>& accept);
  // Whether the delegate takes graphs in which sizes depend on values.
  static bool allowsDynamicTensors(const TfLiteDelegate& delegate);
  bool hasDelegates() const;  // that have taken nodes
  // Frees the kernels of all delegates and puts the nodes of the file in their place.
  void removeDelegates();
  // The plan as the reader of files takes it, with a replacement for each kernel.
  std::vector<tflite::PlannedOperator> plannedOperators() const;
  // Frees the kernels, as long as their delegate lives. They compute nothing any more.
  void close();

  // Of kernel `node`, with the arguments that its replacement has: see ops::CustomNode.
  Result<ops::CustomOutputs> describe(size_t node, const ops::CustomCall& call);
  Status compute(size_t node, const ops::CustomCall& call);

  TfLiteStatus plan(TfLiteIntArray** plan) override;
  TfLiteStatus node(int32_t index, TfLiteNode** node, TfLiteOperator** registration) override;
  TfLiteStatus replace(const TfLiteOperator& registration, const TfLiteIntArray* nodes,
                       TfLiteDelegate* delegate) override;
  TfLiteStatus preview(const TfLiteIntArray* nodes, TfLiteDelegateParams** partitions,
                       int32_t* count) override;
  TfLiteStatus addTensors(int32_t count, int32_t* first) override;
  TfLiteStatus resize(TfLiteTensor* tensor, TfLiteIntArray* dims) override;
  const std::vector<int32_t>* inputs() const override { return &subgraph_.inputs; }
  const std::vector<int32_t>* outputs() const override { return &subgraph_.outputs; }
  const std::vector<int32_t>* variables() const override { return &subgraph_.variables; }
  size_t nodeCount() const override { return nodes_.size(); }
  const char* name() const override { return subgraph_.name.c_str(); }

 private:
  using IntArray = std::unique_ptr<TfLiteIntArray, FreeMemory>;
  using Shapes = std::vector<graph::Dimensions>;

  struct Partition {
    IntArray nodes, inputs, outputs;
    explicit Partition(const NodeSubset& subset);
    TfLiteDelegateParams params(TfLiteDelegate* delegate) const {
      return {delegate, nodes.get(), inputs.get(), outputs.get()};
    }
  };
  struct Node {
    TfLiteNode node{};
    TfLiteOperator registration;
    IntArray inputs, outputs, intermediates;
    NodeParameters parameters;
    std::optional<size_t> inFile;          // the operator; none for a kernel
    std::unique_ptr<Partition> partition;  // of a kernel
    // Of a kernel, and of an operator of the program.
    uint64_t id = 0;      // 0: Hearth computes it
    bool isOpen = false;  // it has to be freed
    std::optional<Shapes> prepared;
    Node() = default;
    Node(const Node&) = delete;
    Node& operator=(const Node&) = delete;
    ~Node() { std::free(node.temporaries); }
  };

  ProgramGraph(std::shared_ptr<const tflite::ModelFile> file, size_t subgraph,
               tflite::FileSubgraph description, int32_t threads);

  Status readTensors();
  Status readNodes();
  std::vector<PlannedNode> plannedNodes() const;
  // The nodes of a program's list; nothing if it names others than those of the plan that no
  // delegate has.
  std::optional<std::set<int32_t>> nodesOf(const TfLiteIntArray* list);
  int32_t addKernel(const TfLiteOperator& registration, const NodeSubset& subset,
                    TfLiteDelegate* delegate);
  void free(Node* kernel);
  bool isVariable(int32_t tensor) const;

  // The steps of a call, with mutex_ held.
  Status setInputs(const Node& kernel, const ops::CustomCall& call);
  Status prepare(Node* kernel, const ops::CustomCall& call);
  Status placeTemporaries(const Node& kernel);
  Status bindInputs(const Node& kernel, const ops::CustomCall& call, bool hasOutputs,
                    std::vector<std::vector<uint8_t>>* states);
  Status invoke(const Node& kernel);
  bool hasDynamicOutputs(const Node& kernel) const;

  const std::shared_ptr<const tflite::ModelFile> file_;
  const size_t index_;
  const tflite::FileSubgraph subgraph_;
  TensorTable table_;  // owns what tensors_ refer to, but for their dimensions
  std::vector<TfLiteTensor> tensors_;
  std::deque<Node> nodes_;  // those of the file, then kernels
  std::vector<int32_t> plan_;
  IntArray planArray_;
  std::vector<Partition> previewed_;
  std::vector<TfLiteDelegateParams> previewParams_;
  std::map<int32_t, TensorMemory> memory_;  // of temporaries
  bool isApplying_ = false;
  std::mutex mutex_;
  bool isClosed_ = false;
};

}  // namespace hearth::tflite_c
