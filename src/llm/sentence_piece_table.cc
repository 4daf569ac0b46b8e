// SPDX-License-Identifier: Apache-2.0
#include "llm/sentence_piece_table.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "llm/byte_level.h"
#include "llm/table_arrays.h"

namespace hearth::llm {
namespace {

using Texts = std::vector<std::pair<std::string_view, int32_t>>;

bool hasInnerSpace(std::string_view text) {
  while (text.starts_with(kEscapedSpace)) text.remove_prefix(kEscapedSpace.size());
  return text.contains(kEscapedSpace);
}

// Sorts the texts; fails for one that is there twice.
Status sortTexts(Texts* texts) {
  std::ranges::sort(*texts);
  const auto same = std::ranges::adjacent_find(
      *texts, [](const auto& a, const auto& b) { return a.first == b.first; });
  if (same == texts->end()) return {};
  return fail(ErrorCode::kBadData, "The pieces {} and {} have the same text.", same->second,
              std::next(same)->second);
}

}  // namespace

bool SentencePieceTable::isMark(const SentencePieceModel::Piece& piece) {
  if (piece.type == PieceType::kControl) return true;
  if (piece.type != PieceType::kUserDefined) return false;
  const std::string_view text = piece.text;
  const auto isBetween = [&](char begin, char end) {
    return text.size() > 2 && text.starts_with(begin) && text.ends_with(end);
  };
  // Not the tags of HTML, which users write.
  if (isBetween('<', '>')) return text.contains('_') || text.contains('|');
  const auto isCapital = [](char c) {
    return (c >= 'A' && c <= 'Z') || c == '_' || c == '/';
  };
  return isBetween('[', ']') && std::ranges::all_of(text.substr(1, text.size() - 2), isCapital);
}

Result<SentencePieceTable::Head> SentencePieceTable::headOf(const SentencePieceModel& model) {
  Head head;
  head.magic = kMagic;
  head.kind = static_cast<uint32_t>(model.kind);
  head.pieces = static_cast<uint32_t>(model.pieces.size());
  head.byteTokens.fill(-1);
  // As in SentencePiece: where all scores are below it, the highest one is this.
  head.minScore = std::numeric_limits<float>::max();
  head.maxScore = std::numeric_limits<float>::min();
  bool hasInnerSpaces = false;
  for (size_t i = 0; i < model.pieces.size(); ++i) {
    const SentencePieceModel::Piece& piece = model.pieces[i];
    const auto id = static_cast<int32_t>(i);
    if (piece.type == PieceType::kUnknown) head.unknown = id;
    if (piece.type == PieceType::kNormal) {
      head.minScore = std::min(head.minScore, piece.score);
      head.maxScore = std::max(head.maxScore, piece.score);
    }
    hasInnerSpaces = hasInnerSpaces || hasInnerSpace(piece.text);
    if (piece.type != PieceType::kByte) continue;
    const auto byte = byteOfToken(piece.text);
    if (!byte) return fail(ErrorCode::kBadData, "Piece {} is no byte.", id);
    head.byteTokens[*byte] = id;
  }
  if (model.hasByteFallback && std::ranges::contains(head.byteTokens, -1))
    return fail(ErrorCode::kBadData, "Unknown text becomes bytes, but byte {} has no piece.",
                std::ranges::find(head.byteTokens, -1) - head.byteTokens.begin());
  const auto flag = [&](bool isSet, Flag value) {
    if (isSet) head.flags |= value;
  };
  flag(model.hasByteFallback, kByteFallback);
  flag(model.isSpaceSuffix, kSpaceSuffix);
  flag(model.hasDummyPrefix, kDummyPrefix);
  flag(model.removesExtraSpaces, kRemovesExtraSpaces);
  flag(model.escapesSpaces, kEscapesSpaces);
  flag(hasInnerSpaces, kInnerSpaces);
  return head;
}

Result<std::vector<uint8_t>> SentencePieceTable::make(const SentencePieceModel& model) {
  HEARTH_ASSIGN(Head head, headOf(model));
  std::vector<float> scores;
  std::vector<PieceType> types;
  std::vector<uint32_t> textBegins;
  std::string texts;
  Texts pieces;
  Texts reserved;  // may have the text of a piece, but not of each other
  Texts userDefined;
  Texts special;
  for (const SentencePieceModel::Piece& piece : model.pieces) {
    const std::pair entry(piece.text, static_cast<int32_t>(scores.size()));
    scores.push_back(piece.score);
    types.push_back(piece.type);
    textBegins.push_back(static_cast<uint32_t>(texts.size()));
    texts += piece.text;
    const bool isReserved = piece.type == PieceType::kUnknown ||
                            piece.type == PieceType::kControl || piece.type == PieceType::kByte;
    (isReserved ? reserved : pieces).push_back(entry);
    if (piece.type == PieceType::kUserDefined) userDefined.push_back(entry);
    if (isMark(piece)) special.push_back(entry);
    if (texts.size() > kMaxTableBytes)
      return fail(ErrorCode::kBadData, "The pieces have more than {} bytes.", kMaxTableBytes);
  }
  textBegins.push_back(static_cast<uint32_t>(texts.size()));
  texts += model.unknownSurface;
  if (model.ruleUnits.size() + model.ruleTexts.size() > kMaxTableBytes)
    return fail(ErrorCode::kBadData, "The normalization rules have more than {} bytes.",
                kMaxTableBytes);
  HEARTH_TRY(sortTexts(&reserved));
  for (Texts* list : {&pieces, &userDefined, &special}) HEARTH_TRY(sortTexts(list));
  std::vector<PieceTrie::Arrays> tries;
  for (const Texts* list : {&pieces, &userDefined, &special}) {
    tries.push_back(PieceTrie::build(*list));
    head.nodes[tries.size() - 1] = static_cast<uint32_t>(tries.back().ids.size());
  }
  std::vector<uint32_t> units(model.ruleUnits.size() / sizeof(uint32_t));
  if (!units.empty()) std::memcpy(units.data(), model.ruleUnits.data(), model.ruleUnits.size());
  head.textBytes = static_cast<uint32_t>(texts.size());
  head.unknownSurfaceBytes = static_cast<uint32_t>(model.unknownSurface.size());
  head.ruleUnits = static_cast<uint32_t>(units.size());
  head.ruleTextBytes = static_cast<uint32_t>(model.ruleTexts.size());
  TableWriter writer;
  writer.add(std::span<const Head>(&head, 1));
  writer.add(std::span<const float>(scores));
  writer.add(std::span<const PieceType>(types));
  writer.add(std::span<const uint32_t>(textBegins));
  writer.add(texts);
  for (const PieceTrie::Arrays& trie : tries) writer.add(trie);
  writer.add(std::span<const uint32_t>(units));
  writer.add(model.ruleTexts);
  return writer.take();
}

Result<SentencePieceTable> SentencePieceTable::open(std::span<const uint8_t> bytes,
                                                    std::shared_ptr<const void> owner) {
  SentencePieceTable table;
  table.owner_ = std::move(owner);
  TableReader reader(bytes);
  const auto head = reader.take<Head>(1);
  if (head.empty() || head[0].magic != kMagic)
    return fail(ErrorCode::kBadData, "The table of the tokenizer is of another version.");
  table.head_ = head.data();
  table.scores_ = reader.take<float>(head[0].pieces);
  table.types_ = reader.take<PieceType>(head[0].pieces);
  table.textBegins_ = reader.take<uint32_t>(size_t{head[0].pieces} + 1);
  table.texts_ = reader.takeText(head[0].textBytes);
  table.pieces_ = reader.takeTrie(head[0].nodes[0]);
  table.userDefined_ = reader.takeTrie(head[0].nodes[1]);
  table.special_ = reader.takeTrie(head[0].nodes[2]);
  table.ruleUnits_ = reader.take<uint32_t>(head[0].ruleUnits);
  table.ruleTexts_ = reader.takeText(head[0].ruleTextBytes);
  if (!reader.isWhole() || head[0].unknownSurfaceBytes > head[0].textBytes ||
      !table.isKnown(head[0].unknown))
    return fail(ErrorCode::kBadData, "The table of the tokenizer, of {} bytes, is cut off.",
                bytes.size());
  return table;
}

std::string_view SentencePieceTable::text(int32_t id) const {
  const size_t begin = textBegins_[static_cast<size_t>(id)];
  const size_t end = textBegins_[static_cast<size_t>(id) + 1];
  if (begin > end || end > texts_.size()) return {};
  return texts_.substr(begin, end - begin);
}

bool SentencePieceTable::isSpecial(int32_t id) const {
  if (!isKnown(id)) return false;
  if (type(id) == PieceType::kControl) return true;
  return type(id) == PieceType::kUserDefined && special_.find(text(id)) == id;
}

PieceTrie::Match SentencePieceTable::longestMatch(const PieceTrie& trie, std::string_view text,
                                                  size_t begin) {
  PieceTrie::Match match;
  uint32_t node = 0;
  for (size_t at = begin; at < text.size();) {
    node = trie.child(node, static_cast<uint8_t>(text[at]));
    if (node == 0) break;
    ++at;
    if (trie.id(node) >= 0) match = {at - begin, trie.id(node)};
  }
  return match;
}

SentencePieceModel::Kind SentencePieceTable::kind() const {
  return static_cast<SentencePieceModel::Kind>(head_->kind);
}

std::string_view SentencePieceTable::unknownSurface() const {
  return texts_.substr(texts_.size() - head_->unknownSurfaceBytes);
}

}  // namespace hearth::llm
