// SPDX-License-Identifier: Apache-2.0
#include "frontends/nnapi/testing/call_sequence.h"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "android/NeuralNetworksExtensions.h"
#include "base/descriptor.h"
#include "hearth/nnapi.hpp"

namespace hearth::nnapi {
namespace {

using ndk::Out;

constexpr size_t kObjects = 3;
constexpr size_t kMaxCalls = 300;
// The size of the buffers that arguments point to; operands are smaller.
constexpr size_t kBufferSize = 4096;
// In nanoseconds, so that every loop ends soon.
constexpr uint64_t kLongestLoop = 5'000'000;

class Sequence {
 public:
  explicit Sequence(std::span<const uint8_t> bytes) : bytes_(bytes) {
    file_.reset(::memfd_create("fuzz", MFD_CLOEXEC));
    if (::ftruncate(file_.get(), kBufferSize) != 0) std::abort();
    ndk::check(ANeuralNetworks_getDeviceCount(&deviceCount_), "getDeviceCount");
  }

  size_t run() {
    for (size_t i = 0; i < kMaxCalls && position_ < bytes_.size(); ++i) {
      const uint8_t choice = byte();
      // Models need the most calls.
      if (choice < 128)
        callModel(choice % 12);
      else if (choice < 168)
        callCompilation(choice % 8);
      else if (choice < 224)
        callExecution(choice % 14);
      else
        callMemory(choice % 9);
    }
    // Freeing events waits for executions that use the buffers.
    for (auto& event : events_) event.reset();
    return succeeded_;
  }

 private:
  uint8_t byte() { return position_ < bytes_.size() ? bytes_[position_++] : 0; }
  uint32_t below(uint32_t limit) { return byte() % limit; }
  bool isRare() { return byte() > 240; }
  int32_t index() {
    return isRare() ? static_cast<int8_t>(byte()) : static_cast<int32_t>(below(12));
  }

  void note(int code) {
    if (code < ANEURALNETWORKS_NO_ERROR || code > ANEURALNETWORKS_DEAD_OBJECT) {
      std::fprintf(stderr, "%d is no code of NNAPI.\n", code);
      std::abort();
    }
    succeeded_ += code == ANEURALNETWORKS_NO_ERROR;
  }

  // An out-pointer must be set if and only if the call succeeds.
  template <typename Owner>
  void noteMade(int code, const Owner& owner) {
    note(code);
    if ((code == ANEURALNETWORKS_NO_ERROR) != (owner != nullptr)) {
      std::fprintf(stderr, "A call gives %d and %s object.\n", code, owner ? "an" : "no");
      std::abort();
    }
  }

  template <typename Owner>
  auto pick(std::array<Owner, kObjects>& owners) {
    return isRare() ? nullptr : owners[below(kObjects)].get();
  }

  ndk::Type type() {
    constexpr int32_t kOften[] = {ANEURALNETWORKS_TENSOR_FLOAT32,      ANEURALNETWORKS_INT32,
                                  ANEURALNETWORKS_TENSOR_FLOAT32,      ANEURALNETWORKS_TENSOR_INT32,
                                  ANEURALNETWORKS_TENSOR_QUANT8_ASYMM, ANEURALNETWORKS_MODEL,
                                  ANEURALNETWORKS_TENSOR_BOOL8,        ANEURALNETWORKS_FLOAT32};
    ndk::Type made;
    made.code = isRare() ? static_cast<int32_t>(below(20)) - 2 : kOften[below(8)];
    const bool isScalar = made.code == ANEURALNETWORKS_INT32 ||
                          made.code == ANEURALNETWORKS_FLOAT32 ||
                          made.code == ANEURALNETWORKS_MODEL;
    if (!isScalar || isRare()) {
      made.dimensions.resize(below(4));
      for (uint32_t& dimension : made.dimensions) dimension = 1 + below(4);
      if (!made.dimensions.empty() && isRare()) made.dimensions[0] = isRare() ? 0xffffffff : 0;
    }
    if (made.code == ANEURALNETWORKS_TENSOR_QUANT8_ASYMM) made.scale = 0.5f;
    if (isRare()) made.zeroPoint = static_cast<int8_t>(byte());
    return made;
  }

  std::vector<uint32_t> indices(uint32_t limit) {
    std::vector<uint32_t> list(below(limit));
    for (uint32_t& item : list) item = isRare() ? 0xffffffff : below(12);
    return list;
  }

  std::vector<const ANeuralNetworksDevice*> deviceList() {
    std::vector<const ANeuralNetworksDevice*> list(1 + below(2));
    for (const ANeuralNetworksDevice*& device : list) {
      ANeuralNetworksDevice* found = nullptr;
      ANeuralNetworks_getDevice(below(deviceCount_ + 1), &found);
      device = found;
    }
    return list;
  }

  // A length that a client might give: often that of a tensor.
  size_t length() { return isRare() ? below(256) * 16 : 4 * size_t{1 + below(16)}; }

