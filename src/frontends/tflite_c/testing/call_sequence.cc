// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite_c/testing/call_sequence.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <utility>
#include <vector>

#include "frontends/tflite_c/declarations.h"

namespace hearth::tflite_c::testing {
namespace {

constexpr size_t kObjects = 3;
constexpr size_t kMaxCalls = 300;
constexpr size_t kRoom = 4096;

void ignore(void* /*user*/, const char* /*format*/, va_list /*arguments*/) {}

// --- A delegate of the program, which takes some nodes and computes zeros ---

struct NodeList {
  int32_t size = 0;
  std::array<int32_t, 64> nodes{};
};

TfLiteStatus prepareZeros(TfLiteContext* context, TfLiteNode* node) {
  // Of the shape of its first input, which mostly is not what the file says.
  for (int32_t i = 0; i < node->outputs->size; ++i) {
    if (node->inputs->size == 0 || node->inputs->data[0] < 0 || node->outputs->data[i] < 0)
      continue;
    TfLiteIntArray* const dims = TfLiteIntArrayCopy(context->tensors[node->inputs->data[0]].dims);
    if (context->ResizeTensor(context, &context->tensors[node->outputs->data[i]], dims) !=
        kTfLiteOk)
      return kTfLiteError;
  }
  return kTfLiteOk;
}

TfLiteStatus computeZeros(TfLiteContext* context, TfLiteNode* node) {
  for (int32_t i = 0; i < node->outputs->size; ++i) {
    if (node->outputs->data[i] < 0) continue;
    TfLiteTensor& output = context->tensors[node->outputs->data[i]];
    if (output.data != nullptr) std::fill_n(static_cast<uint8_t*>(output.data), output.bytes, 0);
  }
  return kTfLiteOk;
}

// --- Kernels that lie: each call does something else that no shape allows ---

thread_local uint32_t lies = 0;

TfLiteStatus prepareLies(TfLiteContext* context, TfLiteNode* node) {
  for (int32_t i = 0; i < node->outputs->size; ++i)
    if (node->outputs->data[i] >= 0 && ++lies % 4 != 0)
      TfLiteOpaqueTensorSetAllocationTypeToDynamic(&context->tensors[node->outputs->data[i]]);
  return kTfLiteOk;
}

void resizeTo(TfLiteContext* context, TfLiteTensor* tensor, std::initializer_list<int32_t> dims) {
  TfLiteIntArray* const made = TfLiteIntArrayCreate(static_cast<int32_t>(dims.size()));
  std::ranges::copy(dims, made->data);
  context->ResizeTensor(context, tensor, made);
}

void lie(TfLiteContext* context, TfLiteTensor* tensor) {
  constexpr std::array<const char*, 2> kTexts = {"a", "bc"};
  constexpr std::array<int, 2> kLengths = {1, 2};
  switch (++lies % 7) {
    case 0:
      resizeTo(context, tensor, {2, 3});
      break;
    case 1:
      resizeTo(context, tensor, {1});
      TfLiteTensorRealloc(1000, tensor);
      break;
    case 2:
      resizeTo(context, tensor, {1000});
      TfLiteTensorRealloc(1, tensor);
      break;
    case 3:
      resizeTo(context, tensor, {-1});
      break;
    case 4:
      resizeTo(context, tensor, {INT32_MAX, INT32_MAX, INT32_MAX});
      break;
    case 5:
      TfLiteOpaqueTensorWriteStrings(tensor, kTexts.data(), 2, kLengths.data());
      break;
    default:
      TfLiteTensorDataFree(tensor);
  }
  if (tensor->data != nullptr && tensor->allocation_type == kTfLiteDynamic)
    std::fill_n(static_cast<uint8_t*>(tensor->data), tensor->bytes, static_cast<uint8_t>(lies));
}

TfLiteStatus computeLies(TfLiteContext* context, TfLiteNode* node) {
  for (int32_t i = 0; i < node->outputs->size; ++i)
    if (node->outputs->data[i] >= 0) lie(context, &context->tensors[node->outputs->data[i]]);
  return kTfLiteOk;
}

// `data_` points to a byte: which nodes it takes, and whether its kernels say shapes, or lie.
TfLiteStatus takeSome(TfLiteContext* context, TfLiteDelegate* delegate) {
  const uint8_t choice = *static_cast<const uint8_t*>(delegate->data_);
  TfLiteIntArray* plan = nullptr;
  if (context->GetExecutionPlan(context, &plan) != kTfLiteOk) return kTfLiteError;
  NodeList taken;
  for (int32_t i = 0; i < plan->size && taken.size < 64; ++i)
    if (((choice >> (i % 4)) & 1) != 0)
      taken.nodes[static_cast<size_t>(taken.size++)] = plan->data[i];
  TfLiteIntArray* const list = TfLiteIntArrayCreate(taken.size);
  std::copy_n(taken.nodes.begin(), taken.size, list->data);
  TfLiteDelegateParams* partitions = nullptr;
  int32_t count = 0;
  context->PreviewDelegatePartitioning(context, list, &partitions, &count);
  TfLiteRegistration registration{};
  registration.prepare = (choice & 16) != 0 ? prepareZeros : nullptr;
  registration.invoke = (choice & 32) != 0 ? nullptr : computeZeros;
  if (choice >= 128) {
    registration.prepare = prepareLies;
    registration.invoke = computeLies;
  }
  const TfLiteStatus status =
      context->ReplaceNodeSubsetsWithDelegateKernels(context, registration, list, delegate);
  TfLiteIntArrayFree(list);
  return (choice & 64) != 0 ? kTfLiteDelegateError : status;
}

// --- Operators of the program, which it adds, or which its functions find ---

const TfLiteRegistration* zerosRegistration() {
  static const TfLiteRegistration registration = [] {
    TfLiteRegistration made{};
    made.prepare = prepareZeros;
    made.invoke = computeZeros;
    made.version = 1;
    return made;
  }();
  return &registration;
}

const TfLiteRegistration* liesRegistration() {
  static const TfLiteRegistration registration = [] {
    TfLiteRegistration made{};
    made.prepare = prepareLies;
    made.invoke = computeLies;
    made.version = 1;
    return made;
  }();
  return &registration;
}

// `user` points to a byte: which operations it finds, and whether they lie.
const TfLiteRegistration* registrationOf(const void* user) {
  return *static_cast<const uint8_t*>(user) >= 128 ? liesRegistration() : zerosRegistration();
}

bool isFound(const void* user, int32_t number) {
  return ((*static_cast<const uint8_t*>(user) >> (static_cast<uint32_t>(number) % 8)) & 1) != 0;
}

const TfLiteRegistration* findBuiltin(void* user, int32_t op, int version) {
  return isFound(user, op + version) ? registrationOf(user) : nullptr;
}

const TfLiteRegistration* findCustom(void* user, const char* name, int version) {
  return isFound(user, name[0] + version) ? registrationOf(user) : nullptr;
}

const TfLiteOperator* findOperator(void* user, int32_t op, int /*version*/) {
  static TfLiteOperator* const made = [] {
    TfLiteOperator* const custom = TfLiteOperatorCreate(0, nullptr, 1);
    TfLiteOperatorSetPrepare(custom, prepareZeros);
    TfLiteOperatorSetInvoke(custom, computeZeros);
    return custom;
  }();
  return isFound(user, op) ? made : nullptr;
}

class Sequence {
 public:
  Sequence(std::span<const uint8_t> bytes, std::span<const std::span<const uint8_t>> models)
      : bytes_(bytes), files_(models) {
    lies = 0;
  }
  ~Sequence() {
    for (TfLiteSignatureRunner* runner : runners_) TfLiteSignatureRunnerDelete(runner);
    for (TfLiteInterpreter* interpreter : interpreters_) TfLiteInterpreterDelete(interpreter);
    for (TfLiteInterpreterOptions* options : options_) TfLiteInterpreterOptionsDelete(options);
    for (TfLiteModel* model : models_) TfLiteModelDelete(model);
    for (TfLiteDelegate* delegate : delegates_) TfLiteNnapiDelegateDelete(delegate);
  }
  Sequence(const Sequence&) = delete;
  Sequence& operator=(const Sequence&) = delete;

