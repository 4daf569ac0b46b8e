// SPDX-License-Identifier: Apache-2.0
// Small models that together use every translator, for the bad-input tests and the fuzzer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hearth::tflite {

struct SampleModel {
  std::string name;
  std::vector<uint8_t> bytes;  // below 2 KiB; importable
};

// Returns the same bytes at every call.
std::vector<SampleModel> sampleModels();

}  // namespace hearth::tflite
