// SPDX-License-Identifier: Apache-2.0
#include "tools/media/npy.h"
#include "base/format.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>

namespace hearth::tools {
namespace {

constexpr std::string_view kMagic("\x93NUMPY", 6);
constexpr size_t kMaxHeaderBytes = 64 * 1024;
constexpr size_t kMaxRank = 32;

struct Header {
  std::optional<std::string> descr;
  std::optional<bool> isFortranOrder;
  std::optional<std::vector<uint64_t>> shape;
};

// The header is a Python dictionary literal with three known keys; this reads just that.
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : text_(text) {}

  Result<Header> parse() {
    Header header;
    if (!take('{')) return malformed("does not begin with a brace");
    while (!take('}')) {
      HEARTH_ASSIGN(const std::string key, parseString());
      if (!take(':')) return malformed("lacks a colon after a key");
      if (key == "descr" && !header.descr) {
        skipSpace();
        if (position_ < text_.size() && text_[position_] == '[')
          return fail(ErrorCode::kUnsupported, "Structured .npy types cannot be read.");
        HEARTH_ASSIGN(header.descr, parseString());
      } else if (key == "fortran_order" && !header.isFortranOrder) {
        HEARTH_ASSIGN(header.isFortranOrder, parseBool());
      } else if (key == "shape" && !header.shape) {
        HEARTH_ASSIGN(header.shape, parseShape());
      } else {
        return malformed("has an unknown or repeated key");
      }
      if (!take(',')) {
        if (take('}')) break;
        return malformed("lacks a comma between its entries");
      }
    }
    skipSpace();
    if (position_ != text_.size()) return malformed("goes on after its closing brace");
    if (!header.descr || !header.isFortranOrder || !header.shape)
      return malformed("lacks one of descr, fortran_order and shape");
    return header;
  }

 private:
  static std::unexpected<Error> malformed(const char* what) {
    return fail(ErrorCode::kBadData, "The .npy header {}.", what);
  }

  void skipSpace() {
    while (position_ < text_.size() &&
           std::string_view(" \t\r\n").find(text_[position_]) != std::string_view::npos)
      ++position_;
  }

  bool take(char c) {
    skipSpace();
    if (position_ >= text_.size() || text_[position_] != c) return false;
    ++position_;
    return true;
  }

  Result<std::string> parseString() {
    skipSpace();
    const char quote = position_ < text_.size() ? text_[position_] : '\0';
    if (quote != '\'' && quote != '"') return malformed("lacks a quoted word");
    const size_t end = text_.find(quote, position_ + 1);
    if (end == std::string_view::npos) return malformed("has an open quote");
    std::string value(text_.substr(position_ + 1, end - position_ - 1));
    position_ = end + 1;
    return value;
  }

  Result<bool> parseBool() {
    skipSpace();
    for (const auto& [word, value] : {std::pair("True", true), std::pair("False", false)}) {
      if (text_.substr(position_).starts_with(word)) {
        position_ += std::strlen(word);
        return value;
      }
    }
    return malformed("has a fortran_order that is neither True nor False");
  }

  Result<std::vector<uint64_t>> parseShape() {
    std::vector<uint64_t> shape;
    if (!take('(')) return malformed("has a shape that is no tuple");
    while (!take(')')) {
      uint64_t value = 0;
      skipSpace();
      const size_t first = position_;
      for (; position_ < text_.size() && text_[position_] >= '0' && text_[position_] <= '9';
           ++position_) {
        const auto digit = static_cast<uint64_t>(text_[position_] - '0');
        if (__builtin_mul_overflow(value, uint64_t{10}, &value) ||
            __builtin_add_overflow(value, digit, &value))
          return malformed("has a dimension past 64 bits");
      }
      if (position_ == first) return malformed("has a dimension that is no whole number");
      shape.push_back(value);
      if (shape.size() > kMaxRank) return malformed("has more than 32 dimensions");
      if (!take(',')) {
        if (take(')')) break;
        return malformed("has a shape without an end");
      }
    }
    return shape;
  }

  std::string_view text_;
  size_t position_ = 0;
};

struct TypeCode {
  std::string_view code;
  hearth_type type;
};
constexpr TypeCode kTypeCodes[] = {
    {"f2", HEARTH_TYPE_FLOAT16},   {"f4", HEARTH_TYPE_FLOAT32}, {"f8", HEARTH_TYPE_FLOAT64},
    {"i1", HEARTH_TYPE_INT8},      {"u1", HEARTH_TYPE_UINT8},   {"i2", HEARTH_TYPE_INT16},
    {"u2", HEARTH_TYPE_UINT16},    {"i4", HEARTH_TYPE_INT32},   {"u4", HEARTH_TYPE_UINT32},
    {"i8", HEARTH_TYPE_INT64},     {"u8", HEARTH_TYPE_UINT64},  {"b1", HEARTH_TYPE_BOOL},
    {"c8", HEARTH_TYPE_COMPLEX64},
};

Result<hearth_type> parseType(const std::string& descr) {
  if (descr.size() == 3) {
    const std::string_view code = std::string_view(descr).substr(1);
    for (const TypeCode& known : kTypeCodes) {
      if (known.code != code) continue;
      if (descr[0] == '<' || descr[0] == '=' || descr[0] == '|') return known.type;
      if (descr[0] == '>' && typeSize(known.type) == 1) return known.type;
      if (descr[0] == '>')
        return fail(ErrorCode::kUnsupported, "Big-endian .npy files ({}) cannot be read.", descr);
    }
  }
  return fail(ErrorCode::kUnsupported, "The .npy type {} cannot be read.", descr);
}

}  // namespace

