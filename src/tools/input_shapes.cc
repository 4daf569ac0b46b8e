// SPDX-License-Identifier: Apache-2.0
#include "tools/input_shapes.h"

#include <charconv>
#include <string_view>
#include <utility>

namespace hearth::tools {

Outcome<std::map<std::string, std::vector<uint32_t>>> parseInputShapes(
    const std::vector<std::string>& texts) {
  std::map<std::string, std::vector<uint32_t>> shapes;
  for (const std::string& text : texts) {
    // Names may hold "=" themselves.
    const size_t end = text.rfind('=');
    std::string name = end == std::string::npos ? "" : text.substr(0, end);
    std::string_view rest = std::string_view(text).substr(end == std::string::npos ? 0 : end + 1);
    std::vector<uint32_t> dimensions;
    for (bool isMore = true; isMore;) {
      const std::string_view word = rest.substr(0, rest.find(','));
      uint32_t size = 0;
      const auto [last, problem] = std::from_chars(word.data(), word.data() + word.size(), size);
      if (problem != std::errc() || last != word.data() + word.size() || size == 0)
        return usage("The shape {} is not NAME=N,N,... with numbers from 1 to 4294967295.", text);
      dimensions.push_back(size);
      isMore = word.size() < rest.size();
      if (isMore) rest.remove_prefix(word.size() + 1);
    }
    if (!shapes.emplace(name, std::move(dimensions)).second)
      return usage("The input {} has two shapes.", name.empty() ? "without a name" : name);
  }
  return shapes;
}

}  // namespace hearth::tools
