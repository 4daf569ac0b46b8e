// SPDX-License-Identifier: Apache-2.0
// A SentencePiece model in the form in which it is used: one block of bytes that need not be read
// before, so that it can be mapped from a file.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "llm/piece_trie.h"
#include "llm/sentence_piece_model.h"

namespace hearth::llm {

// Immutable; copies share the bytes; thread-safe.
class SentencePieceTable {
 public:
  // The bytes of a table. Errors, all kBadData: a piece is there twice, bytes have no pieces though
  // unknown text becomes bytes, or the table exceeds 1 GiB.
  static Result<std::vector<uint8_t>> make(const SentencePieceModel& model);

  // Uses bytes of make(), which begin at a multiple of 8 and live as long as `owner`. Error:
  // kBadData where they are cut off or of another version. Any other damage gives other tokens, and
  // nothing worse.
  static Result<SentencePieceTable> open(std::span<const uint8_t> bytes,
                                         std::shared_ptr<const void> owner);

  size_t size() const { return scores_.size(); }
  // The functions of a number take one below size().
  std::string_view text(int32_t id) const;
  float score(int32_t id) const { return scores_[static_cast<size_t>(id)]; }
  PieceType type(int32_t id) const { return types_[static_cast<size_t>(id)]; }
  bool isKnown(int32_t id) const { return id >= 0 && static_cast<size_t>(id) < size(); }

  // Whether a piece is a mark of the model's and not a part of a text: control pieces, and those
  // that a user has defined in the form that such marks have, as <start_of_turn>, <|end|>, [INST].
  bool isSpecial(int32_t id) const;

  // Normal, user-defined and unused pieces.
  const PieceTrie& pieces() const { return pieces_; }
  const PieceTrie& userDefined() const { return userDefined_; }
  const PieceTrie& special() const { return special_; }
  // The longest text of a trie that `text` begins with, from `begin` on.
  static PieceTrie::Match longestMatch(const PieceTrie& trie, std::string_view text, size_t begin);

  SentencePieceModel::Kind kind() const;
  bool hasByteFallback() const { return hasFlag(kByteFallback); }
  bool isSpaceSuffix() const { return hasFlag(kSpaceSuffix); }
  bool hasDummyPrefix() const { return hasFlag(kDummyPrefix); }
  bool removesExtraSpaces() const { return hasFlag(kRemovesExtraSpaces); }
  bool escapesSpaces() const { return hasFlag(kEscapesSpaces); }
  // Whether a piece has U+2581 behind another character: then words are not independent.
  bool hasInnerSpaces() const { return hasFlag(kInnerSpaces); }
  int32_t unknown() const { return head_->unknown; }
  int32_t byteToken(uint8_t byte) const { return head_->byteTokens[byte]; }
  float minScore() const { return head_->minScore; }  // of the normal pieces
  float maxScore() const { return head_->maxScore; }
  std::string_view unknownSurface() const;
  std::span<const uint32_t> ruleUnits() const { return ruleUnits_; }
  std::string_view ruleTexts() const { return ruleTexts_; }

 private:
  enum Flag : uint32_t {
    kByteFallback = 1,
    kSpaceSuffix = 2,
    kDummyPrefix = 4,
    kRemovesExtraSpaces = 8,
    kEscapesSpaces = 16,
    kInnerSpaces = 32,
  };
  // What the bytes begin with. The arrays follow, each at a multiple of 8.
  struct Head {
    std::array<char, 8> magic;
    uint32_t kind = 0;
    uint32_t flags = 0;
    int32_t unknown = 0;
    float minScore = 0;
    float maxScore = 0;
    uint32_t pieces = 0;
    uint32_t textBytes = 0;  // of the pieces, and behind them of the unknown surface
    uint32_t unknownSurfaceBytes = 0;
    std::array<uint32_t, 3> nodes{};  // of the tries
    uint32_t ruleUnits = 0;
    uint32_t ruleTextBytes = 0;
    uint32_t reserved = 0;
    std::array<int32_t, 256> byteTokens{};
  };
  static constexpr std::array<char, 8> kMagic = {'H', 'R', 'T', 'H', 'S', 'P', '0', '1'};

  static bool isMark(const SentencePieceModel::Piece& piece);
  static Result<Head> headOf(const SentencePieceModel& model);
  bool hasFlag(Flag flag) const { return (head_->flags & flag) != 0; }

  std::shared_ptr<const void> owner_;
  const Head* head_ = nullptr;
  std::span<const float> scores_;
  std::span<const PieceType> types_;
  std::span<const uint32_t> textBegins_;  // by number, and the end of the last one
  std::string_view texts_;
  PieceTrie pieces_;
  PieceTrie userDefined_;
  PieceTrie special_;
  std::span<const uint32_t> ruleUnits_;
  std::string_view ruleTexts_;
};

}  // namespace hearth::llm
