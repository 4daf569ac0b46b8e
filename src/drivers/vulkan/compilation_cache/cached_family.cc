// SPDX-License-Identifier: Apache-2.0
#include "drivers/vulkan/compilation_cache/cached_family.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/byte_reader.h"

namespace hearth::vulkan {
namespace {

constexpr std::array<char, 8> kFamilyMagic = {'H', 'V', 'U', 'L', 'F', 'A', 'M', 'I'};
constexpr uint32_t kFamilyVersion = 1;
// In front of the model: what it is, the version, the bytes of constants and those of the model.
constexpr size_t kHeadBytes = kFamilyMagic.size() + sizeof(uint32_t) + 2 * sizeof(uint64_t);

// The least number of bytes of each kind of element, which bounds the lengths of lists.
constexpr size_t kLeastMember = 24;
constexpr size_t kLeastShape = 8;

Result<CachedMember> readMember(base::ByteReader& reader, uint64_t dataBytes,
                                const GpuFacts& facts) {
  CachedMember member;
  const size_t inputs = reader.count(kLeastShape);
  for (size_t i = 0; i < inputs && reader.isGood(); ++i)
    member.shapes.push_back(reader.list<uint32_t>());
  HEARTH_ASSIGN(CachedPlan cached, parsePlan(reader.list<uint8_t>(), facts));
  member.plan = std::move(cached.plan);
  member.isTuned = cached.isTuned;
  member.constants = reader.list<CachedPiece>();
  uint64_t left = member.plan.constantBytes;
  for (const CachedPiece& piece : member.constants) {
    if (piece.offset > dataBytes || piece.bytes > dataBytes - piece.offset || piece.bytes > left)
      return fail(ErrorCode::kBadData, "A plan has constants of {} bytes at {} of {}.", piece.bytes,
                  piece.offset, dataBytes);
    left -= piece.bytes;
  }
  if (left != 0)
    return fail(ErrorCode::kBadData, "The constants of a plan are {} bytes too few.", left);
  const graph::Subgraph& arguments = member.plan.arguments;
  const bool fits = std::ranges::equal(arguments.inputs, member.shapes, {}, [&](uint32_t index) {
    return arguments.operands[index].dimensions;
  });
  if (!fits) return fail(ErrorCode::kBadData, "A plan is for other shapes than it is kept for.");
  return member;
}

}  // namespace

std::vector<uint8_t> encodeFamily(const CachedFamily& family) {
  ByteWriter writer;
  for (const char letter : kFamilyMagic) writer.number(letter);
  writer.number(kFamilyVersion);
  writer.number(family.constantBytes);
  writer.list(family.model);
  writer.number(static_cast<uint64_t>(family.members.size()));
  for (const CachedMember& member : family.members) {
    writer.number(static_cast<uint64_t>(member.shapes.size()));
    for (const graph::Dimensions& shape : member.shapes) writer.list(shape);
    writer.list(encodePlan(member.plan, {}, member.isTuned));
    writer.list(member.constants);
  }
  writePipelines(writer, family.pipelines);
  return std::move(writer.bytes);
}

bool isFamily(std::span<const uint8_t> bytes) {
  return bytes.size() >= kFamilyMagic.size() &&
         std::equal(kFamilyMagic.begin(), kFamilyMagic.end(), bytes.begin());
}

Result<CachedFamily> parseFamily(std::span<const uint8_t> bytes, uint64_t dataBytes,
                                 const GpuFacts& facts) {
  if (!isFamily(bytes))
    return fail(ErrorCode::kBadData, "The bytes are no plans of the GPU driver.");
  base::ByteReader head(bytes.subspan(kFamilyMagic.size()));
  if (const auto version = head.number<uint32_t>(); version != kFamilyVersion)
    return fail(ErrorCode::kBadData, "Plans of the GPU driver have the version {}, not {}.",
                version, kFamilyVersion);
  CachedFamily family;
  family.constantBytes = head.bounded(head.number<uint64_t>(), dataBytes);
  const size_t modelBytes = head.count(1);
  if (!head.isGood())
    return fail(ErrorCode::kBadData, "Plans of the GPU driver have a model of another size.");
  family.model = bytes.subspan(kHeadBytes, modelBytes);
  base::ByteReader reader(bytes.subspan(kHeadBytes + modelBytes));
  const size_t members = reader.bounded(reader.count(kLeastMember), kKeptShapes);
  for (size_t i = 0; i < members && reader.isGood(); ++i) {
    HEARTH_ASSIGN(CachedMember member, readMember(reader, dataBytes, facts));
    family.members.push_back(std::move(member));
  }
  family.pipelines = readPipelines(reader);
  if (!reader.isGood() || reader.hasBytes())
    return fail(ErrorCode::kBadData, "Plans of the GPU driver have another length than they say.");
  return family;
}

}  // namespace hearth::vulkan
