// SPDX-License-Identifier: Apache-2.0
// Interpreters and signature runners.
#include <algorithm>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "frontends/tflite_c/interpreter.h"

using hearth::ErrorCode;
using hearth::fail;
using hearth::Result;
using hearth::Status;
using hearth::tflite::SignatureArgument;
using hearth::tflite::SignatureSummary;
using hearth::tflite_c::guarded;
using hearth::tflite_c::guardedPointer;
using hearth::tflite_c::Interpreter;
using hearth::tflite_c::Reporter;
using hearth::tflite_c::SubgraphRunner;

namespace {

// Runs `body` with the interpreter of a handle; the error for a null handle goes to the log.
template <typename Handle, typename Body>
TfLiteStatus call(const Handle* handle, const char* function, Body body) noexcept {
  if (handle == nullptr) [[unlikely]]
    return guarded(Reporter(), [&]() -> Status {
      return fail(ErrorCode::kUnexpectedNull, "{} is called without an object.", function);
    });
  return guarded(handle->interpreter->reporter(), [&] { return body(*handle->interpreter); });
}

// The tensor with an index in the file; null if there is none, or if its description is damaged.
TfLiteTensor* tensorAt(Interpreter& interpreter, const SubgraphRunner& subgraph,
                       int64_t index) noexcept {
  if (index < 0) return nullptr;
  return guardedPointer(interpreter.reporter(), [&]() -> Result<TfLiteTensor*> {
    return subgraph.tensor(static_cast<size_t>(index));
  });
}

// Element `index` of a list of a file's tensors; -1 if there is none.
int32_t elementOf(const std::vector<int32_t>& list, int32_t index) {
  return index < 0 || static_cast<size_t>(index) >= list.size() ? -1
                                                                : list[static_cast<size_t>(index)];
}

Result<std::span<const int32_t>> dimsAt(const int* dims, int32_t rank) {
  constexpr int32_t kMaxRank = 8;
  if (rank < 0 || rank > kMaxRank)
    return fail(ErrorCode::kBadData, "A tensor cannot have {} dimensions; the most are {}.", rank,
                kMaxRank);
  if (dims == nullptr && rank != 0)
    return fail(ErrorCode::kUnexpectedNull, "The dimensions are null.");
  return std::span<const int32_t>(dims, static_cast<size_t>(rank));
}

TfLiteStatus invoke(Interpreter& interpreter, SubgraphRunner* subgraph) noexcept {
  TfLiteStatus outcome = kTfLiteOk;
  const TfLiteStatus status = guarded(interpreter.reporter(), [&]() -> Status {
    HEARTH_ASSIGN(outcome, interpreter.invoke(subgraph));
    return {};
  });
  return status == kTfLiteOk ? outcome : status;
}

// The signature that a null key means: the first one of the first subgraph, or in a model without
// signatures the first subgraph itself, with the tensors' own names.
Result<SignatureSummary> defaultSignature(const Interpreter& interpreter) {
  const auto& signatures = interpreter.signatures();
  const auto found = std::ranges::find(signatures, size_t{0}, &SignatureSummary::subgraph);
  if (found != signatures.end()) return *found;
  if (!signatures.empty())
    return fail(ErrorCode::kNotFound, "The first subgraph has no signature; name one by its key.");
  SignatureSummary made;
  const auto add = [&](const std::vector<int32_t>& tensors,
                       std::vector<SignatureArgument>* to) -> Status {
    for (const int32_t index : tensors) {
      HEARTH_ASSIGN(const TfLiteTensor* const tensor,
                    interpreter.primary().tensor(static_cast<size_t>(index)));
      to->push_back({tensor->name, static_cast<uint32_t>(index)});
    }
    return {};
  };
  HEARTH_TRY(add(interpreter.primary().inputs(), &made.inputs));
  HEARTH_TRY(add(interpreter.primary().outputs(), &made.outputs));
  return made;
}

const SignatureArgument* find(const std::vector<SignatureArgument>& arguments, const char* name) {
  if (name == nullptr) return nullptr;
  const auto found = std::ranges::find(arguments, std::string_view(name), &SignatureArgument::name);
  return found == arguments.end() ? nullptr : &*found;
}

const char* nameOf(const std::vector<SignatureArgument>& arguments, int32_t index) {
  return index < 0 || static_cast<size_t>(index) >= arguments.size()
             ? nullptr
             : arguments[static_cast<size_t>(index)].name.c_str();
}

Result<size_t> positionOf(const SubgraphRunner& subgraph, const SignatureArgument* argument,
                          const char* name) {
  if (argument == nullptr)
    return fail(ErrorCode::kNotFound, "The signature has no input \"{}\".",
                name == nullptr ? "" : name);
  const std::vector<int32_t>& inputs = subgraph.inputs();
  const auto found = std::ranges::find(inputs, static_cast<int32_t>(argument->tensor));
  if (found == inputs.end())
    return fail(ErrorCode::kBadData, "The input \"{}\" of the signature is none of its subgraph.",
                argument->name);
  return static_cast<size_t>(found - inputs.begin());
}

TfLiteInterpreter* create(const TfLiteModel* model, const TfLiteInterpreterOptions* options,
                          bool hasOthers) noexcept {
  const TfLiteInterpreterOptions defaults;
  const TfLiteInterpreterOptions& given = options == nullptr ? defaults : *options;
  return guardedPointer(given.reporter, [&]() -> Result<TfLiteInterpreter*> {
    if (model == nullptr) return fail(ErrorCode::kUnexpectedNull, "The model is null.");
    HEARTH_ASSIGN(auto made, Interpreter::create(*model, given, hasOthers));
    return new TfLiteInterpreter{std::move(made)};
  });
}

}  // namespace

