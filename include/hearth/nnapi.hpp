// SPDX-License-Identifier: Apache-2.0
// C++17 over the Neural Networks API's C functions, header only: handles that free themselves,
// exceptions for errors. The rules of android/NeuralNetworks.h hold. Link with -lneuralnetworks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "android/NeuralNetworks.h"

namespace hearth::ndk {

// Every function here throws this for a code other than NO_ERROR; the library's log has the reason.
class Exception : public std::runtime_error {
 public:
  Exception(int code, const char* call)
      : std::runtime_error(std::string(call) + " gives the code " + std::to_string(code)),
        code_(code) {}
  int code() const noexcept { return code_; }  // a ResultCode

 private:
  int code_;
};

inline void check(int code, const char* call) {
  if (code != ANEURALNETWORKS_NO_ERROR) throw Exception(code, call);
}

// Owners of the C API's objects, for use with its functions.
template <auto free>
struct Free {
  template <typename Object>
  void operator()(Object* object) const noexcept {
    free(object);
  }
};
using ModelHandle = std::unique_ptr<ANeuralNetworksModel, Free<ANeuralNetworksModel_free>>;
using CompilationHandle =
    std::unique_ptr<ANeuralNetworksCompilation, Free<ANeuralNetworksCompilation_free>>;
using ExecutionHandle =
    std::unique_ptr<ANeuralNetworksExecution, Free<ANeuralNetworksExecution_free>>;
using BurstHandle = std::unique_ptr<ANeuralNetworksBurst, Free<ANeuralNetworksBurst_free>>;
using EventHandle = std::unique_ptr<ANeuralNetworksEvent, Free<ANeuralNetworksEvent_free>>;
using MemoryHandle = std::unique_ptr<ANeuralNetworksMemory, Free<ANeuralNetworksMemory_free>>;
using MemoryDescHandle =
    std::unique_ptr<ANeuralNetworksMemoryDesc, Free<ANeuralNetworksMemoryDesc_free>>;
using HardwareBufferHandle = std::unique_ptr<AHardwareBuffer, Free<AHardwareBuffer_release>>;

// Passes an owner as out-parameter: create(Out(owner)). Frees the owner's previous object first.
template <typename Owner>
class Out {
 public:
  explicit Out(Owner& owner) : owner_(owner) { owner_.reset(); }
  Out(const Out&) = delete;
  Out& operator=(const Out&) = delete;
  ~Out() { owner_.reset(made_); }
  operator typename Owner::pointer *() { return &made_; }

 private:
  Owner& owner_;
  typename Owner::pointer made_ = nullptr;
};

// Type of an operand; owns the dimensions, which the C structure only points to.
struct Type {
  int32_t code = ANEURALNETWORKS_TENSOR_FLOAT32;
  std::vector<uint32_t> dimensions;
  float scale = 0;
  int32_t zeroPoint = 0;

  // Valid while this is neither changed nor destroyed.
  ANeuralNetworksOperandType get() const {
    return {code, static_cast<uint32_t>(dimensions.size()),
            dimensions.empty() ? nullptr : dimensions.data(), scale, zeroPoint};
  }
};

// All devices, in the order of preference.
inline std::vector<ANeuralNetworksDevice*> devices() {
  uint32_t count = 0;
  check(ANeuralNetworks_getDeviceCount(&count), "getDeviceCount");
  std::vector<ANeuralNetworksDevice*> list(count);
  for (uint32_t i = 0; i < count; ++i) check(ANeuralNetworks_getDevice(i, &list[i]), "getDevice");
  return list;
}

inline std::string nameOf(const ANeuralNetworksDevice* device) {
  const char* name = nullptr;
  check(ANeuralNetworksDevice_getName(device, &name), "Device_getName");
  return name;
}

// Returns null when there is no device of this name.
inline ANeuralNetworksDevice* findDevice(const std::string& name) {
  for (ANeuralNetworksDevice* device : devices())
    if (nameOf(device) == name) return device;
  return nullptr;
}

// A model, built step by step; operands are named by their indices.
class Model {
 public:
  Model() { check(ANeuralNetworksModel_create(Out(handle_)), "Model_create"); }

  ANeuralNetworksModel* get() const { return handle_.get(); }

