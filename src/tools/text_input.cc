// SPDX-License-Identifier: Apache-2.0
#include "tools/text_input.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "tools/media/array.h"
#include "tools/text_argument.h"

namespace hearth::tools {
namespace {

void dropLineEnd(std::string* text) {
  if (text->ends_with('\n')) text->pop_back();
  if (text->ends_with('\r')) text->pop_back();
}

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    std::string line(text.substr(0, end));
    dropLineEnd(&line);
    lines.push_back(std::move(line));
    text.remove_prefix(end);
  }
  return lines;
}

}  // namespace

Outcome<TextInput> textInput(const std::string& argument, const TensorInfo& tensor) {
  HEARTH_ASSIGN(std::string text, textOfArgument(argument));
  uint64_t known = 1;
  for (const uint32_t dimension : tensor.dimensions) known *= std::max<uint64_t>(dimension, 1);
  const auto open = std::ranges::find(tensor.dimensions, 0u);
  TextInput input;
  input.dimensions = tensor.dimensions;
  if (known == 1 && open == tensor.dimensions.end()) {
    dropLineEnd(&text);
    input.texts.push_back(std::move(text));
    return input;
  }
  input.texts = split(text);
  if (open == tensor.dimensions.end() ? input.texts.size() != known
                                      : input.texts.empty() || input.texts.size() % known != 0)
    return usage("The input \"{}\" takes {} strings, one a line{}; {} given.", tensor.name, known,
                 open == tensor.dimensions.end() ? "" : ", or a multiple of that",
                 input.texts.size() == 1 ? "one is" : std::to_string(input.texts.size()) + " are");
  std::ranges::replace(input.dimensions, 0u, 1u);
  if (open != tensor.dimensions.end())
    input.dimensions[open - tensor.dimensions.begin()] =
        static_cast<uint32_t>(input.texts.size() / known);
  return input;
}

std::string linesOf(const std::vector<std::string>& texts) {
  std::string lines;
  for (const std::string& text : texts) lines += text + "\n";
  return lines;
}

}  // namespace hearth::tools
