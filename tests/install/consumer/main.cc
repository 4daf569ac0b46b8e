// SPDX-License-Identifier: Apache-2.0
// consumer MODEL INPUT: runs a model on raw float32 values and prints the index of the largest
// output.
#include <hearth/hearth.hpp>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <iterator>
#include <vector>

int main(int argc, char** argv) try {
  if (argc != 3) return 2;
  std::ifstream file(argv[2], std::ios::binary);
  const std::vector<char> input((std::istreambuf_iterator<char>(file)), {});
  hearth::Execution execution = hearth::Model(argv[1]).compile().createExecution();
  std::vector<float> scores(10);
  execution.setInput(0, input);
  execution.setOutput(0, scores);
  execution.run();
  std::cout << std::max_element(scores.begin(), scores.end()) - scores.begin() << '\n';
  return 0;
} catch (const std::exception& exception) {
  std::cerr << exception.what() << '\n';
  return 1;
}
