// SPDX-License-Identifier: Apache-2.0
// The wire format of Protocol Buffers: the fields of one message, one after the other.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace hearth::llm {

struct ProtobufField {
  enum class Type { kVarint, kFixed64, kBytes, kFixed32 };

  uint32_t number = 0;
  Type type = Type::kVarint;
  uint64_t value = 0;              // of kVarint, kFixed64 and kFixed32
  std::span<const uint8_t> bytes;  // of kBytes, inside the message

  std::string_view text() const {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  float asFloat() const;  // of kFixed32
};

// Reads a message that must outlive it. Allocates nothing.
class ProtobufReader {
 public:
  explicit ProtobufReader(std::span<const uint8_t> message) : rest_(message) {}

  // The next field; nothing at the message's end. Error: kBadData.
  Result<std::optional<ProtobufField>> next();

  // For the bytes of a packed list, which has numbers in place of fields. Error: kBadData.
  bool isAtEnd() const { return rest_.empty(); }
  Result<uint64_t> readVarint();

 private:
  Result<uint64_t> readFixed(size_t size);

  std::span<const uint8_t> rest_;
};

// A field that is a text. Error: kBadData for one of another type, or that is no UTF-8.
Status readText(const ProtobufField& field, std::string* text);

// Calls `take(field)`, which returns a Status, for each field of a message. Error: kBadData.
template <typename Take>
Status forEachField(std::span<const uint8_t> message, Take&& take) {
  ProtobufReader reader(message);
  for (;;) {
    HEARTH_ASSIGN(const std::optional<ProtobufField> field, reader.next());
    if (!field) return {};
    HEARTH_TRY(take(*field));
  }
}

}  // namespace hearth::llm
