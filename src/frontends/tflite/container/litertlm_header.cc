// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite/container/litertlm_header.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "frontends/tflite/container/extents.h"
#include "frontends/tflite/reader/text.h"
#include "litertlm_schema_generated.h"

namespace hearth::tflite {
namespace {

using Bytes = std::span<const uint8_t>;
using Entries = flatbuffers::Vector<flatbuffers::Offset<litertlm::Entry>>;

constexpr std::string_view kMagic = "LITERTLM";
constexpr size_t kVersionOffset = 8;
constexpr size_t kHeaderEndOffset = 24;
constexpr size_t kHeaderOffset = 32;
constexpr uint32_t kMajorVersion = 1;
// Writers keep the header below 16 KiB, where the first section begins.
constexpr uint64_t kMaxHeaderSize = uint64_t{1} << 20;
constexpr size_t kAlignment = 4;
// A table takes 4 bytes itself and 4 for the offset to it, so more tables than this are aliased.
constexpr size_t kBytesPerTable = 8;
constexpr size_t kSpareTables = 64;

template <typename T>
T fieldAt(Bytes bytes, size_t offset) {
  T number;
  std::memcpy(&number, bytes.data() + offset, sizeof(number));
  return flatbuffers::EndianScalar(number);
}

MetadataValue valueOf(const litertlm::Entry& entry) {
  // The verifier passes a union without a value.
  if (entry.value() == nullptr) return {};
  switch (entry.value_type()) {
    case litertlm::Value::UInt8:
      return uint64_t{entry.value_as_UInt8()->value()};
    case litertlm::Value::Int8:
      return int64_t{entry.value_as_Int8()->value()};
    case litertlm::Value::UInt16:
      return uint64_t{entry.value_as_UInt16()->value()};
    case litertlm::Value::Int16:
      return int64_t{entry.value_as_Int16()->value()};
    case litertlm::Value::UInt32:
      return uint64_t{entry.value_as_UInt32()->value()};
    case litertlm::Value::Int32:
      return int64_t{entry.value_as_Int32()->value()};
    case litertlm::Value::Float32:
      return double{entry.value_as_Float32()->value()};
    case litertlm::Value::Bool:
      return entry.value_as_Bool()->value();
    case litertlm::Value::Text:
      return cleanText(entry.value_as_Text()->value());
    case litertlm::Value::UInt64:
      return entry.value_as_UInt64()->value();
    case litertlm::Value::Int64:
      return entry.value_as_Int64()->value();
    case litertlm::Value::Float64:
      return entry.value_as_Float64()->value();
    case litertlm::Value::NONE:
      break;
  }
  return {};
}

std::vector<MetadataEntry> metadataOf(const Entries* entries) {
  std::vector<MetadataEntry> metadata;
  if (entries == nullptr) return metadata;
  for (const litertlm::Entry* entry : *entries)
    metadata.push_back({cleanText(entry->key()), valueOf(*entry)});
  return metadata;
}

PartKind kindOf(litertlm::SectionType type) {
  switch (type) {
    case litertlm::SectionType::TFLiteModel:
      return PartKind::kModel;
    case litertlm::SectionType::TFLiteWeights:
      return PartKind::kWeights;
    case litertlm::SectionType::SP_Tokenizer:
    case litertlm::SectionType::HF_Tokenizer_Zlib:
      return PartKind::kTokenizer;
    case litertlm::SectionType::LlmMetadataProto:
    case litertlm::SectionType::EmbeddingMetadataProto:
    case litertlm::SectionType::ExecutorMetadataProto:
    case litertlm::SectionType::TtsMetadataProto:
    case litertlm::SectionType::AsrMetadataProto:
      return PartKind::kMetadata;
    default:
      return PartKind::kOther;
  }
}

std::string nameOf(const Part& part) {
  constexpr std::string_view kPrefix = "tf_lite_";
  for (const MetadataEntry& entry : part.metadata) {
    const auto* const text = std::get_if<std::string>(&entry.value);
    if (entry.key != "model_type" || text == nullptr || text->empty()) continue;
    return text->starts_with(kPrefix) && text->size() > kPrefix.size()
               ? text->substr(kPrefix.size())
               : *text;
  }
  return part.type;
}

Result<Part> sectionPart(const litertlm::Section& section, size_t index, size_t fileSize) {
  Part part;
  const std::string_view type = litertlm::EnumNameSectionType(section.type());
  part.type = type.empty() ? base::formatText("type {}", static_cast<unsigned>(section.type()))
                           : std::string(type);
  part.kind = kindOf(section.type());
  part.metadata = metadataOf(section.entries());
  part.name = nameOf(part);
  if (section.begin_offset() > section.end_offset() || section.end_offset() > fileSize)
    return fail(ErrorCode::kBadData,
                "The .litertlm file is damaged or incomplete: its section {} ({}) lies at bytes {} "
                "to {} of {}.",
                index, part.name, section.begin_offset(), section.end_offset(), fileSize);
  part.offset = section.begin_offset();
  part.size = section.end_offset() - section.begin_offset();
  return part;
}

}  // namespace

bool isLitertlm(Bytes bytes) {
  return bytes.size() >= kMagic.size() &&
         std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) == 0;
}

