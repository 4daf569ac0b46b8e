// SPDX-License-Identifier: Apache-2.0
#include "llm/sentence_piece_model.h"

#include <cmath>

#include "llm/protobuf_reader.h"

namespace hearth::llm {
namespace {

using FieldType = ProtobufField::Type;

// Field numbers of the messages.
namespace model_field {
constexpr uint32_t kPieces = 1;
constexpr uint32_t kTrainer = 2;
constexpr uint32_t kNormalizer = 3;
constexpr uint32_t kDenormalizer = 5;
}  // namespace model_field
namespace piece_field {
constexpr uint32_t kText = 1;
constexpr uint32_t kScore = 2;
constexpr uint32_t kType = 3;
}  // namespace piece_field
namespace trainer_field {
constexpr uint32_t kModelType = 3;
constexpr uint32_t kIsSpaceSuffix = 24;
constexpr uint32_t kHasByteFallback = 35;
constexpr uint32_t kUnknownSurface = 44;
}  // namespace trainer_field
namespace normalizer_field {
constexpr uint32_t kRules = 2;
constexpr uint32_t kHasDummyPrefix = 3;
constexpr uint32_t kRemovesExtraSpaces = 4;
constexpr uint32_t kEscapesSpaces = 5;
}  // namespace normalizer_field

Status expect(const ProtobufField& field, FieldType type) {
  if (field.type == type) return {};
  return fail(ErrorCode::kBadData, "Field {} has the wrong type.", field.number);
}

Status readFlag(const ProtobufField& field, bool* flag) {
  HEARTH_TRY(expect(field, FieldType::kVarint));
  *flag = field.value != 0;
  return {};
}

Status readPiece(const ProtobufField& field, SentencePieceModel* model) {
  HEARTH_TRY(expect(field, FieldType::kBytes));
  const size_t id = model->pieces.size();
  if (id == SentencePieceModel::kMaxPieces)
    return fail(ErrorCode::kBadData, "There are more than {} pieces.", id);
  SentencePieceModel::Piece piece;
  HEARTH_TRY(forEachField(field.bytes, [&](const ProtobufField& inner) -> Status {
    if (inner.number == piece_field::kText) {
      HEARTH_TRY(expect(inner, FieldType::kBytes));
      piece.text = inner.text();
    } else if (inner.number == piece_field::kScore) {
      HEARTH_TRY(expect(inner, FieldType::kFixed32));
      piece.score = inner.asFloat();
    } else if (inner.number == piece_field::kType) {
      HEARTH_TRY(expect(inner, FieldType::kVarint));
      if (inner.value < 1 || inner.value > 6)
        return fail(ErrorCode::kBadData, "Piece {} has the type {}.", id, inner.value);
      piece.type = static_cast<PieceType>(inner.value);
    }
    return {};
  }));
  if (piece.text.empty() || piece.text.size() > SentencePieceModel::kMaxPieceBytes)
    return fail(ErrorCode::kBadData, "Piece {} has {} bytes; pieces have 1 to {}.", id,
                piece.text.size(), SentencePieceModel::kMaxPieceBytes);
  if (!std::isfinite(piece.score))
    return fail(ErrorCode::kBadData, "The score of piece {} is no number.", id);
  model->pieces.push_back(piece);
  return {};
}

Status readTrainer(const ProtobufField& field, SentencePieceModel* model) {
  if (field.number == trainer_field::kModelType) {
    HEARTH_TRY(expect(field, FieldType::kVarint));
    if (field.value != 1 && field.value != 2)
      return fail(ErrorCode::kUnsupported,
                  "The tokenizer's model is of type {}; 1 (unigram) and 2 (byte pairs) are "
                  "supported.",
                  field.value);
    model->kind = static_cast<SentencePieceModel::Kind>(field.value);
  } else if (field.number == trainer_field::kIsSpaceSuffix) {
    return readFlag(field, &model->isSpaceSuffix);
  } else if (field.number == trainer_field::kHasByteFallback) {
    return readFlag(field, &model->hasByteFallback);
  } else if (field.number == trainer_field::kUnknownSurface) {
    HEARTH_TRY(expect(field, FieldType::kBytes));
    if (field.bytes.size() > SentencePieceModel::kMaxPieceBytes)
      return fail(ErrorCode::kBadData, "The text for unknown pieces has {} bytes; at most {}.",
                  field.bytes.size(), SentencePieceModel::kMaxPieceBytes);
    model->unknownSurface = field.text();
  }
  return {};
}

Status readRules(const ProtobufField& field, SentencePieceModel* model) {
  HEARTH_TRY(expect(field, FieldType::kBytes));
  if (field.bytes.empty()) return {};
  uint32_t unitBytes = 0;
  if (field.bytes.size() < sizeof unitBytes)
    return fail(ErrorCode::kBadData, "The normalization rules have {} bytes.", field.bytes.size());
  for (size_t i = sizeof unitBytes; i-- > 0;) unitBytes = unitBytes << 8 | field.bytes[i];
  const auto rest = field.bytes.subspan(sizeof unitBytes);
  if (unitBytes > rest.size() || unitBytes % sizeof(uint32_t) != 0)
    return fail(ErrorCode::kBadData, "The normalization rules have {} bytes, and {} of them units.",
                rest.size(), unitBytes);
  model->ruleUnits = rest.first(unitBytes);
  const auto texts = rest.subspan(unitBytes);
  model->ruleTexts = {reinterpret_cast<const char*>(texts.data()), texts.size()};
  return {};
}

Status readNormalizer(const ProtobufField& field, SentencePieceModel* model) {
  switch (field.number) {
    case normalizer_field::kRules:
      return readRules(field, model);
    case normalizer_field::kHasDummyPrefix:
      return readFlag(field, &model->hasDummyPrefix);
    case normalizer_field::kRemovesExtraSpaces:
      return readFlag(field, &model->removesExtraSpaces);
    case normalizer_field::kEscapesSpaces:
      return readFlag(field, &model->escapesSpaces);
    default:
      return {};
  }
}

Status checkDenormalizer(const ProtobufField& field) {
  if (field.number != normalizer_field::kRules || field.bytes.empty()) return {};
  return fail(ErrorCode::kUnsupported,
              "The tokenizer has rules for decoded text, which are not supported.");
}

Status readModel(const ProtobufField& field, SentencePieceModel* model) {
  if (field.number == model_field::kPieces) return readPiece(field, model);
  const auto readWith = [&](auto take) -> Status {
    HEARTH_TRY(expect(field, FieldType::kBytes));
    return forEachField(field.bytes, take);
  };
  if (field.number == model_field::kTrainer)
    return readWith([&](const ProtobufField& inner) { return readTrainer(inner, model); });
  if (field.number == model_field::kNormalizer)
    return readWith([&](const ProtobufField& inner) { return readNormalizer(inner, model); });
  if (field.number == model_field::kDenormalizer) return readWith(checkDenormalizer);
  return {};
}

}  // namespace

Result<SentencePieceModel> SentencePieceModel::read(std::span<const uint8_t> message) {
  SentencePieceModel model;
  HEARTH_TRY(
      forEachField(message, [&](const ProtobufField& field) { return readModel(field, &model); }));
  size_t unknown = 0;
  for (const Piece& piece : model.pieces) unknown += piece.type == PieceType::kUnknown ? 1 : 0;
  if (unknown != 1)
    return fail(ErrorCode::kBadData, "{} of the tokenizer's {} pieces stand for unknown text.",
                unknown, model.pieces.size());
  return model;
}

}  // namespace hearth::llm
