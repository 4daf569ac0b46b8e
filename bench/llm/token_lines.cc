// SPDX-License-Identifier: Apache-2.0
// The tokens of texts, for compare_tokens.py: token_lines TOKENIZER < TEXTS. Each line of input is
// a JSON string, each line of output [tokens, text of these tokens, seconds]. Special tokens are
// parsed.
#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "llm/model_file.h"

namespace hearth::llm {
namespace {

int run(const char* path) {
  const auto tokenizer = readTokenizerFile(path);
  if (!tokenizer) {
    std::cerr << tokenizer.error().toString() << '\n';
    return 1;
  }
  for (std::string line; std::getline(std::cin, line);) {
    const auto text = nlohmann::json::parse(line).get<std::string>();
    const auto begin = std::chrono::steady_clock::now();
    const auto tokens = tokenizer->encode(text, SpecialTokens::kAreParsed);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    if (!tokens) {
      std::cerr << tokens.error().toString() << '\n';
      return 1;
    }
    std::cout << nlohmann::json::array({*tokens, tokenizer->decode(*tokens, true), seconds.count()})
              << '\n';
  }
  return 0;
}

}  // namespace
}  // namespace hearth::llm

int main(int argc, char** argv) {
  if (argc == 2) return hearth::llm::run(argv[1]);
  std::cerr << "usage: token_lines TOKENIZER < TEXTS\n";
  return 2;
}
