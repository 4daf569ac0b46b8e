// SPDX-License-Identifier: Apache-2.0
// For tests of the C API: the ways to compute, and arguments with types.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "frontends/nnapi/testing/test_models.h"

namespace hearth::nnapi {

struct ComputeMode {
  const char* name;
  bool isFenced;
  // Computes and returns the code of the call that failed, or NO_ERROR.
  std::function<int(const ndk::Compilation&, ndk::Execution&)> compute;
};

inline int waitFor(int started, const ndk::EventHandle& event) {
  return started == ANEURALNETWORKS_NO_ERROR ? ANeuralNetworksEvent_wait(event.get()) : started;
}

inline const std::vector<ComputeMode>& computeModes() {
  static const auto* const modes = new std::vector<ComputeMode>{
      {"compute", false,
       [](const ndk::Compilation&, ndk::Execution& execution) {
         return ANeuralNetworksExecution_compute(execution.get());
       }},
      {"startCompute", false,
       [](const ndk::Compilation&, ndk::Execution& execution) {
         ndk::EventHandle event;
         const int started =
             ANeuralNetworksExecution_startCompute(execution.get(), ndk::Out(event));
         return waitFor(started, event);
       }},
      {"burstCompute", false,
       [](const ndk::Compilation& compilation, ndk::Execution& execution) {
         ndk::BurstHandle burst;
         ndk::check(ANeuralNetworksBurst_create(compilation.get(), ndk::Out(burst)),
                    "Burst_create");
         return ANeuralNetworksExecution_burstCompute(execution.get(), burst.get());
       }},
      {"startComputeWithDependencies", true,
       [](const ndk::Compilation&, ndk::Execution& execution) {
         ndk::EventHandle event;
         const int started = ANeuralNetworksExecution_startComputeWithDependencies(
             execution.get(), nullptr, 0, 0, ndk::Out(event));
         return waitFor(started, event);
       }}};
  return *modes;
}

// Set an argument with a type argument.
template <typename T>
int setTypedInput(const ndk::Execution& execution, int32_t index, const ndk::Type& type,
                  const std::vector<T>& values) {
  const ANeuralNetworksOperandType given = type.get();
  return ANeuralNetworksExecution_setInput(execution.get(), index, &given, values.data(),
                                           values.size() * sizeof(T));
}
template <typename T>
int setTypedOutput(const ndk::Execution& execution, int32_t index, const ndk::Type& type,
                   std::vector<T>& values) {
  const ANeuralNetworksOperandType given = type.get();
  return ANeuralNetworksExecution_setOutput(execution.get(), index, &given, values.data(),
                                            values.size() * sizeof(T));
}

}  // namespace hearth::nnapi
