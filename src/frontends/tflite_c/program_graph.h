// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/result.h"
#include "frontends/tflite/model_file.h"
#include "frontends/tflite_c/program_resolver.h"
#include "frontends/tflite_c/tensor_table.h"
#include "ops/custom_operator.h"
#include "tflite_abi/delegated_graph.h"
#include "tflite_abi/tensor_memory.h"

namespace hearth::tflite_c {

class ProgramGraphs;

// A subgraph as delegates of the program see it, with the kernels that delegates have put in place
// of nodes and the operators that the program has for single ones. Each of these is one custom
// operation of the model (plannedOperators()), and the graph is what computes it.
//
// apply() is for one thread at a time; functions of kernels may be called by any thread, one at a
// time.
class ProgramGraph final : public tflite_abi::DelegatedGraph,
                           public std::enable_shared_from_this<ProgramGraph> {
 public:
  using DelegatedGraph::Change;

  // `threads` is what the interpreter recommends to its kernels. `owner` knows the graphs of other
  // subgraphs until close(). Errors: those of ModelFile::fileSubgraph(), fileTensor() and
  // fileOperators().
  static Result<std::shared_ptr<ProgramGraph>> create(std::shared_ptr<const tflite::ModelFile> file,
                                                      size_t subgraph, int32_t threads,
                                                      ProgramGraphs* owner);
  ~ProgramGraph();

  // Lets operators of the program compute the nodes for which the resolver has one. To be called
  // before apply(). kUnsupported for a built-in operation that nobody computes.
  Status useOperators(const ProgramResolver& resolver);
  // Frees the kernels of all delegates and puts the nodes of the file in their place.
  void removeDelegates();
  // The plan as the reader of files takes it, with a replacement for each kernel.
  std::vector<tflite::PlannedOperator> plannedOperators() const;
  // Frees the kernels, as long as their delegate lives. They compute nothing any more.
  void close();

  // Of kernel `node`, with the arguments that its replacement has: see ops::CustomNode.
  Result<ops::CustomOutputs> describe(size_t node, const ops::CustomCall& call);
  Status compute(size_t node, const ops::CustomCall& call);

  // The subgraphs that IF and WHILE call.
  std::vector<size_t> calledSubgraphs() const;

  // Buffers of delegates, for any thread. The first two are DelegatedGraph's.
  Status setHandle(size_t tensor, int32_t handle, TfLiteDelegate* delegate);
  Status copyFromHandle(TfLiteTensor* tensor);
  void allowStaleOutputs(bool allow);
  // Whether the memory of a tensor lacks what its delegate's buffer has.
  void setStale(size_t tensor, bool isStale);
  bool isStale(size_t tensor);
  // Whether a node that is not the delegate's reads a tensor.
  bool isReadByOthers(size_t tensor, const TfLiteDelegate* delegate) const;

  TfLiteStatus acquireSubgraph(int32_t subgraph, TfLiteContext** acquired) override;
  TfLiteStatus releaseSubgraph(int32_t subgraph) override;
  TfLiteStatus skipSubgraph(int32_t subgraph) override;

  const std::vector<int32_t>* inputs() const override { return &subgraph_.inputs; }
  const std::vector<int32_t>* outputs() const override { return &subgraph_.outputs; }
  const std::vector<int32_t>* variables() const override { return &subgraph_.variables; }
  const char* name() const override { return subgraph_.name.c_str(); }
  // While a delegate's Prepare has any graph of the owner.
  bool isApplying() const override;
  bool isBeingPrepared() const { return DelegatedGraph::isApplying(); }

 private:
  ProgramGraph(std::shared_ptr<const tflite::ModelFile> file, size_t subgraph,
               tflite::FileSubgraph description, int32_t threads, ProgramGraphs* owner);

  Status readTensors();
  Status readNodes();
  void beforeInit(Node* node, size_t index) override;
  void beforeFree(Node* node) override;

  // The steps of a call, with mutex_ held.
  Status setInputs(const Node& kernel, const ops::CustomCall& call);
  Status prepare(size_t node, const ops::CustomCall& call);
  Status bindInputs(const Node& kernel, const ops::CustomCall& call, bool hasOutputs,
                    std::vector<std::vector<uint8_t>>* states);
  Status computeAhead(size_t node, const ops::CustomCall& call);
  // Gives a run the results of computeAhead() if they are those of its inputs.
  Result<bool> takeAhead(size_t node, const ops::CustomCall& call);
  // The values of the inputs that are no constants.
  std::vector<std::vector<uint8_t>> valuesOf(const Node& kernel, const ops::CustomCall& call) const;

  // What a kernel has computed to learn the sizes of its outputs, for the call that follows.
  struct Ahead {
    std::vector<std::vector<uint8_t>> inputs;
    std::vector<tflite_abi::TensorMemory> outputs;  // of those that the kernel does not allocate
    std::vector<std::vector<uint8_t>> states;
  };

  const std::shared_ptr<const tflite::ModelFile> file_;
  const size_t index_;
  const tflite::FileSubgraph subgraph_;
  ProgramGraphs* owner_;  // null after close()
  TensorTable table_;     // owns what tensors_ refer to, but for their dimensions
  std::mutex mutex_;
  std::map<size_t, Ahead> ahead_;
  bool isClosed_ = false;
};

}  // namespace hearth::tflite_c