  size_t run() {
    for (size_t i = 0; i < kMaxCalls && position_ < bytes_.size(); ++i) {
      const uint8_t choice = byte();
      if (choice < 64)
        callMaking(choice % 8);
      else if (choice < 160)
        callRunning(choice % 8);
      else
        callReading(choice % 12);
    }
    return succeeded_;
  }

 private:
  uint8_t byte() { return position_ < bytes_.size() ? bytes_[position_++] : 0; }
  size_t object() { return byte() % kObjects; }
  // Mostly small; now and then far out.
  int32_t index() {
    const uint8_t value = byte();
    if (value > 250) return value == 255 ? INT32_MIN : INT32_MAX - value;
    return static_cast<int32_t>(value % 8) - 1;
  }
  std::vector<int32_t> dims() {
    std::vector<int32_t> made(byte() % 6);
    for (int32_t& dim : made) {
      const uint8_t value = byte();
      // Large tensors are no errors, but slow.
      dim = value == 255 ? INT32_MIN : value % 6;
    }
    return made;
  }
  void count(TfLiteStatus status) { succeeded_ += status == kTfLiteOk; }
  void countMade(const void* made) { succeeded_ += made != nullptr; }

  static bool hasLargeTensor(const TfLiteInterpreter* interpreter) {
    constexpr double kMostElements = 1 << 20;
    constexpr int kTensors = 64;
    for (int i = 0; interpreter != nullptr && i < kTensors; ++i)
      for (const TfLiteTensor* const tensor : std::initializer_list<const TfLiteTensor*>{
               TfLiteInterpreterGetTensor(interpreter, i),
               TfLiteInterpreterGetInputTensor(interpreter, i),
               TfLiteInterpreterGetOutputTensor(interpreter, i)}) {
        double elements = 1;
        const int32_t rank = tensor == nullptr ? 0 : TfLiteTensorNumDims(tensor);
        for (int32_t k = 0; k < rank; ++k) elements *= std::max(TfLiteTensorDim(tensor, k), 1);
        if (elements > kMostElements) return true;
      }
    return false;
  }

