// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite/translators/flex_attributes.h"

#include <flatbuffers/flexbuffers.h>

#include <vector>

namespace hearth::tflite {

Result<FlexAttributes> FlexAttributes::parse(std::span<const uint8_t> bytes) {
  FlexAttributes attributes;
  if (bytes.empty()) return attributes;
  // Without a tracker the verifier would visit shared parts again and again.
  std::vector<uint8_t> tracker;
  if (!flexbuffers::VerifyBuffer(bytes.data(), bytes.size(), &tracker) ||
      !flexbuffers::GetRoot(bytes.data(), bytes.size()).IsMap())
    return fail(ErrorCode::kBadData, "Its {} bytes of attributes are no FlexBuffer with a map.",
                bytes.size());
  attributes.bytes_ = bytes;
  return attributes;
}

std::optional<double> FlexAttributes::number(const char* name) const {
  if (bytes_.empty()) return std::nullopt;
  const flexbuffers::Reference value =
      flexbuffers::GetRoot(bytes_.data(), bytes_.size()).AsMap()[name];
  if (!value.IsNumeric()) return std::nullopt;
  return value.AsDouble();
}

std::optional<bool> FlexAttributes::truth(const char* name) const {
  if (bytes_.empty()) return std::nullopt;
  const flexbuffers::Reference value =
      flexbuffers::GetRoot(bytes_.data(), bytes_.size()).AsMap()[name];
  if (value.IsFloat()) return value.AsDouble() != 0;
  if (!value.IsBool() && !value.IsIntOrUint()) return std::nullopt;
  return value.AsBool();
}

namespace {

template <typename List>
std::optional<std::vector<double>> numbersOf(const List& list) {
  std::vector<double> numbers;
  for (size_t i = 0; i < list.size(); ++i) {
    if (!list[i].IsNumeric()) return std::nullopt;
    numbers.push_back(list[i].AsDouble());
  }
  return numbers;
}

}  // namespace

std::optional<std::vector<double>> FlexAttributes::numbers(const char* name) const {
  if (bytes_.empty()) return std::nullopt;
  const flexbuffers::Reference value =
      flexbuffers::GetRoot(bytes_.data(), bytes_.size()).AsMap()[name];
  if (value.IsTypedVector()) return numbersOf(value.AsTypedVector());
  if (value.IsFixedTypedVector()) return numbersOf(value.AsFixedTypedVector());
  if (value.IsUntypedVector()) return numbersOf(value.AsVector());
  return std::nullopt;
}

std::optional<std::string> FlexAttributes::text(const char* name) const {
  if (bytes_.empty()) return std::nullopt;
  const flexbuffers::Reference value =
      flexbuffers::GetRoot(bytes_.data(), bytes_.size()).AsMap()[name];
  if (!value.IsString()) return std::nullopt;
  return value.AsString().str();
}

}  // namespace hearth::tflite
