// SPDX-License-Identifier: Apache-2.0
// libtensorflowlite_c.so as a program finds it: opened by name, with the program's own
// declarations.
#pragma once

#include <dlfcn.h>

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace hearth::tflite_c::testing {

// TfLiteStatus, as its header numbers it.
inline constexpr int kOk = 0;
inline constexpr int kError = 1;

// The library's handle, or null if it cannot be loaded. Programs that use this run without a weight
// store, so that tests do not depend on earlier starts.
void* library();

// The function of the library with this name and type; ends the program if there is none.
template <typename Function>
Function* function(const char* name) {
  void* const found = library() == nullptr ? nullptr : ::dlvsym(library(), name, "VERS_1.0");
  if (found == nullptr) {
    std::fprintf(stderr, "%s is missing: %s\n", name, ::dlerror());
    std::abort();
  }
  return reinterpret_cast<Function*>(found);
}

struct IntArray {
  int size;
  int data[];
};

// TfLiteTensor, as its header describes it.
struct TensorStruct {
  int type;
  void* data;
  IntArray* dims;
  float scale;
  int zeroPoint;
  int allocationType;
  size_t bytes;
  const void* allocation;
  const char* name;
  void* delegate;
  int bufferHandle;
  bool dataIsStale;
  bool isVariable;
  int quantizationType;
  void* quantizationParams;
  void* sparsity;
  const IntArray* dimsSignature;
};

struct Allocation {
  void* data;
  size_t bytes;
};

// One interpreter and what it is made of, with the library's functions under short names. All
// messages are collected.
class Program {
 public:
  explicit Program(std::vector<uint8_t> bytes) : bytes_(std::move(bytes)) {
    model_ = function<void*(const void*, size_t, Reporter, void*)>(
        "TfLiteModelCreateWithErrorReporter")(bytes_.data(), bytes_.size(), collect, this);
    options_ = function<void*()>("TfLiteInterpreterOptionsCreate")();
    function<void(void*, Reporter, void*)>("TfLiteInterpreterOptionsSetErrorReporter")(
        options_, collect, this);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() {
    function<void(void*)>("TfLiteInterpreterDelete")(interpreter_);
    function<void(void*)>("TfLiteInterpreterOptionsDelete")(options_);
    function<void(void*)>("TfLiteModelDelete")(model_);
  }

  void* model() const { return model_; }
  void* options() const { return options_; }
  void* interpreter() const { return interpreter_; }
  const std::string& messages() const { return messages_; }

  bool create() {
    interpreter_ =
        function<void*(const void*, const void*)>("TfLiteInterpreterCreate")(model_, options_);
    return interpreter_ != nullptr;
  }
  int allocate() { return function<int(void*)>("TfLiteInterpreterAllocateTensors")(interpreter_); }
  int invoke() { return function<int(void*)>("TfLiteInterpreterInvoke")(interpreter_); }
  int resize(int input, const std::vector<int>& dims) {
    return function<int(void*, int, const int*, int)>("TfLiteInterpreterResizeInputTensor")(
        interpreter_, input, dims.data(), static_cast<int>(dims.size()));
  }
  TensorStruct* input(int index) {
    return function<TensorStruct*(void*, int)>("TfLiteInterpreterGetInputTensor")(interpreter_,
                                                                                  index);
  }
  TensorStruct* output(int index) {
    return function<TensorStruct*(void*, int)>("TfLiteInterpreterGetOutputTensor")(interpreter_,
                                                                                   index);
  }
  TensorStruct* tensor(int index) {
    return function<TensorStruct*(void*, int)>("TfLiteInterpreterGetTensor")(interpreter_, index);
  }
  int inputCount() {
    return function<int(void*)>("TfLiteInterpreterGetInputTensorCount")(interpreter_);
  }
  int outputCount() {
    return function<int(void*)>("TfLiteInterpreterGetOutputTensorCount")(interpreter_);
  }
  int copyIn(TensorStruct* to, const void* data, size_t size) {
    return function<int(void*, const void*, size_t)>("TfLiteTensorCopyFromBuffer")(to, data, size);
  }
  int copyOut(const TensorStruct* from, void* data, size_t size) {
    return function<int(const void*, void*, size_t)>("TfLiteTensorCopyToBuffer")(from, data, size);
  }

 private:
  using Reporter = void (*)(void*, const char*, va_list);
  static void collect(void* user, const char* format, va_list arguments) {
    char text[2048];
    std::vsnprintf(text, sizeof(text), format, arguments);
    static_cast<Program*>(user)->messages_ += std::string(text) + "\n";
  }

  const std::vector<uint8_t> bytes_;  // the library does not copy them
  std::string messages_;
  void* model_ = nullptr;
  void* options_ = nullptr;
  void* interpreter_ = nullptr;
};

}  // namespace hearth::tflite_c::testing