  TfLiteTensor* someTensor() {
    const TfLiteInterpreter* const interpreter = interpreters_[object()];
    switch (byte() % 4) {
      case 0:
        return TfLiteInterpreterGetInputTensor(interpreter, index());
      case 1:
        return const_cast<TfLiteTensor*>(TfLiteInterpreterGetOutputTensor(interpreter, index()));
      case 2:
        return TfLiteInterpreterGetVariableTensor(interpreter, index());
      default:
        return TfLiteInterpreterGetTensor(interpreter, index());
    }
  }

  // Models are kept: an interpreter reads their bytes as long as it lives.
  void makeModel() {
    const std::span<const uint8_t> file = files_[byte() % files_.size()];
    std::vector<uint8_t> copy(file.begin(), file.end());
    if (byte() > 200)
      for (size_t i = byte() % 4; i > 0; --i) copy[(byte() * 256u + byte()) % copy.size()] = byte();
    held_.push_back(std::move(copy));
    TfLiteModel*& model = models_[object()];
    TfLiteModelDelete(model);
    model = TfLiteModelCreateWithErrorReporter(held_.back().data(), held_.back().size(), ignore,
                                               nullptr);
    countMade(model);
  }

  void setOperators(TfLiteInterpreterOptions* options) {
    const uint8_t choice = byte();
    if (choice % 4 != 0) return;
    // As long as interpreters may be made with the options, the functions find the same.
    uint8_t* const found = &found_.emplace_back(byte());
    switch (choice / 4 % 4) {
      case 0:
        TfLiteInterpreterOptionsAddBuiltinOp(options, index(), zerosRegistration(), index(),
                                             index());
        break;
      case 1:
        TfLiteInterpreterOptionsSetOpResolver(options, findBuiltin, findCustom, found);
        break;
      case 2:
        TfLiteInterpreterOptionsSetOpResolverExternal(options, findOperator, nullptr, found);
        break;
      default:
        TfLiteInterpreterOptionsSetOpResolverExternalWithFallback(options, findOperator, nullptr,
                                                                  findBuiltin, findCustom, found);
    }
  }

