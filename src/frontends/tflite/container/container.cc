// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite/container/container.h"

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "frontends/tflite/container/litertlm_header.h"
#include "frontends/tflite/container/zip_directory.h"
#include "frontends/tflite/reader/foreign_file.h"
#include "tflite_schema_generated.h"

namespace hearth::tflite {
namespace {

using Bytes = std::span<const uint8_t>;

// MediaPipe has archives in archives, one level deep.
constexpr int kMaxDepth = 4;
// The tables of a model are read in place; FileView::open asks for as much.
constexpr uint64_t kModelAlignment = 4;
constexpr size_t kMaxListed = 32;

bool isModel(Bytes bytes) {
  constexpr size_t kIdentifierEnd = 8;
  return bytes.size() >= kIdentifierEnd &&
         flatbuffers::BufferHasIdentifier(bytes.data(), schema::ModelIdentifier());
}

Result<std::optional<Container>> readAtDepth(Bytes bytes, int depth);

// Finds out what a member of an archive is, which only its bytes tell.
void classify(Bytes bytes, Part* part) {
  if (!part->problem.empty()) return;
  if (isModel(bytes))
    part->kind = PartKind::kModel;
  else if (isZip(bytes) || isLitertlm(bytes))
    part->kind = PartKind::kContainer;
}

// Appends the part, and the parts of it.
void addPart(Bytes file, Part part, int depth, std::vector<Part>* parts) {
  const Bytes bytes = file.subspan(part.offset, part.size);
  if (part.kind == PartKind::kOther) classify(bytes, &part);
  std::vector<Part> inner;
  if (part.kind == PartKind::kContainer) {
    auto container = readAtDepth(bytes, depth + 1);
    if (!container)
      part.problem = container.error().message();
    else if (*container)
      inner = std::move((*container)->parts);
  }
  const std::string prefix = part.name + "/";
  const uint64_t offset = part.offset;
  parts->push_back(std::move(part));
  for (Part& each : inner) {
    each.name.insert(0, prefix);
    each.offset += offset;
    parts->push_back(std::move(each));
  }
}

Result<std::optional<Container>> readAtDepth(Bytes bytes, int depth) {
  const bool isArchive = isZip(bytes);
  if (isModel(bytes) || (!isArchive && !isLitertlm(bytes))) return std::nullopt;
  if (depth == kMaxDepth)
    return fail(ErrorCode::kBadData, "Containers lie in containers, deeper than {} levels.",
                kMaxDepth);
  Container container;
  std::vector<Part> parts;
  if (isArchive) {
    HEARTH_ASSIGN(parts, readZipDirectory(bytes));
  } else {
    container.format = ContainerFormat::kLitertlm;
    HEARTH_ASSIGN(LitertlmHeader header, readLitertlmHeader(bytes));
    container.version = std::move(header.version);
    container.metadata = std::move(header.metadata);
    parts = std::move(header.parts);
  }
  for (Part& part : parts) addPart(bytes, std::move(part), depth, &container.parts);
  return container;
}

// "a.tflite, b.tflite", or "none".
std::string modelNames(const Container& container) {
  std::string names;
  size_t count = 0;
  for (const Part& part : container.parts) {
    if (part.kind != PartKind::kModel || ++count > kMaxListed) continue;
    names += base::formatText("{}{}", names.empty() ? "" : ", ", part.name);
  }
  if (count > kMaxListed) names += base::formatText(" and {} more", count - kMaxListed);
  return names.empty() ? "none" : names;
}

}  // namespace

Result<std::optional<Container>> readContainer(Bytes bytes) {
  HEARTH_ASSIGN(std::optional<Container> container, readAtDepth(bytes, 0));
  if (!container) return container;
  for (Part& part : container->parts)
    if (part.kind == PartKind::kModel && part.problem.empty() && part.offset % kModelAlignment != 0)
      part.problem = base::formatText(
          "It lies at byte {} of the file, which is not a multiple of {}, so it cannot be used in "
          "place; unpack the container and give the unpacked file.",
          part.offset, kModelAlignment);
  return container;
}

Result<Part> chooseModel(const Container& container, std::string_view name) {
  std::vector<const Part*> found;
  for (const Part& part : container.parts)
    if (part.kind == PartKind::kModel && (name.empty() || part.name == name))
      found.push_back(&part);
  if (name.empty() && found.empty()) {
    std::vector<std::string_view> names;
    for (const Part& part : container.parts) names.push_back(part.name);
    const std::string seen = foreignArchiveText(names);
    return fail(ErrorCode::kNotFound,
                "The container has {} part{}, and none is a .tflite model.{}{}",
                container.parts.size(), container.parts.size() == 1 ? "" : "s",
                seen.empty() ? "" : " ", seen);
  }
  if (name.empty() && found.size() > 1)
    return fail(ErrorCode::kNotFound, "The container has {} models; name one of the parts: {}.",
                found.size(), modelNames(container));
  if (found.empty()) {
    const auto other = std::ranges::find(container.parts, name, &Part::name);
    if (other == container.parts.end())
      return fail(ErrorCode::kNotFound, "The container has no part \"{}\"; its models are: {}.",
                  name, modelNames(container));
    return fail(ErrorCode::kNotFound, "The part \"{}\" ({}) is no model; the models are: {}.", name,
                other->type, modelNames(container));
  }
  if (found.size() > 1)
    return fail(ErrorCode::kBadData, "The container has {} models with the name \"{}\".",
                found.size(), name);
  const Part& part = *found.front();
  if (!part.problem.empty())
    return fail(ErrorCode::kUnsupported, "The part \"{}\" cannot be run: {}", part.name,
                part.problem);
  return part;
}

}  // namespace hearth::tflite
