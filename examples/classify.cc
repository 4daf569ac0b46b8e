// SPDX-License-Identifier: Apache-2.0
// Classifies raw image bytes: classify MODEL IMAGE.rgb, where IMAGE.rgb holds exactly the bytes of
// the model's first input. Prints the five best classes.
#include <algorithm>
#include <fstream>
#include <iostream>
#include <iterator>
#include <numeric>

#include "hearth/hearth.hpp"

int main(int argc, char** argv) try {
  if (argc != 3) {
    std::cerr << "usage: classify MODEL IMAGE.rgb\n";
    return 2;
  }
  const hearth::Compilation compilation = hearth::Model(argv[1]).compile();
  const hearth::TensorInfo result = compilation.outputs().at(0);
  if (result.type != HEARTH_TYPE_UINT8) throw std::runtime_error("The scores are not uint8.");

  std::ifstream file(argv[2], std::ios::binary);
  const std::vector<char> image((std::istreambuf_iterator<char>(file)), {});
  std::vector<uint8_t> scores(result.byteSize);

  hearth::Execution execution = compilation.createExecution();
  execution.setInput(0, image);  // both are used where they lie
  execution.setOutput(0, scores);
  execution.run();

  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&scores](size_t a, size_t b) { return scores[a] > scores[b]; });
  order.resize(std::min<size_t>(order.size(), 5));
  for (const size_t index : order)
    std::cout << index << ' ' << result.dequantize(scores[index]) << '\n';
  return 0;
} catch (const std::exception& exception) {
  std::cerr << "classify: " << exception.what() << '\n';
  return 1;
}
