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
// Reproducible bytes.
Bytes randomBytes(size_t count, unsigned seed);

// Runs a prepared model and returns all of its outputs, whose shapes `model` must know.
Result<std::vector<Bytes>> runPrepared(const graph::Model& model,
                                       const std::shared_ptr<hal::PreparedModel>& prepared,
                                       const std::vector<Bytes>& inputs);

// The outputs of hearth-cpu on two threads, and those of the reference kernels.
struct Comparison {
  std::vector<Bytes> made;
  std::vector<Bytes> expected;
};
Result<Comparison> runBoth(const graph::Model& model, const std::vector<Bytes>& inputs);

// The kind of kernel that the device reports for a float32 convolution or fully connected layer on
// this CPU.
const char* floatLayerKernel();
// The same for a fully connected layer with 16 outputs or more, float32 activations and 8-bit
// weights; isOnPanels: with a single row, or with many inputs and rows.
const char* hybridLayerKernel(bool isInt4 = false, bool isOnPanels = false);

// Compares the outputs of hearth-cpu with those of the reference kernels; empty when they agree.
// float32 and float16 outputs may differ by `tolerance` times the greatest finite number of the
// output, 8-bit ones by one step, others not at all. NaN equals NaN. `kernel` is the kind of kernel
// that the device must report for the last operation (null: any). A model with an operation that
// has no reference kernel is a difference.
std::string differenceFromReference(const graph::Model& model, const std::vector<Bytes>& inputs,
                                    const char* kernel, float tolerance);

}  // namespace hearth::cpu