  // Builds x + y, to get further than chance does.
  void buildAddition(ANeuralNetworksModel* model) {
    const uint32_t dimension = isRare() ? 0 : 1 + below(4);
    const ANeuralNetworksOperandType tensor = {ANEURALNETWORKS_TENSOR_FLOAT32, 1, &dimension, 0, 0};
    const ANeuralNetworksOperandType scalar = {ANEURALNETWORKS_INT32, 0, nullptr, 0, 0};
    const int32_t none = 0;
    for (int i = 0; i < 3; ++i) note(ANeuralNetworksModel_addOperand(model, &tensor));
    note(ANeuralNetworksModel_addOperand(model, &scalar));
    note(ANeuralNetworksModel_setOperandValue(model, 3, &none, sizeof(none)));
    const uint32_t inputs[] = {0, 1, 3};
    const uint32_t output = 2;
    note(ANeuralNetworksModel_addOperation(model, ANEURALNETWORKS_ADD, 3, inputs, 1, &output));
    note(ANeuralNetworksModel_identifyInputsAndOutputs(model, 2, inputs, 1, &output));
  }

  void callModel(unsigned choice) {
    const uint32_t slot = below(kObjects);
    ANeuralNetworksModel* const model = isRare() ? nullptr : models_[slot].get();
    switch (choice) {
      case 0: {
        const int code = ANeuralNetworksModel_create(Out(models_[slot]));
        noteMade(code, models_[slot]);
        return;
      }
      case 1:
      case 2:
      case 3: {
        const ndk::Type made = type();
        const ANeuralNetworksOperandType operand = made.get();
        return note(ANeuralNetworksModel_addOperand(model, isRare() ? nullptr : &operand));
      }
      case 4:
      case 5:
        return note(ANeuralNetworksModel_setOperandValue(
            model, index(), isRare() ? nullptr : constants_.data(), isRare() ? 0 : length()));
      case 6: {
        const ANeuralNetworksMemory* const memory = pick(memories_);
        const size_t offset = length();
        return note(ANeuralNetworksModel_setOperandValueFromMemory(model, index(), memory, offset,
                                                                   length()));
      }
      case 7:
        return note(ANeuralNetworksModel_setOperandValueFromModel(model, index(), pick(models_)));
      case 8: {
        const auto code = isRare() ? static_cast<int8_t>(byte()) : static_cast<int32_t>(below(106));
        const std::vector<uint32_t> inputs = indices(6);
        const std::vector<uint32_t> outputs = indices(3);
        return note(ANeuralNetworksModel_addOperation(
            model, code, static_cast<uint32_t>(inputs.size()), inputs.data(),
            static_cast<uint32_t>(outputs.size()), outputs.data()));
      }
      case 9: {
        const std::vector<uint32_t> inputs = indices(3);
        const std::vector<uint32_t> outputs = indices(3);
        return note(ANeuralNetworksModel_identifyInputsAndOutputs(
            model, static_cast<uint32_t>(inputs.size()), inputs.data(),
            static_cast<uint32_t>(outputs.size()), outputs.data()));
      }
      case 10:
        return buildAddition(model);
      default:
        return note(ANeuralNetworksModel_finish(model));
    }
  }

  void callCompilation(unsigned choice) {
    const uint32_t slot = below(kObjects);
    ANeuralNetworksCompilation* const compilation = isRare() ? nullptr : compilations_[slot].get();
    switch (choice) {
      case 0:
      case 1: {
        const int code = ANeuralNetworksCompilation_create(pick(models_), Out(compilations_[slot]));
        return noteMade(code, compilations_[slot]);
      }
      case 2: {
        const auto list = deviceList();
        const int code = ANeuralNetworksCompilation_createForDevices(
            pick(models_), list.data(), static_cast<uint32_t>(list.size()),
            Out(compilations_[slot]));
        return noteMade(code, compilations_[slot]);
      }
      case 3:
        return note(ANeuralNetworksCompilation_setPreference(compilation, index() - 1));
      case 4:
        return note(ANeuralNetworksCompilation_setPriority(compilation, 80 + byte() % 40));
      case 5:
        return note(ANeuralNetworksCompilation_setTimeout(compilation, byte() * 1000));
      default:
        return note(ANeuralNetworksCompilation_finish(compilation));
    }
  }

