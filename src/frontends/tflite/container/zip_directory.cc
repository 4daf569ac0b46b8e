// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite/container/zip_directory.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "base/format.h"
#include "frontends/tflite/container/extents.h"
#include "frontends/tflite/reader/text.h"

namespace hearth::tflite {
namespace {

using Bytes = std::span<const uint8_t>;

constexpr uint32_t kLocalHeader = 0x04034b50;
constexpr uint32_t kDirectoryRecord = 0x02014b50;
constexpr uint32_t kEnd = 0x06054b50;
constexpr uint32_t kEnd64 = 0x06064b50;
constexpr uint32_t kEnd64Locator = 0x07064b50;

// Without names, comments and extra fields.
constexpr size_t kLocalHeaderSize = 30;
constexpr size_t kDirectoryRecordSize = 46;
constexpr size_t kEndSize = 22;
constexpr size_t kEnd64Size = 56;
constexpr size_t kEnd64LocatorSize = 20;
constexpr size_t kMaxComment = 0xFFFF;
// MediaPipe's writer aligns a member's bytes by zeros in front of its header, also of the first.
constexpr size_t kMaxPadding = 4096;

constexpr uint16_t kEncrypted = 1;
constexpr uint16_t kStored = 0;
constexpr uint16_t kDeflated = 8;
constexpr uint16_t kZip64Field = 1;
// A field of a record that holds this is in the ZIP64 field instead.
constexpr uint32_t kElsewhere = 0xFFFFFFFF;

// A little-endian number at any address. The caller has checked the bounds.
template <typename T>
T numberAt(Bytes bytes, uint64_t offset) {
  T number = 0;
  for (size_t i = 0; i < sizeof(T); ++i)
    number = static_cast<T>(number | static_cast<T>(bytes[offset + i]) << (8 * i));
  return number;
}

bool contains(Bytes bytes, uint64_t offset, uint64_t size) {
  return offset <= bytes.size() && size <= bytes.size() - offset;
}

std::string_view textAt(Bytes bytes, uint64_t offset, size_t size) {
  return {reinterpret_cast<const char*>(bytes.data()) + offset, size};
}

// Where the records are.
struct Directory {
  uint64_t offset = 0;
  uint64_t size = 0;
  uint64_t end = 0;  // where the first record behind the directory begins
};

// The end record is the last thing in the archive, but for a comment of unknown length in it.
std::optional<uint64_t> findEnd(Bytes bytes) {
  if (bytes.size() < kEndSize) return std::nullopt;
  const uint64_t last = bytes.size() - kEndSize;
  for (uint64_t comment = 0; comment <= std::min<uint64_t>(last, kMaxComment); ++comment) {
    const uint64_t at = last - comment;
    if (numberAt<uint32_t>(bytes, at) == kEnd && numberAt<uint16_t>(bytes, at + 20) == comment)
      return at;
  }
  return std::nullopt;
}

Result<Directory> findDirectory(Bytes bytes) {
  const std::optional<uint64_t> end = findEnd(bytes);
  if (!end)
    return fail(ErrorCode::kBadData,
                "The file begins like a ZIP archive, but its end is missing; copy it again.");
  Directory directory{.offset = numberAt<uint32_t>(bytes, *end + 16),
                      .size = numberAt<uint32_t>(bytes, *end + 12),
                      .end = *end};
  const uint64_t locator = *end - std::min<uint64_t>(*end, kEnd64LocatorSize);
  if (*end >= kEnd64LocatorSize && numberAt<uint32_t>(bytes, locator) == kEnd64Locator) {
    directory.end = numberAt<uint64_t>(bytes, locator + 8);
    if (directory.end > locator || locator - directory.end < kEnd64Size ||
        numberAt<uint32_t>(bytes, directory.end) != kEnd64)
      return fail(ErrorCode::kBadData,
                  "The ZIP archive is damaged: it has no ZIP64 end record at byte {}.",
                  directory.end);
    directory.size = numberAt<uint64_t>(bytes, directory.end + 40);
    directory.offset = numberAt<uint64_t>(bytes, directory.end + 48);
  }
  if (directory.offset > directory.end || directory.size > directory.end - directory.offset)
    return fail(ErrorCode::kBadData,
                "The ZIP archive is damaged: its directory of {} bytes at byte {} ends behind "
                "byte {}, where the end record begins.",
                directory.size, directory.offset, directory.end);
  return directory;
}

// What the directory says of one member.
struct Member {
  std::string name;
  std::string_view rawName;
  uint16_t flags = 0;
  uint16_t method = 0;
  uint64_t size = 0;  // in the archive
  uint64_t plainSize = 0;
  uint32_t crc = 0;     // of the plain bytes
  uint64_t header = 0;  // offset of the local header
};

// Replaces the numbers that do not fit into 32 bits. `extra` holds fields of a tag, a length and
// that many bytes.
Status applyZip64(Bytes extra, Member* member) {
  const bool isPlainSizeElsewhere = member->plainSize == kElsewhere;
  const bool isSizeElsewhere = member->size == kElsewhere;
  const bool isHeaderElsewhere = member->header == kElsewhere;
  if (!isPlainSizeElsewhere && !isSizeElsewhere && !isHeaderElsewhere) return {};
  constexpr size_t kFieldHead = 4;
  for (uint64_t at = 0; contains(extra, at, kFieldHead);) {
    const size_t length = numberAt<uint16_t>(extra, at + 2);
    if (!contains(extra, at + kFieldHead, length)) break;
    if (numberAt<uint16_t>(extra, at) != kZip64Field) {
      at += kFieldHead + length;
      continue;
    }
    Bytes field = extra.subspan(at + kFieldHead, length);
    const auto take = [&](bool isElsewhere, uint64_t* number) {
      if (!isElsewhere) return true;
      if (field.size() < sizeof(uint64_t)) return false;
      *number = numberAt<uint64_t>(field, 0);
      field = field.subspan(sizeof(uint64_t));
      return true;
    };
    if (take(isPlainSizeElsewhere, &member->plainSize) && take(isSizeElsewhere, &member->size) &&
        take(isHeaderElsewhere, &member->header))
      return {};
    break;
  }
  return fail(ErrorCode::kBadData,
              "The ZIP archive is damaged: the ZIP64 field of {} is missing or too short.",
              member->name);
}

// Reads the record at *at of the directory and moves *at behind it.
Result<Member> readRecord(Bytes records, uint64_t* at) {
  const auto damaged = [&] {
    return fail(ErrorCode::kBadData,
                "The ZIP archive is damaged: there is no whole record at byte {} of its directory.",
                *at);
  };
  if (!contains(records, *at, kDirectoryRecordSize) ||
      numberAt<uint32_t>(records, *at) != kDirectoryRecord)
    return damaged();
  const size_t nameSize = numberAt<uint16_t>(records, *at + 28);
  const size_t extraSize = numberAt<uint16_t>(records, *at + 30);
  const size_t commentSize = numberAt<uint16_t>(records, *at + 32);
  const size_t restSize = nameSize + extraSize + commentSize;
  if (!contains(records, *at + kDirectoryRecordSize, restSize)) return damaged();
  Member member;
  member.rawName = textAt(records, *at + kDirectoryRecordSize, nameSize);
  member.name = cleanText(member.rawName);
  member.flags = numberAt<uint16_t>(records, *at + 8);
  member.method = numberAt<uint16_t>(records, *at + 10);
  member.crc = numberAt<uint32_t>(records, *at + 16);
  member.size = numberAt<uint32_t>(records, *at + 20);
  member.plainSize = numberAt<uint32_t>(records, *at + 24);
  member.header = numberAt<uint32_t>(records, *at + 42);
  HEARTH_TRY(
      applyZip64(records.subspan(*at + kDirectoryRecordSize + nameSize, extraSize), &member));
  *at += kDirectoryRecordSize + restSize;
  return member;
}

std::string problemOf(const Member& member) {
  if ((member.flags & kEncrypted) != 0)
    return "It is encrypted; unpack the archive and give the unpacked file.";
  if (member.method != kStored)
    return "It is compressed, so it cannot be used in place; unpack the archive, for example with "
           "unzip, and give the unpacked file.";
  return "";
}

std::string typeOf(const Member& member) {
  if (member.method == kStored) return "stored";
  if (member.method == kDeflated) return "deflated";
  return base::formatText("compressed by method {}", member.method);
}

// Finds the member's bytes behind its local header, which must agree with the directory.
Result<Part> memberPart(Bytes archive, const Member& member) {
  if (!contains(archive, member.header, kLocalHeaderSize) ||
      numberAt<uint32_t>(archive, member.header) != kLocalHeader)
    return fail(ErrorCode::kBadData,
                "The ZIP archive is damaged: its directory says that {} begins at byte {}, where "
                "no member begins.",
                member.name, member.header);
  const size_t nameSize = numberAt<uint16_t>(archive, member.header + 26);
  const size_t extraSize = numberAt<uint16_t>(archive, member.header + 28);
  Part part;
  part.offset = member.header + kLocalHeaderSize + nameSize + extraSize;
  part.size = member.size;
  if (!contains(archive, part.offset, part.size))
    return fail(ErrorCode::kBadData,
                "The ZIP archive is damaged: {} has {} bytes at byte {}, the archive only {}.",
                member.name, part.size, part.offset, archive.size());
  if (textAt(archive, member.header + kLocalHeaderSize, nameSize) != member.rawName ||
      numberAt<uint16_t>(archive, member.header + 8) != member.method ||
      (member.method == kStored && (member.flags & kEncrypted) == 0 &&
       member.size != member.plainSize))
    return fail(ErrorCode::kBadData,
                "The ZIP archive is damaged: {} differs from what the directory says of it.",
                member.name);
  part.name = member.name;
  part.type = typeOf(member);
  part.problem = problemOf(member);
  if (member.method == kDeflated && (member.flags & kEncrypted) == 0)
    part.deflated = {.size = member.plainSize, .crc = member.crc};
  if (!part.problem.empty() && part.name.ends_with(".tflite")) part.kind = PartKind::kModel;
  return part;
}

}  // namespace

bool isZip(Bytes bytes) {
  const Bytes start = bytes.first(std::min(bytes.size(), kMaxPadding + sizeof(uint32_t)));
  const auto first = std::ranges::find_if(start, [](uint8_t byte) { return byte != 0; });
  const auto at = static_cast<size_t>(first - start.begin());
  if (!contains(start, at, sizeof(uint32_t))) return false;
  const auto signature = numberAt<uint32_t>(start, at);
  return signature == kLocalHeader || signature == kEnd;
}

bool endsLikeZip(Bytes bytes) {
  return findEnd(bytes).has_value();
}

Result<std::vector<Part>> readZipDirectory(Bytes bytes) {
  HEARTH_ASSIGN(const Directory directory, findDirectory(bytes));
  const Bytes records = bytes.subspan(directory.offset, directory.size);
  std::vector<Part> parts;
  std::vector<Extent> extents = {{directory.offset, bytes.size(), "the directory"}};
  for (uint64_t at = 0; at < records.size();) {
    HEARTH_ASSIGN(const Member member, readRecord(records, &at));
    HEARTH_ASSIGN(Part part, memberPart(bytes, member));
    extents.push_back({member.header, part.offset + part.size, part.name});
    if (!member.rawName.ends_with('/')) parts.push_back(std::move(part));
  }
  HEARTH_TRY(checkApart(std::move(extents)));
  return parts;
}

}  // namespace hearth::tflite
