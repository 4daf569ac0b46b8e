// SPDX-License-Identifier: Apache-2.0
// The operator of Hearth's table that computes what delegates of programs have taken.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace hearth::tflite_c {

class ProgramGraph;

// The operator's name, which no file can use.
std::string kernelOperatorName();
// The options of a custom operation that is computed by a kernel.
std::vector<uint8_t> kernelOptions(uint64_t id);

// Makes kernel `node` of the graph known, until it is forgotten; returns its id. Throws
// std::bad_alloc. Thread-safe.
uint64_t registerKernel(std::weak_ptr<ProgramGraph> graph, size_t node);
// Thread-safe.
void forgetKernel(uint64_t id);
// Puts the operator into Hearth's table, if it is not there. Thread-safe.
Status provideKernelOperator();

}  // namespace hearth::tflite_c
