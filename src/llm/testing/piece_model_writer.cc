// SPDX-License-Identifier: Apache-2.0
#include "llm/testing/piece_model_writer.h"

#include <bit>

#include "base/format.h"

namespace hearth::llm {
namespace {

void appendVarint(uint64_t value, std::string* bytes) {
  for (; value >= 0x80; value >>= 7) bytes->push_back(static_cast<char>(value | 0x80));
  bytes->push_back(static_cast<char>(value));
}

void appendNumber(uint32_t field, uint64_t value, std::string* bytes) {
  appendVarint(field << 3, bytes);
  appendVarint(value, bytes);
}

void appendBytes(uint32_t field, std::string_view content, std::string* bytes) {
  appendVarint(field << 3 | 2, bytes);
  appendVarint(content.size(), bytes);
  bytes->append(content);
}

void appendFloat(uint32_t field, float value, std::string* bytes) {
  appendVarint(field << 3 | 5, bytes);
  const auto bits = std::bit_cast<uint32_t>(value);
  for (int shift = 0; shift < 32; shift += 8) bytes->push_back(static_cast<char>(bits >> shift));
}

}  // namespace

PieceModelWriter::PieceModelWriter(SentencePieceModel::Kind kind) {
  appendNumber(3, static_cast<uint64_t>(kind), &trainer_);
}

PieceModelWriter& PieceModelWriter::add(std::string_view text, float score, PieceType type) {
  std::string piece;
  appendBytes(1, text, &piece);
  appendFloat(2, score, &piece);
  if (type != PieceType::kNormal) appendNumber(3, static_cast<uint64_t>(type), &piece);
  appendBytes(1, piece, &pieces_);
  return *this;
}

PieceModelWriter& PieceModelWriter::addBytes() {
  for (int byte = 0; byte < 256; ++byte)
    add(base::formatText("<0x{:02X}>", byte), 0, PieceType::kByte);
  return setTrainerField(35, 1);
}

PieceModelWriter& PieceModelWriter::setNormalizer(bool hasDummyPrefix, bool removesExtraSpaces) {
  appendNumber(3, hasDummyPrefix ? 1 : 0, &normalizer_);
  appendNumber(4, removesExtraSpaces ? 1 : 0, &normalizer_);
  return *this;
}

PieceModelWriter& PieceModelWriter::setTrainerField(uint32_t field, uint64_t value) {
  appendNumber(field, value, &trainer_);
  return *this;
}

PieceModelWriter& PieceModelWriter::setNormalizerField(uint32_t field, std::string_view bytes) {
  appendBytes(field, bytes, &normalizer_);
  return *this;
}

std::string PieceModelWriter::write() const {
  std::string message = pieces_;
  appendBytes(2, trainer_, &message);
  appendBytes(3, normalizer_, &message);
  return message;
}

}  // namespace hearth::llm
