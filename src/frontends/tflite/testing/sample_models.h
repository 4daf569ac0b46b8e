// SPDX-License-Identifier: Apache-2.0
// Small models that together use every translator, for the bad-input tests and the fuzzer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hearth::tflite {

class ModelWriter;

struct SampleModel {
  std::string name;
  std::vector<uint8_t> bytes;  // below 2 KiB; importable
};

// Returns the same bytes at every call.
std::vector<SampleModel> sampleModels();

// Adds a WHILE from tensor 0 to tensor 1, with subgraph 1 as its condition and 2 as its body.
void addWhile(ModelWriter* model);

// Adds the subgraphs of a WHILE that counts an INT32 up to 10: its condition and its body.
void addCountingLoop(ModelWriter* model);

}  // namespace hearth::tflite
