// SPDX-License-Identifier: Apache-2.0
// WHITESPACE_TOKENIZER of the extension, the custom operator tftext:WhitespaceTokenizer: the words
// of strings, between characters that Unicode calls White_Space. Input: TENSOR_STRING of rank N.
// With one output, [..., words of the longest string] padded with empty strings. With N + 1
// outputs, all words in a row, then the row splits (TENSOR_INT64) of each dimension of the input:
// row i of a dimension begins at element i of its splits and ends before element i + 1. A string is
// read up to the first byte that is no UTF-8, or up to U+FFFD.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "memory/string_heap.h"
#include "ops/operation.h"
#include "ops/output_shape.h"
#include "ops/registry.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

using memory::StringHandle;

struct Character {
  uint32_t code;
  size_t size;  // in bytes
};

// The first character of a text that is not empty; nothing where it is no UTF-8.
std::optional<Character> firstCharacter(std::string_view text) {
  const auto first = static_cast<uint8_t>(text[0]);
  if (first < 0x80) return Character{first, 1};
  const size_t size = first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
  if (size == 0 || text.size() < size) return std::nullopt;
  uint32_t code = first & (0x7fu >> size);
  for (size_t i = 1; i < size; ++i) {
    const auto next = static_cast<uint8_t>(text[i]);
    if ((next & 0xc0) != 0x80) return std::nullopt;
    code = code << 6 | (next & 0x3fu);
  }
  constexpr std::array<uint32_t, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kLeast[size] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
    return std::nullopt;
  return Character{code, size};
}

bool isWhitespace(uint32_t code) {
  return (code >= 0x9 && code <= 0xd) || code == 0x20 || code == 0x85 || code == 0xa0 ||
         code == 0x1680 || (code >= 0x2000 && code <= 0x200a) || code == 0x2028 || code == 0x2029 ||
         code == 0x202f || code == 0x205f || code == 0x3000;
}

// Calls visit(word) for each word.
template <typename Visit>
Status forEachWord(std::string_view text, const Visit& visit) {
  constexpr uint32_t kReplacement = 0xfffd;
  size_t begin = 0;  // of the current word
  size_t at = 0;
  while (at < text.size()) {
    const std::optional<Character> character = firstCharacter(text.substr(at));
    if (!character || character->code == kReplacement) break;
    if (isWhitespace(character->code)) {
      if (begin < at) HEARTH_TRY(visit(text.substr(begin, at - begin)));
      begin = at + character->size;
    }
    at += character->size;
  }
  if (begin < at) HEARTH_TRY(visit(text.substr(begin, at - begin)));
  return {};
}

// How many words each string has.
Result<std::vector<int64_t>> countWords(const Tensor& texts) {
  std::vector<int64_t> counts(texts.elementCount());
  for (size_t i = 0; i < counts.size(); ++i) {
    HEARTH_ASSIGN(const std::string text, memory::readString(texts.as<StringHandle>()[i]));
    HEARTH_TRY(forEachWord(text, [&](std::string_view) -> Status {
      ++counts[i];
      return {};
    }));
  }
  return counts;
}

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(1, 1, 1, 1 + kMaximumRank));
  HEARTH_TRY(signature.inputTensor(0, OperandType::kTensorString, 0, kMaximumRank));
  HEARTH_TRY(signature.outputType(0, OperandType::kTensorString));
  for (size_t i = 1; i < signature.outputCount(); ++i)
    HEARTH_TRY(signature.outputType(i, OperandType::kTensorInt64));
  return {};
}

Status prepare(OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 1, context.outputs.size()));
  const Tensor& texts = context.inputs[0];
  const size_t splits = context.outputs.size() - 1;
  if (splits != 0 && splits != texts.rank())
    return fail(ErrorCode::kBadData, "{} has {} row splits for an input of rank {}.",
                context.describe(), splits, texts.rank());
  uint64_t rows = 1;
  for (size_t i = 0; i < splits; ++i) {
    rows *= texts.dimensions[i];
    HEARTH_ASSIGN(const uint32_t size, toDimension(context, static_cast<int64_t>(rows) + 1));
    HEARTH_TRY(context.setOutputDimensions(1 + i, {size}));
  }
  if (texts.data == nullptr) return needsRuntimeValue(context, 0);
  HEARTH_ASSIGN(const std::vector<int64_t> counts, countWords(texts));
  int64_t words = 0;
  for (const int64_t count : counts) words = splits != 0 ? words + count : std::max(words, count);
  HEARTH_ASSIGN(const uint32_t size, toDimension(context, words));
  Dimensions dimensions;
  if (splits == 0) dimensions = texts.dimensions;
  dimensions.push_back(size);
  return context.setOutputDimensions(0, std::move(dimensions));
}

Status execute(OperationContext& context) {
  const Tensor& texts = context.inputs[0];
  const size_t splits = context.outputs.size() - 1;
  auto* target = context.outputs[0].as<StringHandle>();
  int64_t* const innermost = splits != 0 ? context.outputs.back().as<int64_t>() : nullptr;
  int64_t words = 0;
  for (uint64_t i = 0; i < texts.elementCount(); ++i) {
    if (innermost != nullptr) innermost[i] = words;
    StringHandle* const rowEnd =
        splits != 0 ? nullptr : target + context.outputs[0].dimensions.back();
    HEARTH_ASSIGN(const std::string text, memory::readString(texts.as<StringHandle>()[i]));
    HEARTH_TRY(forEachWord(text, [&](std::string_view word) -> Status {
      HEARTH_ASSIGN(*target, memory::putString(word));
      ++target;
      ++words;
      return {};
    }));
    if (rowEnd != nullptr) target = std::fill_n(target, rowEnd - target, StringHandle{0});
  }
  if (innermost != nullptr) innermost[texts.elementCount()] = words;
  // The dimensions of the input itself have rows of one length.
  for (size_t i = 1; i < splits; ++i) {
    int64_t* const splitsOfRows = context.outputs[i].as<int64_t>();
    for (uint64_t row = 0; row < context.outputs[i].dimensions[0]; ++row)
      splitsOfRows[row] = static_cast<int64_t>(row * texts.dimensions[i]);
  }
  return {};
}

}  // namespace

const OperationDefinition kWhitespaceTokenizerOperation = {OperationType::kWhitespaceTokenizer,
                                                           validate, prepare, execute};

}  // namespace hearth::ops