  uint32_t operand(const Type& type) {
    const ANeuralNetworksOperandType made = type.get();
    check(ANeuralNetworksModel_addOperand(get(), &made), "addOperand");
    return count_++;
  }
  // An omitted optional argument.
  uint32_t noValue(const Type& type) {
    const uint32_t index = operand(type);
    check(ANeuralNetworksModel_setOperandValue(get(), static_cast<int32_t>(index), nullptr, 0),
          "setOperandValue");
    return index;
  }
  // Up to 128 bytes are copied at once; longer `values` must live until finish().
  template <typename T>
  uint32_t constant(const Type& type, const std::vector<T>& values) {
    const uint32_t index = operand(type);
    check(ANeuralNetworksModel_setOperandValue(get(), static_cast<int32_t>(index), values.data(),
                                               values.size() * sizeof(T)),
          "setOperandValue");
    return index;
  }
  uint32_t int32(int32_t value) {
    return constant<int32_t>({ANEURALNETWORKS_INT32, {}, 0, 0}, {value});
  }
  uint32_t float32(float value) {
    return constant<float>({ANEURALNETWORKS_FLOAT32, {}, 0, 0}, {value});
  }
  uint32_t boolean(bool value) {
    return constant<uint8_t>({ANEURALNETWORKS_BOOL, {}, 0, 0}, {static_cast<uint8_t>(value)});
  }
  // For IF and WHILE; `value` must be finished.
  uint32_t model(const Model& value) {
    const uint32_t index = operand({ANEURALNETWORKS_MODEL, {}, 0, 0});
    check(ANeuralNetworksModel_setOperandValueFromModel(get(), static_cast<int32_t>(index),
                                                        value.get()),
          "setOperandValueFromModel");
    return index;
  }
  void operation(int32_t code, const std::vector<uint32_t>& inputs,
                 const std::vector<uint32_t>& outputs) {
    check(ANeuralNetworksModel_addOperation(get(), code, static_cast<uint32_t>(inputs.size()),
                                            inputs.data(), static_cast<uint32_t>(outputs.size()),
                                            outputs.data()),
          "addOperation");
  }
  void finish(const std::vector<uint32_t>& inputs, const std::vector<uint32_t>& outputs) {
    check(ANeuralNetworksModel_identifyInputsAndOutputs(
              get(), static_cast<uint32_t>(inputs.size()), inputs.data(),
              static_cast<uint32_t>(outputs.size()), outputs.data()),
          "identifyInputsAndOutputs");
    check(ANeuralNetworksModel_finish(get()), "Model_finish");
  }

 private:
  ModelHandle handle_;
  uint32_t count_ = 0;
};

// A compilation; set options between construction and finish().
class Compilation {
 public:
  explicit Compilation(const Model& model) {
    check(ANeuralNetworksCompilation_create(model.get(), Out(handle_)), "Compilation_create");
  }
  Compilation(const Model& model, const std::vector<const ANeuralNetworksDevice*>& devices) {
    check(ANeuralNetworksCompilation_createForDevices(
              model.get(), devices.data(), static_cast<uint32_t>(devices.size()), Out(handle_)),
          "createForDevices");
  }

  ANeuralNetworksCompilation* get() const { return handle_.get(); }
  Compilation& finish() {
    check(ANeuralNetworksCompilation_finish(get()), "Compilation_finish");
    return *this;
  }

 private:
  CompilationHandle handle_;
};

// The end of a computation in the background.
class Event {
 public:
  ANeuralNetworksEvent* get() const { return handle_.get(); }
  EventHandle& handle() { return handle_; }
  void wait() const { check(ANeuralNetworksEvent_wait(get()), "Event_wait"); }

 private:
  EventHandle handle_;
};

// One execution; containers that are arguments must outlive the computation.
class Execution {
 public:
  explicit Execution(const Compilation& compilation) {
    check(ANeuralNetworksExecution_create(compilation.get(), Out(handle_)), "Execution_create");
  }

  ANeuralNetworksExecution* get() const { return handle_.get(); }

  template <typename Container>
  Execution& input(int32_t index, const Container& values) {
    check(ANeuralNetworksExecution_setInput(get(), index, nullptr, values.data(),
                                            values.size() * sizeof(*values.data())),
          "setInput");
    return *this;
  }
  template <typename Container>
  Execution& output(int32_t index, Container& values) {
    check(ANeuralNetworksExecution_setOutput(get(), index, nullptr, values.data(),
                                             values.size() * sizeof(*values.data())),
          "setOutput");
    return *this;
  }
  Execution& reusable() {
    check(ANeuralNetworksExecution_setReusable(get(), true), "setReusable");
    return *this;
  }
  void compute() { check(ANeuralNetworksExecution_compute(get()), "compute"); }
  Event start() {
    Event event;
    check(ANeuralNetworksExecution_startCompute(get(), Out(event.handle())), "startCompute");
    return event;
  }
  Event startAfter(const std::vector<const ANeuralNetworksEvent*>& dependencies) {
    Event event;
    check(ANeuralNetworksExecution_startComputeWithDependencies(
              get(), dependencies.data(), static_cast<uint32_t>(dependencies.size()), 0,
              Out(event.handle())),
          "startComputeWithDependencies");
    return event;
  }
  std::vector<uint32_t> outputDimensions(int32_t index) const {
    uint32_t rank = 0;
    check(ANeuralNetworksExecution_getOutputOperandRank(get(), index, &rank),
          "getOutputOperandRank");
    std::vector<uint32_t> dimensions(rank);
    if (rank != 0)
      check(ANeuralNetworksExecution_getOutputOperandDimensions(get(), index, dimensions.data()),
            "getOutputOperandDimensions");
    return dimensions;
  }

 private:
  ExecutionHandle handle_;
};

}  // namespace hearth::ndk
