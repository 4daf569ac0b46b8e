// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite/translators/flex_attributes.h"

#include <flatbuffers/flexbuffers.h>

#include <vector>

namespace hearth::tflite {
namespace {

std::optional<std::string_view> textOf(const flexbuffers::Reference& value) {
  if (!value.IsString() && !value.IsKey()) return std::nullopt;
  const flexbuffers::String text = value.AsString();
  return std::string_view(text.c_str(), text.length());
}

}  // namespace

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

std::vector<std::string_view> FlexAttributes::texts(const char* name) const {
  std::vector<std::string_view> found;
  if (bytes_.empty()) return found;
  const flexbuffers::Reference list =
      flexbuffers::GetRoot(bytes_.data(), bytes_.size()).AsMap()[name];
  const auto take = [&found](const auto& elements) {
    for (size_t i = 0; i < elements.size(); ++i)
      if (const auto text = textOf(elements[i])) found.push_back(*text);
  };
  if (list.IsUntypedVector())
    take(list.AsVector());
  else if (list.IsTypedVector())
    take(list.AsTypedVector());
  return found;
}

}  // namespace hearth::tflite