extern "C" {

TfLiteInterpreter* TfLiteInterpreterCreate(const TfLiteModel* model,
                                           const TfLiteInterpreterOptions* options) {
  return create(model, options, true);
}

TfLiteInterpreter* TfLiteInterpreterCreateWithSelectedOps(const TfLiteModel* model,
                                                          const TfLiteInterpreterOptions* options) {
  return create(model, options, false);
}

void TfLiteInterpreterDelete(TfLiteInterpreter* interpreter) {
  delete interpreter;
}

int32_t TfLiteInterpreterGetInputTensorCount(const TfLiteInterpreter* interpreter) {
  if (interpreter == nullptr) return 0;
  return static_cast<int32_t>(interpreter->interpreter->primary().inputs().size());
}

int32_t TfLiteInterpreterGetOutputTensorCount(const TfLiteInterpreter* interpreter) {
  if (interpreter == nullptr) return 0;
  return static_cast<int32_t>(interpreter->interpreter->primary().outputs().size());
}

const int* TfLiteInterpreterInputTensorIndices(const TfLiteInterpreter* interpreter) {
  return interpreter == nullptr ? nullptr : interpreter->interpreter->primary().inputs().data();
}

const int* TfLiteInterpreterOutputTensorIndices(const TfLiteInterpreter* interpreter) {
  return interpreter == nullptr ? nullptr : interpreter->interpreter->primary().outputs().data();
}

int32_t TfLiteInterpreterGetInputTensorIndex(const TfLiteInterpreter* interpreter, int32_t index) {
  if (interpreter == nullptr) return -1;
  return elementOf(interpreter->interpreter->primary().inputs(), index);
}

int32_t TfLiteInterpreterGetOutputTensorIndex(const TfLiteInterpreter* interpreter, int32_t index) {
  if (interpreter == nullptr) return -1;
  return elementOf(interpreter->interpreter->primary().outputs(), index);
}

TfLiteTensor* TfLiteInterpreterGetInputTensor(const TfLiteInterpreter* interpreter, int32_t index) {
  return TfLiteInterpreterGetTensor(interpreter,
                                    TfLiteInterpreterGetInputTensorIndex(interpreter, index));
}

const TfLiteTensor* TfLiteInterpreterGetOutputTensor(const TfLiteInterpreter* interpreter,
                                                     int32_t index) {
  return TfLiteInterpreterGetTensor(interpreter,
                                    TfLiteInterpreterGetOutputTensorIndex(interpreter, index));
}

TfLiteTensor* TfLiteInterpreterGetTensor(const TfLiteInterpreter* interpreter, int index) {
  if (interpreter == nullptr) return nullptr;
  return tensorAt(*interpreter->interpreter, interpreter->interpreter->primary(), index);
}

int32_t TfLiteInterpreterGetVariableTensorCount(const TfLiteInterpreter* interpreter) {
  if (interpreter == nullptr) return 0;
  return static_cast<int32_t>(interpreter->interpreter->primary().variables().size());
}

TfLiteTensor* TfLiteInterpreterGetVariableTensor(const TfLiteInterpreter* interpreter,
                                                 int32_t index) {
  if (interpreter == nullptr) return nullptr;
  return TfLiteInterpreterGetTensor(
      interpreter, elementOf(interpreter->interpreter->primary().variables(), index));
}

TfLiteStatus TfLiteInterpreterResizeInputTensor(TfLiteInterpreter* interpreter, int32_t index,
                                                const int* dims, int32_t rank) {
  return call(interpreter, __func__, [&](Interpreter& own) -> Status {
    HEARTH_ASSIGN(const std::span<const int32_t> given, dimsAt(dims, rank));
    return own.resizeInput(&own.primary(), static_cast<size_t>(index), given, false);
  });
}

TfLiteStatus TfLiteInterpreterAllocateTensors(TfLiteInterpreter* interpreter) {
  return call(interpreter, __func__,
              [](Interpreter& own) -> Status { return own.allocate(&own.primary()); });
}

TfLiteStatus TfLiteInterpreterInvoke(TfLiteInterpreter* interpreter) {
  if (interpreter == nullptr)
    return call(interpreter, __func__, [](Interpreter&) { return Status(); });
  return invoke(*interpreter->interpreter, &interpreter->interpreter->primary());
}

TfLiteStatus TfLiteInterpreterCancel(const TfLiteInterpreter* interpreter) {
  return call(interpreter, __func__, [](Interpreter& own) { return own.cancel(); });
}

TfLiteStatus TfLiteInterpreterResetVariableTensors(TfLiteInterpreter* interpreter) {
  return call(interpreter, __func__, [](Interpreter& own) { return own.resetVariables(); });
}

TfLiteStatus TfLiteInterpreterSetCustomAllocationForTensor(TfLiteInterpreter* interpreter,
                                                           int index,
                                                           const TfLiteCustomAllocation* allocation,
                                                           int64_t flags) {
  return call(interpreter, __func__, [&](Interpreter& own) -> Status {
    if (allocation == nullptr)
      return fail(ErrorCode::kUnexpectedNull, "The memory for tensor {} is null.", index);
    return own.setCustomAllocation(index, *allocation, flags);
  });
}

TfLiteStatus TfLiteInterpreterModifyGraphWithDelegate(const TfLiteInterpreter* interpreter,
                                                      TfLiteDelegate* delegate) {
  return call(interpreter, __func__, [&](Interpreter& own) { return own.addDelegate(delegate); });
}

TfLiteStatus TfLiteInterpreterSetBufferHandle(TfLiteInterpreter* interpreter, TfLiteTensor* tensor,
                                              int32_t handle, TfLiteOpaqueDelegate* delegate) {
  return call(interpreter, __func__, [&](Interpreter& own) -> Status {
    if (tensor == nullptr || delegate == nullptr)
      return fail(ErrorCode::kUnexpectedNull, "The tensor or the delegate is null.");
    return own.setBufferHandle(tensor, handle, delegate);
  });
}

TfLiteStatus TfLiteInterpreterGetBufferHandle(TfLiteInterpreter* interpreter, int index,
                                              int32_t* handle, TfLiteOpaqueDelegate** delegate) {
  return call(interpreter, __func__, [&](Interpreter& own) -> Status {
    if (handle == nullptr || delegate == nullptr)
      return fail(ErrorCode::kUnexpectedNull, "There is no place for the buffer's handle.");
    if (index < 0) return fail(ErrorCode::kNotFound, "There is no tensor {}.", index);
    HEARTH_ASSIGN(const TfLiteTensor* const tensor,
                  own.primary().tensor(static_cast<size_t>(index)));
    *handle = tensor->buffer_handle;
    *delegate = tensor->delegate;
    return {};
  });
}

TfLiteStatus TfLiteInterpreterEnsureTensorDataIsReadable(TfLiteInterpreter* interpreter,
                                                         int index) {
  return call(interpreter, __func__, [&](Interpreter& own) -> Status {
    if (index < 0) return fail(ErrorCode::kNotFound, "There is no tensor {}.", index);
    HEARTH_ASSIGN(TfLiteTensor* const tensor, own.primary().tensor(static_cast<size_t>(index)));
    return own.ensureReadable(tensor);
  });
}

void TfLiteSetAllowBufferHandleOutput(const TfLiteInterpreter* interpreter, bool allow) {
  call(interpreter, __func__, [&](Interpreter& own) { return own.allowBufferOutputs(allow); });
}

int32_t TfLiteInterpreterGetSignatureCount(const TfLiteInterpreter* interpreter) {
  if (interpreter == nullptr) return 0;
  return static_cast<int32_t>(interpreter->interpreter->signatures().size());
}

const char* TfLiteInterpreterGetSignatureKey(const TfLiteInterpreter* interpreter, int32_t index) {
  if (interpreter == nullptr) return nullptr;
  const auto& signatures = interpreter->interpreter->signatures();
  if (index < 0 || static_cast<size_t>(index) >= signatures.size()) return nullptr;
  return signatures[static_cast<size_t>(index)].key.c_str();
}

TfLiteSignatureRunner* TfLiteInterpreterGetSignatureRunner(const TfLiteInterpreter* interpreter,
                                                           const char* key) {
  if (interpreter == nullptr) return nullptr;
  const std::shared_ptr<Interpreter>& own = interpreter->interpreter;
  return guardedPointer(own->reporter(), [&]() -> Result<TfLiteSignatureRunner*> {
    if (key == nullptr) {
      HEARTH_ASSIGN(SignatureSummary signature, defaultSignature(*own));
      return new TfLiteSignatureRunner{own, &own->primary(), std::move(signature)};
    }
    for (const auto& signature : own->signatures()) {
      if (signature.key != key) continue;
      HEARTH_ASSIGN(SubgraphRunner* const subgraph, own->subgraph(signature.subgraph));
      return new TfLiteSignatureRunner{own, subgraph, signature};
    }
    return fail(ErrorCode::kNotFound, "The model has no signature \"{}\"; it has {} signatures.",
                key, own->signatures().size());
  });
}

size_t TfLiteSignatureRunnerGetInputCount(const TfLiteSignatureRunner* runner) {
  return runner == nullptr ? 0 : runner->signature.inputs.size();
}

size_t TfLiteSignatureRunnerGetOutputCount(const TfLiteSignatureRunner* runner) {
  return runner == nullptr ? 0 : runner->signature.outputs.size();
}

const char* TfLiteSignatureRunnerGetInputName(const TfLiteSignatureRunner* runner, int32_t index) {
  return runner == nullptr ? nullptr : nameOf(runner->signature.inputs, index);
}

const char* TfLiteSignatureRunnerGetOutputName(const TfLiteSignatureRunner* runner, int32_t index) {
  return runner == nullptr ? nullptr : nameOf(runner->signature.outputs, index);
}

TfLiteTensor* TfLiteSignatureRunnerGetInputTensor(TfLiteSignatureRunner* runner, const char* name) {
  const SignatureArgument* const found =
      runner == nullptr ? nullptr : find(runner->signature.inputs, name);
  return found == nullptr ? nullptr
                          : tensorAt(*runner->interpreter, *runner->subgraph, found->tensor);
}

const TfLiteTensor* TfLiteSignatureRunnerGetOutputTensor(const TfLiteSignatureRunner* runner,
                                                         const char* name) {
  const SignatureArgument* const found =
      runner == nullptr ? nullptr : find(runner->signature.outputs, name);
  return found == nullptr ? nullptr
                          : tensorAt(*runner->interpreter, *runner->subgraph, found->tensor);
}

TfLiteStatus TfLiteSignatureRunnerResizeInputTensor(TfLiteSignatureRunner* runner, const char* name,
                                                    const int* dims, int32_t rank) {
  return call(runner, __func__, [&](Interpreter& own) -> Status {
    HEARTH_ASSIGN(const std::span<const int32_t> given, dimsAt(dims, rank));
    HEARTH_ASSIGN(const size_t position,
                  positionOf(*runner->subgraph, find(runner->signature.inputs, name), name));
    return own.resizeInput(runner->subgraph, position, given, true);
  });
}

TfLiteStatus TfLiteSignatureRunnerAllocateTensors(TfLiteSignatureRunner* runner) {
  return call(runner, __func__, [&](Interpreter& own) { return own.allocate(runner->subgraph); });
}

TfLiteStatus TfLiteSignatureRunnerInvoke(TfLiteSignatureRunner* runner) {
  if (runner == nullptr) return call(runner, __func__, [](Interpreter&) { return Status(); });
  return invoke(*runner->interpreter, runner->subgraph);
}

TfLiteStatus TfLiteSignatureRunnerCancel(TfLiteSignatureRunner* runner) {
  return call(runner, __func__, [](Interpreter& own) { return own.cancel(); });
}

void TfLiteSignatureRunnerDelete(TfLiteSignatureRunner* runner) {
  delete runner;
}

}  // extern "C"
