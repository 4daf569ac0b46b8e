// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "base/result.h"
#include "tflite_abi/context.h"
#include "tflite_abi/node_partition.h"
#include "tflite_abi/operator.h"
#include "tflite_abi/structures.h"
#include "tflite_abi/tensor_memory.h"
#include "tflite_abi/tensors.h"

namespace hearth::tflite_abi {

// A graph as TensorFlow Lite shows it to delegates: tensors, nodes and an execution plan, with the
// kernels that delegates have put in place of nodes. Those who derive from it fill in tensors and
// nodes, give memory to tensors before a kernel computes, and call endKernels() in their
// destructor.
//
// For one thread at a time.
class DelegatedGraph : public Context {
 public:
  // Lets the delegate take nodes, then calls `accept`. Where one of them fails, the nodes are as
  // before: kOpFailed with what the delegate reported; kUnsupported for a delegate that wants the
  // sizes of all tensors, if `hasDynamicTensors`; errors of `accept`.
  Status apply(TfLiteDelegate* delegate, bool hasDynamicTensors,
               const std::function<Status()>& accept);
  // Whether the delegate takes graphs in which sizes depend on values.
  static bool allowsDynamicTensors(const TfLiteDelegate& delegate);
  bool hasDelegates() const;  // that have taken nodes
  // The delegate whose kernel computes a tensor, or in whose buffer it lies; null for any other.
  TfLiteDelegate* delegateOf(size_t tensor) const;
  // Lets a tensor lie in a buffer of the delegate's, whose kernels find the handle there. The
  // delegate frees a handle when another one takes its place, and when the graph's kernels end.
  // kNotFound for a tensor that the graph does not have; kBadState for one of another delegate.
  Status setBufferHandle(size_t tensor, int32_t handle, TfLiteDelegate* delegate);
  // Lets the tensor's delegate copy its buffer into the tensor's memory. `tensor` need not be one
  // of the graph's. kBadState if it has no buffer of a delegate's.
  Status copyFromBuffer(TfLiteTensor* tensor);
  // Whether outputs of the graph may stay in a buffer of a delegate's, and their memory stale.
  void allowStaleResults(bool allow) { allowsStaleResults_ = allow; }

  TfLiteStatus plan(TfLiteIntArray** plan) override;
  TfLiteStatus node(int32_t index, TfLiteNode** node, TfLiteOperator** registration) override;
  TfLiteStatus replace(const TfLiteOperator& registration, const TfLiteIntArray* nodes,
                       TfLiteDelegate* delegate) override;
  TfLiteStatus preview(const TfLiteIntArray* nodes, TfLiteDelegateParams** partitions,
                       int32_t* count) override;
  TfLiteStatus addTensors(int32_t count, int32_t* first) override;
  TfLiteStatus resize(TfLiteTensor* tensor, TfLiteIntArray* dims) override;
  size_t nodeCount() const override { return nodes_.size(); }

 protected:
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
    std::unique_ptr<void, FreeMemory> parameters;
    std::optional<size_t> operation;       // that the node stands for; none for a kernel
    std::unique_ptr<Partition> partition;  // of a kernel
    // Of a node that functions of others compute.
    uint64_t id = 0;      // for those who derive from the graph; 0: nobody has given one
    bool isOpen = false;  // it has to be freed
    // The dimensions of its inputs for which it was prepared.
    std::optional<std::vector<std::vector<uint32_t>>> prepared;
    Node() = default;
    Node(const Node&) = delete;
    Node& operator=(const Node&) = delete;
    ~Node() { std::free(node.temporaries); }
  };

  // `results` are the outputs of the graph and must outlive it.
  explicit DelegatedGraph(const std::vector<int32_t>& results) : results_(results) {}
  ~DelegatedGraph();

  // Adds the tensors of the graph itself. Their dimensions are the graph's from now on; all else
  // that they refer to belongs to the caller. Once, and before nodes are added.
  void setTensors(std::vector<TfLiteTensor> tensors);
  // Adds a node at the end of the plan; its parameters and registration can be set until a delegate
  // is applied.
  Node& addNode(size_t operation, std::span<const int32_t> inputs, std::span<const int32_t> outputs,
                std::span<const int32_t> intermediates);
  // Sets the structure of a registration after its fields.
  static void showStructure(TfLiteOperator* registration);
  // What delegates do to a graph from its construction on: undone by the destructor unless kept.
  class Change {
   public:
    explicit Change(DelegatedGraph* graph);
    Change(const Change&) = delete;
    Change& operator=(const Change&) = delete;
    ~Change();
    void keep() { graph_ = nullptr; }

   private:
    DelegatedGraph* graph_;
    const std::vector<int32_t> plan_;
    const size_t nodes_;
  };
  // Whether a delegate's Prepare may replace nodes of this graph now.
  virtual bool isApplying() const { return isApplying_; }
  // Called when a node gets functions of others, before the first of them; and before its `free`.
  virtual void beforeInit(Node* /*node*/, size_t /*index*/) {}
  virtual void beforeFree(Node* /*node*/) {}
  // Frees the kernels of all delegates and puts the nodes of the graph in their place.
  void removeKernels();
  // Frees all kernels, and buffers of delegates. They compute nothing any more.
  void endKernels();

  // Calls `prepare` of a kernel, and gives memory to its temporaries.
  Status prepareKernel(Node* kernel);
  // Calls `invoke` of a kernel, and fetches what lies in a buffer of its delegate.
  Status invokeKernel(const Node& kernel);
  // Whether the kernel allocates an output itself.
  bool hasDynamicOutputs(const Node& kernel) const;

  std::vector<TfLiteTensor> tensors_;
  std::deque<Node> nodes_;  // those of the graph, then kernels
  std::vector<int32_t> plan_;

 private:
  std::vector<PlannedNode> plannedNodes() const;
  // The nodes of a delegate's list; nothing if it names others than those of the plan that no
  // delegate has.
  std::optional<std::set<int32_t>> nodesOf(const TfLiteIntArray* list);
  int32_t addKernel(const TfLiteOperator& registration, const NodeSubset& subset,
                    TfLiteDelegate* delegate);
  // Frees the kernels from node `first` on, and takes them away.
  void removeNodes(size_t first);
  void free(Node* kernel);
  void freeBufferHandle(TfLiteTensor* tensor);
  // Ends that a delegate computes the kernel's outputs.
  void giveUpOutputs(const Node& kernel);
  bool mayStayStale(const Node& kernel, int32_t output) const;
  bool isVariable(int32_t tensor) const;
  Status placeTemporaries(const Node& kernel);
  // programStatus() with the kernel's name, if it has one.
  Status kernelStatus(const Node& kernel, const char* what, const Result<TfLiteStatus>& status);

  const std::vector<int32_t>& results_;
  size_t ownTensors_ = 0;  // the tensors of the graph itself, before those of kernels
  IntArray planArray_;
  std::vector<Partition> previewed_;
  std::vector<TfLiteDelegateParams> previewParams_;
  std::map<int32_t, TensorMemory> memory_;  // of temporaries
  bool isApplying_ = false;
  bool allowsStaleResults_ = false;
};

}  // namespace hearth::tflite_abi
