// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "tflite_abi/structures.h"

namespace hearth::tflite_abi {

// The context that a program's functions get, and what answers them. What the structure has no
// function for, the opaque interface asks through the virtual functions.
class Context {
 public:
  // The owner of a context; null for one of another runtime.
  static Context* of(const TfLiteContext* context);

  TfLiteContext* context() { return &context_; }

  virtual TfLiteStatus plan(TfLiteIntArray** plan);
  virtual TfLiteStatus node(int32_t index, TfLiteNode** node, TfLiteOperator** registration);
  virtual TfLiteStatus replace(const TfLiteOperator& registration, const TfLiteIntArray* nodes,
                               TfLiteDelegate* delegate);
  virtual TfLiteStatus preview(const TfLiteIntArray* nodes, TfLiteDelegateParams** partitions,
                               int32_t* count);
  virtual TfLiteStatus addTensors(int32_t count, int32_t* first);
  // Takes `dims`.
  virtual TfLiteStatus resize(TfLiteTensor* tensor, TfLiteIntArray* dims) = 0;
  // The context of a subgraph of the model, until it is released.
  virtual TfLiteStatus acquireSubgraph(int32_t subgraph, TfLiteContext** acquired);
  virtual TfLiteStatus releaseSubgraph(int32_t subgraph);
  // Keeps a subgraph from the delegate that is being applied.
  virtual TfLiteStatus skipSubgraph(int32_t subgraph);
  virtual const std::vector<int32_t>* inputs() const { return nullptr; }
  virtual const std::vector<int32_t>* outputs() const { return nullptr; }
  virtual const std::vector<int32_t>* variables() const { return nullptr; }
  virtual size_t nodeCount() const { return 0; }
  virtual const char* name() const { return ""; }

 protected:
  Context();
  ~Context() = default;
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // What the program's functions have reported since the last call.
  std::string takeMessage() { return std::exchange(message_, {}); }

  TfLiteContext context_{};

 private:
  static void reportError(TfLiteContext* context, const char* format, ...);

  std::string message_;
};

// The operator that a registration in the form of a structure stands for.
TfLiteOperator operatorOf(const TfLiteRegistration& registration);

// The result of a function of the program's called `what`; an exception is a failure, too.
// `message` is what it reported.
Status programStatus(const char* what, const Result<TfLiteStatus>& status,
                     const std::string& message);

}  // namespace hearth::tflite_abi
