// SPDX-License-Identifier: Apache-2.0
#include "python/program_interpreter.h"

#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <utility>

#include "python/interpreter_lock.h"

namespace hearth::python {

namespace nb = nanobind;

namespace {

const tflite_c::Functions& functions() {
  static const tflite_c::Functions& table = *hearth_tflite_c_functions();
  return table;
}

// What the interface reports goes to the string that `user` is.
void report(void* user, const char* format, va_list arguments) {
  char text[1024];
  if (std::vsnprintf(text, sizeof(text), format, arguments) < 0) return;
  std::string& message = *static_cast<std::string*>(user);
  if (!message.empty()) message += ' ';
  message += text;
}

// The type of an array's elements; `bits` is 0 for types of which no array is made. Two elements of
// 4 bits share a byte.
nb::dlpack::dtype elementType(TfLiteType type) {
  using Code = nb::dlpack::dtype_code;
  const auto make = [](Code code, uint8_t bits) {
    return nb::dlpack::dtype{static_cast<uint8_t>(code), bits, 1};
  };
  switch (type) {
    case kTfLiteFloat16:
      return make(Code::Float, 16);
    case kTfLiteFloat32:
      return make(Code::Float, 32);
    case kTfLiteFloat64:
      return make(Code::Float, 64);
    case kTfLiteInt8:
      return make(Code::Int, 8);
    case kTfLiteInt16:
      return make(Code::Int, 16);
    case kTfLiteInt32:
      return make(Code::Int, 32);
    case kTfLiteInt64:
      return make(Code::Int, 64);
    case kTfLiteUInt8:
    case kTfLiteInt4:
      return make(Code::UInt, 8);
    case kTfLiteUInt16:
      return make(Code::UInt, 16);
    case kTfLiteUInt32:
      return make(Code::UInt, 32);
    case kTfLiteUInt64:
      return make(Code::UInt, 64);
    case kTfLiteBool:
      return make(Code::Bool, 8);
    case kTfLiteComplex64:
      return make(Code::Complex, 64);
    case kTfLiteComplex128:
      return make(Code::Complex, 128);
    default:
      return make(Code::UInt, 0);
  }
}

}  // namespace

bool hasDelegateDevice(const std::string& library) {
  return functions().hasDelegateDevice(library.c_str());
}

template <typename Function>
void ProgramInterpreter::call(Function function) {
  message_.clear();
  TfLiteStatus status = kTfLiteOk;
  {
    const Unlocked unlocked;
    status = function();
  }
  if (status != kTfLiteOk) fail();
}

void ProgramInterpreter::fail() {
  const std::string message = std::exchange(message_, {});
  PyErr_SetString(PyExc_RuntimeError, message.empty() ? "A call failed." : message.c_str());
  throw nb::python_error();
}

ProgramInterpreter::ProgramInterpreter(nb::bytes content, int32_t threads) : content_(content) {
  model_ = functions().TfLiteModelCreateWithErrorReporter(content.data(), content.size(), report,
                                                          &message_);
  create(threads);
}

ProgramInterpreter::ProgramInterpreter(const std::string& path, int32_t threads) {
  model_ = functions().TfLiteModelCreateFromFileWithErrorReporter(path.c_str(), report, &message_);
  create(threads);
}

void ProgramInterpreter::create(int32_t threads) {
  if (model_ == nullptr) fail();
  TfLiteInterpreterOptions* const options = functions().TfLiteInterpreterOptionsCreate();
  functions().TfLiteInterpreterOptionsSetErrorReporter(options, report, &message_);
  functions().TfLiteInterpreterOptionsSetNumThreads(options, threads);
  interpreter_ = functions().TfLiteInterpreterCreate(model_, options);
  functions().TfLiteInterpreterOptionsDelete(options);
  if (interpreter_ != nullptr) return;
  functions().TfLiteModelDelete(model_);
  fail();
}

ProgramInterpreter::~ProgramInterpreter() {
  functions().TfLiteInterpreterDelete(interpreter_);
  functions().TfLiteModelDelete(model_);
}

void ProgramInterpreter::applyDelegate(uintptr_t address, nb::object owner) {
  // Also where it fails: what it has set up goes with the interpreter.
  owners_.push_back(std::move(owner));
  call([&] {
    return functions().TfLiteInterpreterModifyGraphWithDelegate(
        interpreter_, reinterpret_cast<TfLiteDelegate*>(address));
  });
}

void ProgramInterpreter::resetVariables() {
  call([&] { return functions().TfLiteInterpreterResetVariableTensors(interpreter_); });
}

ProgramSubgraph::ProgramSubgraph(std::shared_ptr<ProgramInterpreter> interpreter,
                                 const std::string& signature)
    : interpreter_(std::move(interpreter)) {
  if (signature.empty()) return;
  interpreter_->call([&] {
    runner_ = functions().TfLiteInterpreterGetSignatureRunner(interpreter_->interpreter_,
                                                              signature.c_str());
    return runner_ == nullptr ? kTfLiteError : kTfLiteOk;
  });
}

ProgramSubgraph::~ProgramSubgraph() {
  functions().TfLiteSignatureRunnerDelete(runner_);
}

void ProgramSubgraph::resizeInput(int32_t index, const std::string& name,
                                  const std::vector<int32_t>& shape) {
  const auto rank = static_cast<int32_t>(shape.size());
  TfLiteInterpreter* const interpreter = interpreter_->interpreter_;
  interpreter_->call([&] {
    if (runner_ != nullptr)
      return functions().TfLiteSignatureRunnerResizeInputTensor(runner_, name.c_str(), shape.data(),
                                                                rank);
    const int32_t count = functions().TfLiteInterpreterGetInputTensorCount(interpreter);
    const int* const inputs = functions().TfLiteInterpreterInputTensorIndices(interpreter);
    const auto position = static_cast<int32_t>(std::find(inputs, inputs + count, index) - inputs);
    return functions().TfLiteInterpreterResizeInputTensor(interpreter, position, shape.data(),
                                                          rank);
  });
}

void ProgramSubgraph::allocate() {
  interpreter_->call([&] {
    return runner_ != nullptr
               ? functions().TfLiteSignatureRunnerAllocateTensors(runner_)
               : functions().TfLiteInterpreterAllocateTensors(interpreter_->interpreter_);
  });
}

void ProgramSubgraph::invoke() {
  interpreter_->call([&] {
    return runner_ != nullptr ? functions().TfLiteSignatureRunnerInvoke(runner_)
                              : functions().TfLiteInterpreterInvoke(interpreter_->interpreter_);
  });
}

TfLiteTensor* ProgramSubgraph::tensor(int32_t index, const std::string& name) const {
  TfLiteTensor* found = nullptr;
  if (runner_ == nullptr)
    found = functions().TfLiteInterpreterGetTensor(interpreter_->interpreter_, index);
  else
    found = functions().TfLiteSignatureRunnerGetInputTensor(runner_, name.c_str());
  if (found == nullptr && runner_ != nullptr)
    found = const_cast<TfLiteTensor*>(
        functions().TfLiteSignatureRunnerGetOutputTensor(runner_, name.c_str()));
  if (found == nullptr) {
    PyErr_Format(PyExc_ValueError, "There is no tensor %d ('%s').", index, name.c_str());
    throw nb::python_error();
  }
  return found;
}

std::vector<int32_t> ProgramSubgraph::shape(int32_t index, const std::string& name) const {
  const TfLiteTensor* const found = tensor(index, name);
  std::vector<int32_t> shape;
  for (int32_t i = 0; i < functions().TfLiteTensorNumDims(found); ++i)
    shape.push_back(functions().TfLiteTensorDim(found, i));
  return shape;
}

nb::object ProgramSubgraph::array(nb::handle self, int32_t index, const std::string& name) const {
  const TfLiteTensor* const found = tensor(index, name);
  const nb::dlpack::dtype type = elementType(functions().TfLiteTensorType(found));
  void* const data = functions().TfLiteTensorData(found);
  if (type.bits == 0 || data == nullptr) return nb::none();
  const size_t bytes = functions().TfLiteTensorByteSize(found);
  std::vector<size_t> sizes{bytes};
  if (functions().TfLiteTensorType(found) != kTfLiteInt4) {
    const std::vector<int32_t> dims = shape(index, name);
    sizes.assign(dims.begin(), dims.end());
    size_t wanted = type.bits / 8;
    for (const size_t size : sizes) wanted *= size;
    if (wanted > bytes) return nb::none();
  }
  return nb::cast(nb::ndarray<nb::numpy>(data, sizes.size(), sizes.data(), self, nullptr, type));
}

nb::list ProgramSubgraph::strings(int32_t index, const std::string& name) const {
  TfLiteTensor* const found = tensor(index, name);
  nb::list texts;
  const int32_t count = functions().TfLiteOpaqueTensorGetStringCount(found);
  for (int32_t i = 0; i < count; ++i) {
    const char* text = nullptr;
    int length = 0;
    if (functions().TfLiteOpaqueTensorGetString(found, i, &text, &length) != kTfLiteOk)
      interpreter_->fail();
    texts.append(nb::bytes(text, static_cast<size_t>(length)));
  }
  return texts;
}

void ProgramSubgraph::setStrings(int32_t index, const std::string& name,
                                 const std::vector<nb::bytes>& texts) {
  TfLiteTensor* const found = tensor(index, name);
  std::vector<const char*> begins;
  std::vector<int> lengths;
  for (const nb::bytes& text : texts) {
    begins.push_back(text.c_str());
    lengths.push_back(static_cast<int>(text.size()));
  }
  interpreter_->call([&] {
    return functions().TfLiteOpaqueTensorWriteStrings(
        found, begins.data(), static_cast<int>(begins.size()), lengths.data());
  });
}

}  // namespace hearth::python
