// SPDX-License-Identifier: Apache-2.0
// For tests: runs a model on hearth-cpu and on the reference kernels and compares the outputs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "graph/model.h"
#include "hal/device.h"

namespace hearth::cpu {

// One tensor's content.
using Bytes = std::vector<uint8_t>;

template <typename T>
Bytes bytesOf(const std::vector<T>& values) {
  const auto* data = reinterpret_cast<const uint8_t*>(values.data());
  return {data, data + values.size() * sizeof(T)};
}

// Reproducible numbers in [-spread, spread).
std::vector<float> randomFloats(size_t count, unsigned seed, float spread = 1.0f);
// A scale for each of `count` channels, each greater than the one before.
std::vector<float> risingScales(size_t count, float step);
// Any bytes.
Bytes randomBytes(size_t count, unsigned seed);

// All outputs of a prepared model, whose shapes the model must know. Threads: what it was prepared
// with.
Result<std::vector<Bytes>> runPrepared(const graph::Model& model,
                                       const std::shared_ptr<hal::PreparedModel>& prepared,
                                       const std::vector<Bytes>& inputs);

// The outputs of hearth-cpu on two threads, and those of the reference kernels.
struct Comparison {
  std::vector<Bytes> made;
  std::vector<Bytes> expected;
};
Result<Comparison> runBoth(const graph::Model& model, const std::vector<Bytes>& inputs);

// What the device says runs a float32 convolution or fully connected layer on this CPU.
const char* floatLayerKernel();
// The same of a fully connected layer of 16 outputs or more with float32 activations and weights
// of 8 bits.
const char* hybridLayerKernel();

// What a comparison tells: all is well when it is empty. float32 and float16 outputs may differ by
// `tolerance` times the greatest finite number of the output, 8-bit ones by one step, others not at
// all. NaN equals NaN. `kernel` is what the device must say of the last operation (null: anything).
// Where that is the reference kernel itself, the judge is the operation's formula.
std::string differenceFromReference(const graph::Model& model, const std::vector<Bytes>& inputs,
                                    const char* kernel, float tolerance);

}  // namespace hearth::cpu
