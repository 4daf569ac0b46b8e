// SPDX-License-Identifier: Apache-2.0
#include "llm/executor_metadata.h"

#include <array>
#include <utility>

#include "llm/protobuf_reader.h"

namespace hearth::llm {
namespace {

constexpr size_t kMaxStateBuffers = 4096;
constexpr uint64_t kMaxAxis = 15;
constexpr uint64_t kMaxWindow = uint64_t{1} << 31;

// Field numbers of the messages.
constexpr uint32_t kLlmField = 1;
constexpr uint32_t kStateBuffersField = 2;
constexpr uint32_t kMaskField = 3;
constexpr uint32_t kSlidingWindowField = 3;
namespace state_field {
constexpr uint32_t kPrefillInput = 1;
constexpr uint32_t kPrefillOutput = 2;
constexpr uint32_t kDecodeInput = 3;
constexpr uint32_t kDecodeOutput = 4;
constexpr uint32_t kType = 6;
constexpr uint32_t kSequenceAxis = 7;
}  // namespace state_field

Status readStateField(const ProtobufField& field, StateBuffer* buffer) {
  switch (field.number) {
    case state_field::kPrefillInput:
      return readText(field, &buffer->prefillInput);
    case state_field::kPrefillOutput:
      return readText(field, &buffer->prefillOutput);
    case state_field::kDecodeInput:
      return readText(field, &buffer->decodeInput);
    case state_field::kDecodeOutput:
      return readText(field, &buffer->decodeOutput);
    case state_field::kType:
      // Of a later version: what it is does not matter here.
      if (field.value <= static_cast<uint64_t>(StateBuffer::Type::kLinearAttention))
        buffer->type = static_cast<StateBuffer::Type>(field.value);
      return {};
    case state_field::kSequenceAxis:
      if (field.value > kMaxAxis)
        return fail(ErrorCode::kBadData,
                    "The tokens of a cache lie along axis {}; axes are at most {}.",
                    static_cast<int64_t>(field.value), kMaxAxis);
      buffer->sequenceAxis = static_cast<uint32_t>(field.value);
      return {};
    default:
      return {};
  }
}

Status readLlmField(const ProtobufField& field, ExecutorMetadata* metadata) {
  if (field.number == kStateBuffersField) {
    if (metadata->stateBuffers.size() == kMaxStateBuffers)
      return fail(ErrorCode::kBadData, "There are more than {} caches.", kMaxStateBuffers);
    StateBuffer buffer;
    HEARTH_TRY(forEachField(
        field.bytes, [&](const ProtobufField& inner) { return readStateField(inner, &buffer); }));
    metadata->stateBuffers.push_back(std::move(buffer));
  } else if (field.number == kMaskField) {
    return forEachField(field.bytes, [&](const ProtobufField& inner) -> Status {
      if (inner.number == kSlidingWindowField && inner.value < kMaxWindow)
        metadata->slidingWindow = static_cast<uint32_t>(inner.value);
      return {};
    });
  }
  return {};
}

}  // namespace

std::string_view stateBufferTypeName(StateBuffer::Type type) {
  constexpr std::array<std::string_view, 6> kNames = {"unspecified",   "global keys",
                                                      "global values", "local keys",
                                                      "local values",  "linear attention"};
  return kNames[static_cast<size_t>(type)];
}

Result<ExecutorMetadata> readExecutorMetadata(std::span<const uint8_t> message) {
  ExecutorMetadata metadata;
  HEARTH_TRY(forEachField(message, [&](const ProtobufField& field) -> Status {
    if (field.number != kLlmField) return {};
    return forEachField(field.bytes,
                        [&](const ProtobufField& inner) { return readLlmField(inner, &metadata); });
  }));
  return metadata;
}

}  // namespace hearth::llm
