// SPDX-License-Identifier: Apache-2.0
#include "ops/sentencepiece_tokenizer.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/immortal.h"
#include "memory/string_heap.h"
#include "ops/sentencepiece_model.h"

namespace hearth::ops {
namespace {

using memory::StringHandle;

enum Input : size_t {
  kModel = 0,
  kTexts = 1,
  kAddsBegin = 4,
  kAddsEnd = 5,
  kReverses = 6,
  kInputCount = 7,
};

enum Output : size_t { kCodes = 0, kSplits = 1, kOutputCount = 2 };

Status requireArguments(const CustomCall& call) {
  if (call.inputs.size() != kInputCount || call.outputs.size() != kOutputCount)
    return fail(ErrorCode::kBadData, "It has {} inputs and {} outputs, {} and {} are needed.",
                call.inputs.size(), call.outputs.size(), size_t{kInputCount}, size_t{kOutputCount});
  const auto require = [&](size_t index, OperandType type) -> Status {
    if (call.inputs[index].isPresent && call.inputs[index].operand->type == type) return {};
    return fail(ErrorCode::kBadData, "Input {} is {}, it must be a {}.", index,
                graph::describe(*call.inputs[index].operand), graph::nameOf(type));
  };
  HEARTH_TRY(require(kModel, OperandType::kTensorQuant8Asymm));
  HEARTH_TRY(require(kTexts, OperandType::kTensorString));
  for (const size_t index : {kAddsBegin, kAddsEnd, kReverses})
    HEARTH_TRY(require(index, OperandType::kTensorBool8));
  return {};
}

Result<bool> flagOf(const CustomCall& call, size_t index) {
  if (call.inputs[index].elementCount() == 1) return *call.inputs[index].as<uint8_t>() != 0;
  return fail(ErrorCode::kBadData, "Input {} has {} elements, it must have one.", index,
              call.inputs[index].elementCount());
}

// The codes of all texts, and where each begins.
struct Encoded {
  std::vector<int32_t> codes;
  std::vector<int32_t> splits = {0};
};

Result<Encoded> encode(const CustomCall& call) {
  const Tensor& modelInput = call.inputs[kModel];
  std::span bytes(modelInput.as<const uint8_t>(), modelInput.elementCount());
  // A file may have them anywhere.
  std::vector<uint8_t> aligned;
  if (reinterpret_cast<uintptr_t>(bytes.data()) % SentencepieceModel::kAlignment != 0) {
    aligned.assign(bytes.begin(), bytes.end());
    bytes = aligned;
  }
  HEARTH_ASSIGN(const SentencepieceModel model, SentencepieceModel::read(bytes));
  SentencepieceModel::Marks marks;
  HEARTH_ASSIGN(marks.hasBegin, flagOf(call, kAddsBegin));
  HEARTH_ASSIGN(marks.hasEnd, flagOf(call, kAddsEnd));
  HEARTH_ASSIGN(marks.isReversed, flagOf(call, kReverses));
  const Tensor& texts = call.inputs[kTexts];
  Encoded encoded;
  for (size_t i = 0; i < texts.elementCount(); ++i) {
    HEARTH_ASSIGN(const std::string text, memory::readString(texts.as<StringHandle>()[i]));
    HEARTH_ASSIGN(const std::vector<int32_t> codes, model.encode(text, marks));
    encoded.codes.insert(encoded.codes.end(), codes.begin(), codes.end());
    if (encoded.codes.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max()))
      return fail(ErrorCode::kBadData, "Its texts have {} codes.", encoded.codes.size());
    encoded.splits.push_back(static_cast<int32_t>(encoded.codes.size()));
  }
  return encoded;
}

graph::Operand integers(size_t count) {
  graph::Operand operand;
  operand.type = OperandType::kTensorInt32;
  operand.dimensions = {static_cast<uint32_t>(count)};
  return operand;
}

class Node final : public CustomNode {
 public:
  Result<CustomOutputs> describeOutputs(const CustomCall& call) const override {
    HEARTH_TRY(requireArguments(call));
    const bool isKnown =
        std::ranges::all_of(std::array{kModel, kTexts, kAddsBegin, kAddsEnd, kReverses},
                            [&](Input input) { return call.inputs[input].data != nullptr; });
    if (!isKnown) return CustomOutputs{.needsValues = true, .outputs = {}};
    HEARTH_ASSIGN(const Encoded encoded, encode(call));
    return CustomOutputs{
        .needsValues = false,
        .outputs = {integers(encoded.codes.size()), integers(encoded.splits.size())}};
  }

  Status compute(const CustomCall& call) const override {
    HEARTH_ASSIGN(const Encoded encoded, encode(call));
    const auto write = [&](const std::vector<int32_t>& values, const Tensor& output) -> Status {
      if (!output.isPresent) return {};
      if (values.size() != output.elementCount())
        return fail(ErrorCode::kOpFailed, "Its inputs changed during the run.");
      std::ranges::copy(values, output.as<int32_t>());
      return {};
    };
    HEARTH_TRY(write(encoded.codes, call.outputs[kCodes]));
    return write(encoded.splits, call.outputs[kSplits]);
  }
};

class Tokenizer final : public CustomOperator {
 public:
  explicit Tokenizer(std::string_view name) : name_(name) {}
  std::string_view name() const override { return name_; }
  int32_t version() const override { return 1; }
  bool takesStrings() const override { return true; }
  Result<std::shared_ptr<const CustomNode>> makeNode(const CustomCall&) const override {
    return std::make_shared<Node>();
  }

 private:
  const std::string_view name_;
};

using Tokenizers = std::array<Tokenizer, 2>;

}  // namespace

const CustomOperator* sentencepieceTokenizer(std::string_view name) {
  static constinit base::Immortal<Tokenizers> tokenizers;
  const Tokenizers& list = tokenizers.get([] {
    return Tokenizers{Tokenizer("TFSentencepieceTokenizeOp"),
                      Tokenizer("TFText>FastSentencepieceTokenize")};
  });
  const auto found = std::ranges::find(list, name, &Tokenizer::name);
  return found == list.end() ? nullptr : &*found;
}

}  // namespace hearth::ops
