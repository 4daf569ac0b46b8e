// SPDX-License-Identifier: Apache-2.0
#include "tools/text_argument.h"

#include <iostream>

#include "tools/media/file.h"

namespace hearth::tools {
namespace {

constexpr uint64_t kMaxTextBytes = uint64_t{64} << 20;
constexpr size_t kReadBytes = 1 << 16;

Outcome<std::string> readStandardInput() {
  std::string text;
  while (std::cin) {
    const size_t old = text.size();
    text.resize(old + kReadBytes);
    std::cin.read(text.data() + old, kReadBytes);
    text.resize(old + static_cast<size_t>(std::cin.gcount()));
    if (text.size() > kMaxTextBytes)
      return std::unexpected(Failure(
          kExitFailure, base::formatText("Standard input has more than {} bytes.", kMaxTextBytes)));
  }
  return text;
}

}  // namespace

Outcome<std::string> textOfArgument(const std::optional<std::string>& argument) {
  if (!argument || *argument == "@-") return readStandardInput();
  if (!argument->starts_with('@')) return *argument;
  HEARTH_ASSIGN(const std::vector<uint8_t> bytes, readFile(argument->substr(1), kMaxTextBytes));
  return std::string(bytes.begin(), bytes.end());
}

}  // namespace hearth::tools
