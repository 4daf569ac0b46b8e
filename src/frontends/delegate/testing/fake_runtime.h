// SPDX-License-Identifier: Apache-2.0
// A TensorFlow Lite interpreter as a delegate sees it: a TfLiteContext with tensors, nodes and an
// execution plan. It partitions, calls kernels and allocates as TensorFlow Lite does, but computes
// nothing itself.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tflite_abi/structures.h"
#include "tflite_schema_generated.h"

namespace hearth::delegate {

class FakeRuntime {
 public:
  FakeRuntime();
  ~FakeRuntime();
  FakeRuntime(const FakeRuntime&) = delete;
  FakeRuntime& operator=(const FakeRuntime&) = delete;

  int32_t addTensor(TfLiteType type, std::vector<int32_t> dimensions);
  int32_t addVariable(TfLiteType type, std::vector<int32_t> dimensions);
  // `data` must live as long as this object.
  int32_t addConstant(TfLiteType type, std::vector<int32_t> dimensions, const void* data,
                      size_t bytes);
  void quantize(int32_t tensor, std::vector<float> scales, std::vector<int32_t> zeroPoints,
                int32_t dimension = 0);
  void setSignature(int32_t tensor, const std::vector<int32_t>& dimensions);

  // `params` becomes the node's builtin_data; it must live as long as this object.
  int32_t addNode(tflite::schema::BuiltinOperator code, std::vector<int32_t> inputs,
                  std::vector<int32_t> outputs, void* params = nullptr, int32_t version = 1);
  int32_t addCustomNode(const char* name, std::vector<int32_t> inputs,
                        std::vector<int32_t> outputs);
  void setOutputs(const std::vector<int32_t>& outputs) {
    outputs_ = {outputs.begin(), outputs.end()};
  }

  TfLiteContext* context() { return &context_; }
  TfLiteTensor& tensor(int32_t index) { return tensors_[index]; }
  TfLiteNode& node(int32_t index) { return nodes_[index].node; }

  // Calls the delegate's Prepare.
  TfLiteStatus apply(TfLiteDelegate* delegate);
  // Prepares the delegate's kernels and allocates every tensor.
  TfLiteStatus allocate();
  // Runs the delegate's kernels; other nodes do nothing.
  TfLiteStatus invoke();
  void resize(int32_t tensor, std::vector<int32_t> dimensions);

  template <typename T>
  T* data(int32_t tensor) {
    return static_cast<T*>(tensors_[tensor].data);
  }

  // Nodes of each partition that the delegate has taken.
  std::vector<std::vector<int32_t>> partitions() const;
  const std::string& lastError() const { return lastError_; }
  std::vector<int32_t> dimensions(int32_t tensor) const;

  bool refusesToPartition = false;

 private:
  struct Free {
    void operator()(void* memory) const;
  };
  using Array = std::unique_ptr<TfLiteIntArray, Free>;

  struct Node {
    TfLiteNode node{};
    TfLiteRegistration registration{};
    std::vector<int32_t> replaced;  // of a delegate's node
  };

  static FakeRuntime& of(TfLiteContext* context);
  static void reportError(TfLiteContext* context, const char* format, ...);
  static Array makeArray(const std::vector<int32_t>& numbers);
  TfLiteIntArray* keep(const std::vector<int32_t>& numbers);
  int32_t addTensorOf(TfLiteType type, const std::vector<int32_t>& dimensions,
                      TfLiteAllocationType allocation);
  void updateBytes(int32_t tensor);
  int32_t addAnyNode(TfLiteRegistration registration, const std::vector<int32_t>& inputs,
                     const std::vector<int32_t>& outputs);
  // Divides the plan into runs of consecutive nodes that are in the list, with their inputs and
  // outputs.
  std::vector<TfLiteDelegateParams> partition(const TfLiteIntArray* nodes);
  void replace(const TfLiteRegistration& registration, const TfLiteIntArray* nodes,
               TfLiteDelegate* delegate);

  TfLiteContext context_{};
  std::deque<Node> nodes_;
  std::vector<TfLiteTensor> tensors_;
  std::vector<int32_t> plan_;
  Array planArray_;
  std::set<int32_t> outputs_;
  std::deque<Array> arrays_;
  std::deque<TfLiteAffineQuantization> quantizations_;
  std::deque<std::unique_ptr<TfLiteFloatArray, Free>> floats_;
  std::vector<TfLiteDelegateParams> previewed_;
  std::deque<TfLiteDelegateParams> params_;
  std::string lastError_;
};

}  // namespace hearth::delegate
