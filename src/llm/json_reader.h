// SPDX-License-Identifier: Apache-2.0
// Reads JSON (RFC 8259) value by value, without a tree in memory: a tokenizer has hundreds of
// thousands of values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace hearth::llm {

// The text must outlive the reader. Objects and arrays nest at most kMaxDepth deep. All errors are
// kBadData and name the place.
class JsonReader {
 public:
  enum class Kind { kObject, kArray, kString, kNumber, kBool, kNull };
  static constexpr size_t kMaxDepth = 64;

  explicit JsonReader(std::string_view text) : text_(text) {}

  // The kind of the value that comes next.
  Result<Kind> peek();

  // An object: beginObject(), then for each member nextKey() and its value; nextKey() returns false
  // at the object's end. An array: beginArray(), then for each value nextElement() and the value.
  Status beginObject();
  Result<bool> nextKey(std::string* key);
  Status beginArray();
  Result<bool> nextElement();

  Status readString(std::string* text);  // valid UTF-8
  Result<double> readNumber();
  Result<int64_t> readInteger();  // also an error for a number with a fraction
  Result<bool> readBool();
  Status skip();
  // Fails where anything but white space follows.
  Status expectEnd();

  // How many bytes are read: up to the last value, or the name of the next one and its colon.
  size_t position() const { return at_; }

 private:
  std::unexpected<Error> wrong(std::string_view problem) const;
  void skipSpace();
  bool take(char c);
  Status takeWord(std::string_view word);
  Status begin(char bracket);
  Result<bool> next(char bracket);
  Status readEscape(std::string* text);
  Result<uint32_t> readHex();
  std::string_view numberText();

  std::string_view text_;
  size_t at_ = 0;
  // Whether each open object or array has had a value.
  std::vector<bool> hasValue_;
};

// Calls `take(key)`, which reads the member's value and returns a Status, for each member of the
// object that comes next.
template <typename Take>
Status forEachMember(JsonReader* reader, Take&& take) {
  std::string key;
  HEARTH_TRY(reader->beginObject());
  for (;;) {
    HEARTH_ASSIGN(const bool isThere, reader->nextKey(&key));
    if (!isThere) return {};
    HEARTH_TRY(take(key));
  }
}

// The same for each element of an array.
template <typename Take>
Status forEachElement(JsonReader* reader, Take&& take) {
  HEARTH_TRY(reader->beginArray());
  for (;;) {
    HEARTH_ASSIGN(const bool isThere, reader->nextElement());
    if (!isThere) return {};
    HEARTH_TRY(take());
  }
}

}  // namespace hearth::llm
