// SPDX-License-Identifier: Apache-2.0
// Writes the fuzzer's first inputs: hearth_tflite_corpus tests/corpus/model_file_fuzz
#include <cstdio>
#include <fstream>
#include <string>

#include "frontends/tflite/testing/sample_models.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
    return 2;
  }
  for (const auto& sample : hearth::tflite::sampleModels()) {
    const std::string path = std::string(argv[1]) + "/" + sample.name + ".tflite";
    std::ofstream stream(path, std::ios::binary);
    stream.write(reinterpret_cast<const char*>(sample.bytes.data()),
                 static_cast<std::streamsize>(sample.bytes.size()));
    if (!stream.flush()) {
      std::fprintf(stderr, "%s cannot be written\n", path.c_str());
      return 1;
    }
  }
  return 0;
}