  void callExecution(unsigned choice) {
    const uint32_t slot = below(kObjects);
    ANeuralNetworksExecution* const execution = isRare() ? nullptr : executions_[slot].get();
    switch (choice) {
      case 0: {
        // A replaced execution in flight goes on in the shared buffers; its event is kept.
        const int code =
            ANeuralNetworksExecution_create(pick(compilations_), Out(executions_[slot]));
        noteMade(code, executions_[slot]);
        if (executions_[slot] != nullptr)
          note(ANeuralNetworksExecution_setLoopTimeout(executions_[slot].get(), kLongestLoop));
        return;
      }
      case 1:
      case 2: {
        const ndk::Type made = type();
        const ANeuralNetworksOperandType given = made.get();
        return note(ANeuralNetworksExecution_setInput(
            execution, static_cast<int32_t>(below(3)), isRare() ? &given : nullptr,
            isRare() ? nullptr : inputs_.data(), isRare() ? 0 : length()));
      }
      case 3:
        return note(ANeuralNetworksExecution_setOutput(
            execution, static_cast<int32_t>(below(2)), nullptr,
            isRare() ? nullptr : outputs_.data(), isRare() ? 0 : length()));
      case 4: {
        const size_t offset = isRare() ? length() : 0;
        return note(ANeuralNetworksExecution_setInputFromMemory(
            execution, static_cast<int32_t>(below(3)), nullptr, pick(memories_), offset,
            isRare() ? 0 : length()));
      }
      case 5:
        return note(ANeuralNetworksExecution_setOutputFromMemory(
            execution, static_cast<int32_t>(below(2)), nullptr, pick(memories_), 0,
            isRare() ? 0 : length()));
      case 6:
        return note(ANeuralNetworksExecution_setReusable(execution, byte() % 2 != 0));
      case 7:
        return note(ANeuralNetworksExecution_enableInputAndOutputPadding(execution, byte() % 2));
      case 8:
      case 9:
        return note(ANeuralNetworksExecution_compute(execution));
      case 10: {
        const int code = ANeuralNetworksExecution_startCompute(execution, Out(events_[slot]));
        return noteMade(code, events_[slot]);
      }
      case 11: {
        const ANeuralNetworksEvent* dependency = pick(events_);
        ndk::EventHandle event;
        const int code = ANeuralNetworksExecution_startComputeWithDependencies(
            execution, &dependency, below(2), isRare() ? byte() : 0, Out(event));
        noteMade(code, event);
        events_[slot] = std::move(event);
        return;
      }
      case 12: {
        std::array<uint32_t, 64> answer;
        note(ANeuralNetworksExecution_getOutputOperandRank(execution, index() % 3, answer.data()));
        return note(ANeuralNetworksExecution_getOutputOperandDimensions(execution, index() % 3,
                                                                        answer.data()));
      }
      default: {
        ndk::BurstHandle burst;
        const int code = ANeuralNetworksBurst_create(pick(compilations_), Out(burst));
        noteMade(code, burst);
        if (burst != nullptr) note(ANeuralNetworksExecution_burstCompute(execution, burst.get()));
        return;
      }
    }
  }

  void callMemory(unsigned choice) {
    const uint32_t slot = below(kObjects);
    ANeuralNetworksMemoryDesc* const desc = isRare() ? nullptr : descs_[slot].get();
    switch (choice) {
      case 0:
      case 1: {
        const size_t offset = isRare() ? kBufferSize : byte();
        const int code = ANeuralNetworksMemory_createFromFd(length(), PROT_READ | PROT_WRITE,
                                                            isRare() ? -1 : file_.get(), offset,
                                                            Out(memories_[slot]));
        return noteMade(code, memories_[slot]);
      }
      case 2: {
        const int code = ANeuralNetworksMemoryDesc_create(Out(descs_[slot]));
        return noteMade(code, descs_[slot]);
      }
      case 3:
        return note(ANeuralNetworksMemoryDesc_addInputRole(desc, pick(compilations_), below(3),
                                                           isRare() ? 0.0f : 1.0f));
      case 4:
        return note(ANeuralNetworksMemoryDesc_addOutputRole(desc, pick(compilations_), below(2),
                                                            isRare() ? 2.0f : 1.0f));
      case 5: {
        const uint32_t dimensions[] = {below(5), below(5)};
        return note(ANeuralNetworksMemoryDesc_setDimensions(desc, below(3), dimensions));
      }
      case 6:
        return note(ANeuralNetworksMemoryDesc_finish(desc));
      case 7: {
        const int code = ANeuralNetworksMemory_createFromDesc(desc, Out(memories_[slot]));
        return noteMade(code, memories_[slot]);
      }
      default:
        return note(ANeuralNetworksMemory_copy(pick(memories_), pick(memories_)));
    }
  }

  const std::span<const uint8_t> bytes_;
  size_t position_ = 0;
  size_t succeeded_ = 0;
  uint32_t deviceCount_ = 0;
  base::Descriptor file_;
  alignas(64) std::array<uint8_t, kBufferSize> constants_{};
  alignas(64) std::array<uint8_t, kBufferSize> inputs_{};
  alignas(64) std::array<uint8_t, kBufferSize> outputs_{};
  std::array<ndk::ModelHandle, kObjects> models_;
  std::array<ndk::CompilationHandle, kObjects> compilations_;
  std::array<ndk::ExecutionHandle, kObjects> executions_;
  std::array<ndk::EventHandle, kObjects> events_;
  std::array<ndk::MemoryHandle, kObjects> memories_;
  std::array<ndk::MemoryDescHandle, kObjects> descs_;
};

}  // namespace

size_t runCallSequence(std::span<const uint8_t> bytes) {
  // On the heap, because a Sequence holds large buffers.
  return std::make_unique<Sequence>(bytes)->run();
}

}  // namespace hearth::nnapi