  void callMaking(int choice) {
    switch (choice) {
      case 0:
      case 1:
        makeModel();
        break;
      case 2: {
        TfLiteInterpreterOptions*& options = options_[object()];
        TfLiteInterpreterOptionsDelete(options);
        options = TfLiteInterpreterOptionsCreate();
        TfLiteInterpreterOptionsSetErrorReporter(options, ignore, nullptr);
        setOperators(options);
        break;
      }
      case 3: {
        TfLiteInterpreterOptions* const options = options_[object()];
        TfLiteInterpreterOptionsSetNumThreads(options, index());
        count(TfLiteInterpreterOptionsEnableCancellation(options, byte() % 2 == 0));
        TfLiteInterpreterOptionsSetEnableDelegateFallback(options, byte() % 2 == 0);
        break;
      }
      case 4: {
        if (const uint8_t choice = byte(); choice % 2 == 0) {
          const size_t place = object();
          // A delegate stays what it is as long as interpreters may use it.
          if (ownDelegates_[place].Prepare == nullptr) {
            choices_[place] = byte();
            ownDelegates_[place].data_ = &choices_[place];
            ownDelegates_[place].Prepare = takeSome;
            ownDelegates_[place].flags = choice % 4 == 0 ? 1 : 0;
          }
          if (choice % 8 < 4)
            TfLiteInterpreterOptionsAddDelegate(options_[object()], &ownDelegates_[place]);
          else
            count(TfLiteInterpreterModifyGraphWithDelegate(interpreters_[object()],
                                                           &ownDelegates_[place]));
          break;
        }
        // Deleted after the interpreters.
        TfLiteDelegate*& delegate = delegates_[object()];
        if (delegate == nullptr) {
          TfLiteNnapiDelegateOptions options = TfLiteNnapiDelegateOptionsDefault();
          options.execution_preference = index();
          options.accelerator_name = byte() % 2 == 0 ? "nnapi-reference" : nullptr;
          delegate = TfLiteNnapiDelegateCreate(&options);
        }
        TfLiteInterpreterOptionsAddDelegate(options_[object()], delegate);
        break;
      }
      case 5: {
        TfLiteSignatureRunner*& runner = runners_[object()];
        TfLiteSignatureRunnerDelete(runner);
        const TfLiteInterpreter* const interpreter = interpreters_[object()];
        runner = TfLiteInterpreterGetSignatureRunner(
            interpreter, TfLiteInterpreterGetSignatureKey(interpreter, index()));
        countMade(runner);
        break;
      }
      default: {
        TfLiteInterpreter*& interpreter = interpreters_[object()];
        TfLiteInterpreterDelete(interpreter);
        const TfLiteModel* const model = models_[object()];
        interpreter = byte() % 8 == 0
                          ? TfLiteInterpreterCreateWithSelectedOps(model, options_[object()])
                          : TfLiteInterpreterCreate(model, options_[object()]);
        countMade(interpreter);
        // A model whose bytes were changed may have any shapes; see dims().
        if (hasLargeTensor(interpreter))
          TfLiteInterpreterDelete(std::exchange(interpreter, nullptr));
      }
    }
  }

  void callRunning(int choice) {
    TfLiteInterpreter* const interpreter = interpreters_[object()];
    TfLiteSignatureRunner* const runner = runners_[object()];
    switch (choice) {
      case 0:
      case 1:
        count(TfLiteInterpreterAllocateTensors(interpreter));
        break;
      case 2:
      case 3:
        count(TfLiteInterpreterInvoke(interpreter));
        break;
      case 4: {
        const std::vector<int32_t> made = dims();
        count(TfLiteInterpreterResizeInputTensor(interpreter, index(), made.data(),
                                                 static_cast<int32_t>(made.size())));
        break;
      }
      case 5:
        count(TfLiteInterpreterResetVariableTensors(interpreter));
        count(TfLiteInterpreterCancel(interpreter));
        break;
      case 6: {
        const TfLiteCustomAllocation allocation{memory_.data() + (byte() % 3) * 64, byte() * 8u};
        count(TfLiteInterpreterSetCustomAllocationForTensor(interpreter, index(), &allocation,
                                                            byte() % 2));
        break;
      }
      default: {
        const std::vector<int32_t> made = dims();
        count(TfLiteSignatureRunnerResizeInputTensor(
            runner, TfLiteSignatureRunnerGetInputName(runner, index()), made.data(),
            static_cast<int32_t>(made.size())));
        count(TfLiteSignatureRunnerAllocateTensors(runner));
        count(TfLiteSignatureRunnerInvoke(runner));
      }
    }
  }

