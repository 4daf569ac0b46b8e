// SPDX-License-Identifier: Apache-2.0
// For gpu/compare.py: what a device makes of large products, and what the CPU has to do between two
// executions of which one waits for the other.
//
//   gpu_bench DEVICE [SIZE]     prints one JSON object
//
// SIZE (4096) is the number of rows and columns of the matrices. A product is a layer of a chain,
// so that no matrix but the first and the last leaves the device. Fenced executions hand a tensor
// in the device's memory from one to the next.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "hearth/nnapi.hpp"

namespace {

namespace ndk = hearth::ndk;

constexpr int kLayers = 8;
constexpr int kRuns = 5;
constexpr int kFenced = 64;
constexpr size_t kImage = size_t{56} * 56 * 64;

double secondsOf(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Seconds of the fastest of some runs of a chain of layers, each size x size by size x size. All
// numbers are small enough that no sum overflows, whatever their type.
template <typename Number>
double chainSeconds(ANeuralNetworksDevice* device, int32_t type, uint32_t size, int layers) {
  const std::vector<Number> weights(size_t{size} * size, Number(0.0001f));
  const std::vector<Number> bias(size, Number(0.0f));
  ndk::Model model;
  const ndk::Type matrix = {type, {size, size}, 0, 0};
  const uint32_t weightsOperand = model.constant(matrix, weights);
  const uint32_t biasOperand = model.constant({type, {size}, 0, 0}, bias);
  const uint32_t none = model.int32(ANEURALNETWORKS_FUSED_NONE);
  const uint32_t first = model.operand(matrix);
  uint32_t last = first;
  for (int i = 0; i < layers; ++i) {
    const uint32_t next = model.operand(matrix);
    model.operation(ANEURALNETWORKS_FULLY_CONNECTED, {last, weightsOperand, biasOperand, none},
                    {next});
    last = next;
  }
  model.finish({first}, {last});
  ndk::Compilation compilation(model, {device});
  compilation.finish();
  const std::vector<Number> input(size_t{size} * size, Number(1.0f));
  std::vector<Number> output(input.size());
  ndk::Execution execution(compilation);
  execution.reusable().input(0, input).output(0, output);
  execution.compute();
  double fastest = 1e9;
  for (int run = 0; run < kRuns; ++run) {
    const double begin = secondsOf(CLOCK_MONOTONIC);
    execution.compute();
    fastest = std::min(fastest, secondsOf(CLOCK_MONOTONIC) - begin);
  }
  return fastest;
}

// Seconds of one product.
template <typename Number>
double productSeconds(ANeuralNetworksDevice* device, int32_t type, uint32_t size) {
  const double one = chainSeconds<Number>(device, type, size, 1);
  return (chainSeconds<Number>(device, type, size, 1 + kLayers) - one) / kLayers;
}

struct FencedTime {
  double processor = 0;  // seconds of all threads of this process, for each execution
  double wall = 0;
};

// A RELU from one memory of the device to another, and back, each after the one before.
FencedTime fencedTime(ANeuralNetworksDevice* device) {
  const ndk::Type image = {ANEURALNETWORKS_TENSOR_FLOAT32, {1, 56, 56, 64}, 0, 0};
  ndk::Model model;
  const uint32_t from = model.operand(image);
  const uint32_t to = model.operand(image);
  model.operation(ANEURALNETWORKS_RELU, {from}, {to});
  model.finish({from}, {to});
  ndk::Compilation compilation(model, {device});
  compilation.finish();
  ndk::MemoryHandle memories[2];
  for (ndk::MemoryHandle& memory : memories) {
    ndk::MemoryDescHandle description;
    ndk::check(ANeuralNetworksMemoryDesc_create(ndk::Out(description)), "MemoryDesc_create");
    ndk::check(ANeuralNetworksMemoryDesc_addInputRole(description.get(), compilation.get(), 0, 1),
               "addInputRole");
    ndk::check(ANeuralNetworksMemoryDesc_addOutputRole(description.get(), compilation.get(), 0, 1),
               "addOutputRole");
    ndk::check(ANeuralNetworksMemoryDesc_finish(description.get()), "MemoryDesc_finish");
    ndk::check(ANeuralNetworksMemory_createFromDesc(description.get(), ndk::Out(memory)),
               "createFromDesc");
  }
  // The first execution gives the first memory its values.
  const std::vector<float> values(kImage, 1.0f);
  ndk::Execution begin(compilation);
  begin.input(0, values);
  ndk::check(ANeuralNetworksExecution_setOutputFromMemory(begin.get(), 0, nullptr,
                                                          memories[0].get(), 0, 0),
             "setOutputFromMemory");
  begin.compute();
  std::vector<ndk::Execution> executions;
  for (int i = 0; i < kFenced; ++i) {
    ndk::Execution& execution = executions.emplace_back(compilation);
    execution.reusable();
    ndk::check(ANeuralNetworksExecution_setInputFromMemory(execution.get(), 0, nullptr,
                                                           memories[i % 2].get(), 0, 0),
               "setInputFromMemory");
    ndk::check(ANeuralNetworksExecution_setOutputFromMemory(execution.get(), 0, nullptr,
                                                            memories[1 - i % 2].get(), 0, 0),
               "setOutputFromMemory");
  }
  FencedTime fastest{1e9, 1e9};
  for (int run = 0; run <= kRuns; ++run) {
    const double processor = secondsOf(CLOCK_PROCESS_CPUTIME_ID);
    const double wall = secondsOf(CLOCK_MONOTONIC);
    std::vector<ndk::Event> events;
    events.push_back(executions[0].start());
    for (int i = 1; i < kFenced; ++i)
      events.push_back(executions[static_cast<size_t>(i)].startAfter({events.back().get()}));
    for (const ndk::Event& event : events) event.wait();
    if (run == 0) continue;  // records commands
    fastest.processor =
        std::min(fastest.processor, (secondsOf(CLOCK_PROCESS_CPUTIME_ID) - processor) / kFenced);
    fastest.wall = std::min(fastest.wall, (secondsOf(CLOCK_MONOTONIC) - wall) / kFenced);
  }
  return fastest;
}

}  // namespace

int main(int count, char** words) {
  const int size = count > 2 ? std::atoi(words[2]) : 4096;
  if (count < 2 || count > 3 || size < 1 || size > 16384) {
    std::fprintf(stderr, "usage: gpu_bench DEVICE [SIZE]\n");
    return 2;
  }
  try {
    ANeuralNetworksDevice* const device = ndk::findDevice(words[1]);
    if (device == nullptr) {
      std::fprintf(stderr, "There is no device %s.\n", words[1]);
      return 1;
    }
    const auto rows = static_cast<uint32_t>(size);
    const double half = productSeconds<_Float16>(device, ANEURALNETWORKS_TENSOR_FLOAT16, rows);
    const double full = productSeconds<float>(device, ANEURALNETWORKS_TENSOR_FLOAT32, rows);
    const FencedTime fenced = fencedTime(device);
    std::printf(
        "{\"size\": %d, \"float16_product_s\": %.9g, \"float32_product_s\": %.9g, "
        "\"fenced_processor_us\": %.4g, \"fenced_wall_us\": %.4g}\n",
        size, half, full, 1e6 * fenced.processor, 1e6 * fenced.wall);
  } catch (const std::exception& exception) {
    std::fprintf(stderr, "gpu_bench: %s\n", exception.what());
    return 1;
  }
  return 0;
}
