// SPDX-License-Identifier: Apache-2.0
#include "llm/protobuf_reader.h"

#include <bit>

#include "llm/utf8.h"

namespace hearth::llm {
namespace {

constexpr unsigned kMaxVarintBits = 64;
constexpr uint64_t kMaxFieldNumber = (uint64_t{1} << 29) - 1;

}  // namespace

float ProtobufField::asFloat() const {
  return std::bit_cast<float>(static_cast<uint32_t>(value));
}

Result<uint64_t> ProtobufReader::readVarint() {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < kMaxVarintBits; shift += 7) {
    if (rest_.empty()) return fail(ErrorCode::kBadData, "The message ends within a number.");
    const uint8_t byte = rest_[0];
    rest_ = rest_.subspan(1);
    value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
  return fail(ErrorCode::kBadData, "A number of the message has more than 64 bits.");
}

Result<uint64_t> ProtobufReader::readFixed(size_t size) {
  if (rest_.size() < size) return fail(ErrorCode::kBadData, "The message ends within a number.");
  uint64_t value = 0;
  for (size_t i = size; i-- > 0;) value = value << 8 | rest_[i];
  rest_ = rest_.subspan(size);
  return value;
}

Result<std::optional<ProtobufField>> ProtobufReader::next() {
  if (rest_.empty()) return std::nullopt;
  HEARTH_ASSIGN(const uint64_t key, readVarint());
  ProtobufField field;
  const uint64_t number = key >> 3;
  if (number == 0 || number > kMaxFieldNumber)
    return fail(ErrorCode::kBadData, "The message has a field with the number {}.", number);
  field.number = static_cast<uint32_t>(number);
  switch (key & 7) {
    case 0: {
      HEARTH_ASSIGN(field.value, readVarint());
      field.type = ProtobufField::Type::kVarint;
      break;
    }
    case 1: {
      HEARTH_ASSIGN(field.value, readFixed(8));
      field.type = ProtobufField::Type::kFixed64;
      break;
    }
    case 2: {
      HEARTH_ASSIGN(const uint64_t size, readVarint());
      if (size > rest_.size())
        return fail(ErrorCode::kBadData, "Field {} of the message has {} bytes, {} are left.",
                    field.number, size, rest_.size());
      field.type = ProtobufField::Type::kBytes;
      field.bytes = rest_.first(size);
      rest_ = rest_.subspan(size);
      break;
    }
    case 5: {
      HEARTH_ASSIGN(field.value, readFixed(4));
      field.type = ProtobufField::Type::kFixed32;
      break;
    }
    default:
      return fail(ErrorCode::kBadData, "Field {} of the message has the wire type {}.",
                  field.number, key & 7);
  }
  return field;
}

Status readText(const ProtobufField& field, std::string* text) {
  if (field.type != ProtobufField::Type::kBytes)
    return fail(ErrorCode::kBadData, "Field {} is no text.", field.number);
  if (findInvalidUtf8(field.text()) != std::string_view::npos)
    return fail(ErrorCode::kBadData, "The text of field {} is no UTF-8.", field.number);
  *text = field.text();
  return {};
}

}  // namespace hearth::llm