  void callReading(int choice) {
    TfLiteTensor* const tensor = someTensor();
    const size_t size = std::min(TfLiteTensorByteSize(tensor), kRoom);
    switch (choice) {
      case 0:
      case 1:
        count(TfLiteTensorCopyFromBuffer(tensor, memory_.data() + kRoom, size));
        break;
      case 2:
      case 3:
        count(TfLiteTensorCopyToBuffer(tensor, memory_.data() + kRoom, size));
        break;
      case 4:
        for (int32_t i = -1; i <= TfLiteTensorNumDims(tensor); ++i) TfLiteTensorDim(tensor, i);
        break;
      case 5:
        // Programs write to inputs through the pointer, but not to constants. Memory of the program
        // is compared with the tensor's size when tensors are allocated, and may be too small until
        // then.
        if (tensor != nullptr && tensor->data != nullptr &&
            tensor->allocation_type != kTfLiteMmapRo)
          std::fill_n(static_cast<uint8_t*>(tensor->data), size, byte());
        break;
      case 6: {
        int32_t rank = 0;
        int32_t dim = 0;
        count(TfLiteOpaqueTensorGetNumDimsSignature(tensor, &rank));
        count(TfLiteOpaqueTensorGetDimSignature(tensor, index(), &dim));
        break;
      }
      case 7:
        succeeded_ += TfLiteTensorName(tensor) != nullptr;
        succeeded_ += TfLiteTensorQuantizationParams(tensor).scale != 0;
        break;
      case 8: {
        const char* text = nullptr;
        int length = 0;
        count(TfLiteOpaqueTensorGetString(tensor, index(), &text, &length));
        break;
      }
      case 9: {
        int32_t handle = 0;
        TfLiteOpaqueDelegate* delegate = nullptr;
        count(
            TfLiteInterpreterGetBufferHandle(interpreters_[object()], index(), &handle, &delegate));
        count(TfLiteInterpreterEnsureTensorDataIsReadable(interpreters_[object()], index()));
        break;
      }
      case 10: {
        TfLiteSignatureRunner* const runner = runners_[object()];
        const char* const name = TfLiteSignatureRunnerGetOutputName(runner, index());
        succeeded_ += TfLiteSignatureRunnerGetOutputTensor(runner, name) != nullptr;
        break;
      }
      default:
        succeeded_ += TfLiteTensorGetDataStability(tensor) != kTfLiteRunStabilityUnknown;
        succeeded_ += TfLiteTensorGetAllocationStrategy(tensor) != kTfLiteAllocationStrategyUnknown;
    }
  }

  std::span<const uint8_t> bytes_;
  std::span<const std::span<const uint8_t>> files_;
  size_t position_ = 0;
  size_t succeeded_ = 0;
  std::vector<std::vector<uint8_t>> held_;
  std::deque<uint8_t> found_;  // at addresses that stay
  alignas(64) std::array<uint8_t, 2 * kRoom> memory_{};
  std::array<TfLiteModel*, kObjects> models_{};
  std::array<TfLiteInterpreterOptions*, kObjects> options_{};
  std::array<TfLiteInterpreter*, kObjects> interpreters_{};
  std::array<TfLiteSignatureRunner*, kObjects> runners_{};
  std::array<TfLiteDelegate*, kObjects> delegates_{};
  std::array<TfLiteDelegate, kObjects> ownDelegates_{};
  std::array<uint8_t, kObjects> choices_{};
};

}  // namespace

size_t runCallSequence(std::span<const uint8_t> bytes,
                       std::span<const std::span<const uint8_t>> models) {
  return Sequence(bytes, models).run();
}

size_t runCallSequence(std::span<const uint8_t> input) {
  constexpr size_t kHead = 2;
  if (input.size() <= kHead + 1) return 0;
  const std::span<const uint8_t> rest = input.subspan(kHead);
  const size_t calls = std::min<size_t>(input[0] * 256u + input[1], rest.size() - 1);
  const std::span<const uint8_t> model = rest.subspan(calls);
  return runCallSequence(rest.first(calls), {&model, 1});
}

}  // namespace hearth::tflite_c::testing