Result<LitertlmHeader> readLitertlmHeader(Bytes bytes) {
  if (bytes.size() < kHeaderOffset)
    return fail(ErrorCode::kBadData, "The .litertlm file ends after {} bytes, in its header.",
                bytes.size());
  const auto major = fieldAt<uint32_t>(bytes, kVersionOffset);
  if (major != kMajorVersion)
    return fail(ErrorCode::kBadData, "The .litertlm file has format version {}, only {} is known.",
                major, kMajorVersion);
  const auto end = fieldAt<uint64_t>(bytes, kHeaderEndOffset);
  if (end < kHeaderOffset || end > bytes.size() || end - kHeaderOffset > kMaxHeaderSize)
    return fail(ErrorCode::kBadData,
                "The .litertlm file is damaged: its header ends at byte {}, the file has {} bytes "
                "and a header at most {}.",
                end, bytes.size(), kMaxHeaderSize);
  if (reinterpret_cast<uintptr_t>(bytes.data()) % kAlignment != 0)
    return fail(ErrorCode::kBadData,
                "The .litertlm file lies at an address that is not a multiple of {}.", kAlignment);
  const Bytes tables = bytes.subspan(kHeaderOffset, end - kHeaderOffset);
  flatbuffers::Verifier::Options options;
  options.max_tables =
      static_cast<flatbuffers::uoffset_t>(tables.size() / kBytesPerTable + kSpareTables);
  flatbuffers::Verifier verifier(tables.data(), tables.size(), options);
  if (!verifier.VerifyBuffer<litertlm::Header>(nullptr))
    return fail(ErrorCode::kBadData,
                "The .litertlm file is damaged: its header refers to places outside itself.");

  const auto& root = *flatbuffers::GetRoot<litertlm::Header>(tables.data());
  LitertlmHeader header;
  header.version = base::formatText("{}.{}.{}", major, fieldAt<uint32_t>(bytes, 12),
                                    fieldAt<uint32_t>(bytes, 16));
  if (root.system() != nullptr) header.metadata = metadataOf(root.system()->entries());
  if (root.sections() == nullptr || root.sections()->sections() == nullptr) return header;
  std::vector<Extent> extents = {{0, end, "the header"}};
  for (const litertlm::Section* section : *root.sections()->sections()) {
    HEARTH_ASSIGN(Part part, sectionPart(*section, header.parts.size(), bytes.size()));
    extents.push_back({part.offset, part.offset + part.size,
                       base::formatText("section {} ({})", header.parts.size(), part.name)});
    header.parts.push_back(std::move(part));
  }
  HEARTH_TRY(checkApart(std::move(extents)));
  return header;
}

}  // namespace hearth::tflite
