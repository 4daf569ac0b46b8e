// SPDX-License-Identifier: Apache-2.0
#include "llm/llm_metadata.h"

#include <limits>
#include <string_view>

#include "llm/protobuf_reader.h"

namespace hearth::llm {
namespace {

using FieldType = ProtobufField::Type;
using MessageBytes = std::span<const uint8_t>;

constexpr size_t kMaxSequences = 4096;
constexpr size_t kMaxTokens = 1 << 16;
constexpr size_t kMaxTemplateBytes = size_t{1} << 20;

// Field numbers of the messages.
namespace field {
constexpr uint32_t kStartToken = 1;
constexpr uint32_t kStopTokens = 2;
constexpr uint32_t kPromptTemplates = 3;
constexpr uint32_t kSampler = 4;
constexpr uint32_t kMaxTokens = 5;
constexpr uint32_t kChatTemplate = 7;
constexpr uint32_t kSuppressedTokens = 9;
}  // namespace field

Status addId(uint64_t value, std::vector<int32_t>* ids) {
  if (value > static_cast<uint64_t>(std::numeric_limits<int32_t>::max()))
    return fail(ErrorCode::kBadData, "{} is no token.", static_cast<int64_t>(value));
  if (ids->size() == kMaxTokens)
    return fail(ErrorCode::kBadData, "A list of tokens has more than {}.", kMaxTokens);
  ids->push_back(static_cast<int32_t>(value));
  return {};
}

// Repeated numbers: packed into one field, or a field for each.
Status readIds(const ProtobufField& field, std::vector<int32_t>* ids) {
  if (field.type == FieldType::kVarint) return addId(field.value, ids);
  if (field.type != FieldType::kBytes)
    return fail(ErrorCode::kBadData, "Field {} holds no tokens.", field.number);
  for (ProtobufReader list(field.bytes); !list.isAtEnd();) {
    HEARTH_ASSIGN(const uint64_t value, list.readVarint());
    HEARTH_TRY(addId(value, ids));
  }
  return {};
}

Result<TokenSequence> readSequence(const ProtobufField& field) {
  if (field.type != FieldType::kBytes)
    return fail(ErrorCode::kBadData, "Field {} is no message.", field.number);
  TokenSequence sequence;
  HEARTH_TRY(forEachField(field.bytes, [&](const ProtobufField& inner) -> Status {
    if (inner.number == 2) return readText(inner, &sequence.text);
    if (inner.number != 1) return {};
    if (inner.type != FieldType::kBytes)
      return fail(ErrorCode::kBadData, "Field {} is no message.", inner.number);
    return forEachField(inner.bytes, [&](const ProtobufField& list) -> Status {
      return list.number == 1 ? readIds(list, &sequence.ids) : Status();
    });
  }));
  return sequence;
}

Status readAffixes(const ProtobufField& field, std::optional<PromptAffixes>* affixes) {
  if (field.type != FieldType::kBytes)
    return fail(ErrorCode::kBadData, "Field {} is no message.", field.number);
  PromptAffixes& target = affixes->emplace();
  return forEachField(field.bytes, [&](const ProtobufField& inner) -> Status {
    if (inner.number == 1) return readText(inner, &target.prefix);
    if (inner.number == 2) return readText(inner, &target.suffix);
    return {};
  });
}

Status readPromptTemplates(const ProtobufField& field, LlmMetadata* metadata) {
  if (field.type != FieldType::kBytes)
    return fail(ErrorCode::kBadData, "Field {} is no message.", field.number);
  return forEachField(field.bytes, [&](const ProtobufField& inner) -> Status {
    if (inner.number == 1) return readAffixes(inner, &metadata->user);
    if (inner.number == 2) return readAffixes(inner, &metadata->model);
    if (inner.number == 3) return readAffixes(inner, &metadata->system);
    return {};
  });
}

Status readSampler(const ProtobufField& field, LlmMetadata* metadata) {
  if (field.type != FieldType::kBytes)
    return fail(ErrorCode::kBadData, "Field {} is no message.", field.number);
  SamplerParameters& sampler = metadata->sampler.emplace();
  return forEachField(field.bytes, [&](const ProtobufField& inner) -> Status {
    const auto number = static_cast<int32_t>(inner.value);
    if (inner.number == 1 && inner.value <= 3)
      sampler.type = static_cast<SamplerParameters::Type>(inner.value);
    if (inner.number == 2) sampler.k = number;
    if (inner.number == 3) sampler.p = inner.asFloat();
    if (inner.number == 4) sampler.temperature = inner.asFloat();
    if (inner.number == 5) sampler.seed = number;
    return {};
  });
}

Status readField(const ProtobufField& field, LlmMetadata* metadata) {
  switch (field.number) {
    case field::kStartToken: {
      HEARTH_ASSIGN(metadata->startToken, readSequence(field));
      return {};
    }
    case field::kStopTokens: {
      HEARTH_ASSIGN(TokenSequence sequence, readSequence(field));
      if (metadata->stopTokens.size() == kMaxSequences)
        return fail(ErrorCode::kBadData, "There are more than {} stop sequences.", kMaxSequences);
      metadata->stopTokens.push_back(std::move(sequence));
      return {};
    }
    case field::kPromptTemplates:
      return readPromptTemplates(field, metadata);
    case field::kSampler:
      return readSampler(field, metadata);
    case field::kMaxTokens:
      if (field.value > static_cast<uint64_t>(std::numeric_limits<int32_t>::max()))
        return fail(ErrorCode::kBadData, "The context has {} tokens.",
                    static_cast<int64_t>(field.value));
      metadata->maxTokens = static_cast<uint32_t>(field.value);
      return {};
    case field::kChatTemplate:
      if (field.bytes.size() > kMaxTemplateBytes)
        return fail(ErrorCode::kBadData, "The chat template has {} bytes; at most {} are read.",
                    field.bytes.size(), kMaxTemplateBytes);
      return readText(field, &metadata->chatTemplate);
    case field::kSuppressedTokens:
      return readIds(field, &metadata->suppressedTokens);
    default:
      return {};
  }
}

// Field numbers of LlmParameters and of its PromptTemplate.
namespace task_field {
constexpr uint32_t kStartTokenId = 4;
constexpr uint32_t kStopTokens = 5;
constexpr uint32_t kStartToken = 6;
constexpr uint32_t kPromptTemplate = 8;
constexpr uint32_t kSessionPrefix = 1;
constexpr uint32_t kPromptPrefix = 2;
constexpr uint32_t kPromptSuffix = 3;
}  // namespace task_field

Status readTaskTemplate(const ProtobufField& field, LlmMetadata* metadata) {
  std::string sessionPrefix;
  PromptAffixes user;
  HEARTH_TRY(forEachField(field.bytes, [&](const ProtobufField& inner) -> Status {
    if (inner.number == task_field::kSessionPrefix) return readText(inner, &sessionPrefix);
    if (inner.number == task_field::kPromptPrefix) return readText(inner, &user.prefix);
    if (inner.number == task_field::kPromptSuffix) return readText(inner, &user.suffix);
    return {};
  }));
  // What stands before the first message only has no place here; --template has to give it then.
  if (!sessionPrefix.empty()) return {};
  metadata->user = std::move(user);
  metadata->model.emplace();
  return {};
}

Status readTaskField(const ProtobufField& field, LlmMetadata* metadata) {
  switch (field.number) {
    case task_field::kStartTokenId:
      return addId(field.value, &metadata->startToken.emplace().ids);
    case task_field::kStartToken:
      return readText(field, &metadata->startToken.emplace().text);
    case task_field::kStopTokens:
      if (metadata->stopTokens.size() == kMaxSequences)
        return fail(ErrorCode::kBadData, "There are more than {} stop sequences.", kMaxSequences);
      return readText(field, &metadata->stopTokens.emplace_back().text);
    case task_field::kPromptTemplate:
      return readTaskTemplate(field, metadata);
    default:
      return {};
  }
}

}  // namespace

Result<LlmMetadata> readTaskMetadata(std::span<const uint8_t> message) {
  LlmMetadata metadata;
  HEARTH_TRY(forEachField(
      message, [&](const ProtobufField& field) { return readTaskField(field, &metadata); }));
  return metadata;
}

Result<LlmMetadata> readLlmMetadata(MessageBytes message) {
  LlmMetadata metadata;
  HEARTH_TRY_CONTEXT(
      forEachField(message,
                   [&](const ProtobufField& field) { return readField(field, &metadata); }),
      "while reading the metadata of the language model");
  return metadata;
}

}  // namespace hearth::llm
