// SPDX-License-Identifier: Apache-2.0
// Writes the fuzzers' first inputs: hearth_tflite_corpus tests/corpus
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "frontends/tflite/testing/container_writer.h"
#include "frontends/tflite/testing/sample_models.h"

namespace {

bool write(const std::string& path, const std::vector<uint8_t>& bytes) {
  std::ofstream stream(path, std::ios::binary);
  stream.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  if (stream.flush()) return true;
  std::fprintf(stderr, "%s cannot be written\n", path.c_str());
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
    return 2;
  }
  const std::string folder = argv[1];
  for (const auto& sample : hearth::tflite::sampleModels())
    if (!write(folder + "/model_file_fuzz/" + sample.name + ".tflite", sample.bytes)) return 1;
  for (const auto& sample : hearth::tflite::sampleContainers())
    if (!write(folder + "/container_fuzz/" + sample.name, sample.bytes)) return 1;
  return 0;
}