Result<Array> parseNpy(std::span<const uint8_t> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!text.starts_with(kMagic) || text.size() < 10)
    return fail(ErrorCode::kBadData, "The file does not begin as a .npy file does.");
  const unsigned version = bytes[6];
  size_t headerBytes = bytes[8] | static_cast<size_t>(bytes[9]) << 8;
  size_t headerStart = 10;
  if (version == 2 || version == 3) {
    if (text.size() < 12) return fail(ErrorCode::kBadData, "The .npy header is cut off.");
    headerBytes |= static_cast<size_t>(bytes[10]) << 16 | static_cast<size_t>(bytes[11]) << 24;
    headerStart = 12;
  } else if (version != 1) {
    return fail(ErrorCode::kUnsupported, "The .npy version {} cannot be read.", version);
  }
  if (headerBytes > kMaxHeaderBytes)
    return fail(ErrorCode::kBadData, "The .npy header has {} bytes; at most {} are read.",
                headerBytes, kMaxHeaderBytes);
  if (headerBytes > text.size() - headerStart)
    return fail(ErrorCode::kBadData, "The .npy header is cut off.");

  HEARTH_ASSIGN(const Header header, HeaderParser(text.substr(headerStart, headerBytes)).parse());
  Array array;
  HEARTH_ASSIGN(array.type, parseType(*header.descr));
  array.shape = *header.shape;
  // Vectors are the same in both orders.
  const auto isLong = [](uint64_t dimension) {
    return dimension > 1;
  };
  if (*header.isFortranOrder && std::count_if(array.shape.begin(), array.shape.end(), isLong) > 1)
    return fail(ErrorCode::kUnsupported,
                "The .npy file is in Fortran order; only C order can be read.");

  uint64_t size = typeSize(array.type);
  bool isEmpty = false;
  for (const uint64_t dimension : array.shape) {
    if (dimension == 0)
      isEmpty = true;
    else if (__builtin_mul_overflow(size, dimension, &size))
      return fail(ErrorCode::kBadData, "The .npy shape {} is too large.", shapeText(array.shape));
  }
  if (isEmpty) size = 0;
  const uint64_t rest = text.size() - headerStart - headerBytes;
  if (size != rest)
    return fail(ErrorCode::kBadData,
                "The .npy file holds {} bytes of data; its shape {} of {} "
                "needs {}.",
                rest, shapeText(array.shape), typeName(array.type), size);
  const auto data = bytes.subspan(headerStart + headerBytes);
  array.bytes.assign(data.begin(), data.end());
  if (array.type == HEARTH_TYPE_BOOL)
    for (uint8_t& value : array.bytes) value = value != 0;
  return array;
}

std::vector<uint8_t> formatNpy(const Array& array) {
  const bool isPacked = array.type == HEARTH_TYPE_INT4;
  const hearth_type type = isPacked ? HEARTH_TYPE_INT8 : array.type;
  std::string descr(typeSize(type) == 1 ? "|" : "<");
  for (const TypeCode& known : kTypeCodes)
    if (known.type == type) descr += known.code;

  std::string shape = "(";
  uint64_t count = 1;
  for (size_t i = 0; i < array.shape.size(); ++i) {
    shape += base::formatText("{}{}", i > 0 ? ", " : "", array.shape[i]);
    count *= array.shape[i];
  }
  shape += array.shape.size() == 1 ? ",)" : ")";
  std::string header =
      base::formatText("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", descr, shape);
  // NumPy aligns the data to 64 bytes with spaces and ends the header with a line feed.
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';

  std::vector<uint8_t> file(kMagic.begin(), kMagic.end());
  file.push_back(1);
  file.push_back(0);
  file.push_back(static_cast<uint8_t>(header.size()));
  file.push_back(static_cast<uint8_t>(header.size() >> 8));
  file.insert(file.end(), header.begin(), header.end());
  if (isPacked) {
    for (uint64_t i = 0; i < count && i / 2 < array.bytes.size(); ++i) {
      const int nibble = array.bytes[i / 2] >> (i % 2 * 4) & 15;
      file.push_back(static_cast<uint8_t>(nibble >= 8 ? nibble - 16 : nibble));
    }
  } else {
    file.insert(file.end(), array.bytes.begin(), array.bytes.end());
  }
  return file;
}

}  // namespace hearth::tools
