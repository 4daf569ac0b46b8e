// SPDX-License-Identifier: Apache-2.0
#include "llm/piece_path.h"

#include <algorithm>
#include <map>
#include <queue>

#include "llm/piece_normalizer.h"
#include "llm/utf8.h"

namespace hearth::llm {
namespace {

// Where the word at `begin` ends, behind which no piece goes. So the rest does not depend on it,
// and memory is needed for a word and not for the text.
size_t endOfWord(const SentencePieceTable& table, std::string_view text, size_t begin) {
  if (table.hasInnerSpaces()) return text.size();
  while (text.substr(begin).starts_with(kEscapedSpace)) begin += kEscapedSpace.size();
  return std::min(text.find(kEscapedSpace, begin), text.size());
}

class BestPath {
 public:
  BestPath(const SentencePieceTable& table, std::string_view text, SpecialTokens special)
      : table_(table), text_(text), special_(special) {}

  std::vector<FoundPiece> run() {
    for (size_t begin = 0; begin < text_.size();) {
      const size_t end = endOfWord(table_, text_, begin);
      addWord(begin, end);
      begin = end;
    }
    return std::move(pieces_);
  }

 private:
  // The best division of a word up to one of its bytes: its last piece and its score.
  struct Node {
    size_t begin = kNone;
    int32_t id = 0;
    float score = 0;
  };
  static constexpr size_t kNone = SIZE_MAX;

  void reach(size_t end, size_t begin, int32_t id, float score) {
    Node& node = nodes_[end - wordBegin_];
    if (node.begin != kNone && !(score > node.score)) return;
    node = {begin, id, score};
  }

  // Reaches the ends of all pieces from `begin` on.
  void follow(size_t begin, size_t end) {
    const float before = nodes_[begin - wordBegin_].score;
    const size_t character = std::min<size_t>(decodeCharacter(text_, begin).size, end - begin);
    bool hasCharacter = false;
    uint32_t node = 0;
    for (size_t at = begin; at < end;) {
      node = table_.pieces().child(node, static_cast<uint8_t>(text_[at]));
      if (node == 0) break;
      ++at;
      const int32_t id = table_.pieces().id(node);
      if (!table_.isKnown(id) || table_.type(id) == PieceType::kUnused) continue;
      if (special_ == SpecialTokens::kAreText && table_.isSpecial(id)) continue;
      // A user-defined piece is better than any others.
      const float score =
          table_.type(id) == PieceType::kUserDefined
              ? static_cast<float>(static_cast<float>(at - begin) * table_.maxScore() - 0.1)
              : table_.score(id);
      reach(at, begin, id, score + before);
      hasCharacter = hasCharacter || at - begin == character;
    }
    constexpr float kUnknownPenalty = 10;
    const float unknownScore = table_.minScore() - kUnknownPenalty;
    if (!hasCharacter) reach(begin + character, begin, table_.unknown(), unknownScore + before);
  }

  void addWord(size_t begin, size_t end) {
    wordBegin_ = begin;
    nodes_.assign(end - begin + 1, Node());
    nodes_[0].score = score_;
    for (size_t at = begin; at < end; at += decodeCharacter(text_, at).size) follow(at, end);
    score_ = nodes_[end - begin].score;
    const size_t first = pieces_.size();
    for (size_t at = end; at > begin;) {
      const Node& node = nodes_[at - begin];
      pieces_.push_back({text_.substr(node.begin, at - node.begin), node.id});
      at = node.begin;
    }
    std::reverse(pieces_.begin() + static_cast<std::ptrdiff_t>(first), pieces_.end());
  }

  const SentencePieceTable& table_;
  std::string_view text_;
  SpecialTokens special_;
  std::vector<Node> nodes_;  // by byte of the word
  size_t wordBegin_ = 0;
  float score_ = 0;  // of all words so far
  std::vector<FoundPiece> pieces_;
};

class MergedPieces {
 public:
  MergedPieces(const SentencePieceTable& table, std::string_view text, SpecialTokens special)
      : table_(table), text_(text), special_(special) {}

  std::vector<FoundPiece> run() {
    for (size_t begin = 0; begin < text_.size();) {
      const size_t end = endOfWord(table_, text_, begin);
      split(text_.substr(begin, end - begin));
      merge();
      for (uint32_t at = 0; at < symbols_.size(); at = symbols_[at].next) add(symbols_[at].text);
      begin = end;
    }
    return std::move(pieces_);
  }

 private:
  struct Symbol {
    std::string_view text;  // empty when it is part of the one in front of it
    uint32_t previous = 0;
    uint32_t next = 0;
    bool isFrozen = false;  // never merged
  };
  struct Candidate {
    float score = 0;
    uint32_t left = 0;
    uint32_t right = 0;
    size_t bytes = 0;
    bool operator<(const Candidate& other) const {
      return score != other.score ? score < other.score : left > other.left;
    }
  };

  void split(std::string_view word) {
    symbols_.clear();
    halves_.clear();
    for (size_t at = 0; at < word.size();) {
      const PieceTrie::Match match = longestUserDefined(table_, word, at, special_);
      const size_t size = match.size > 0 ? match.size : decodeCharacter(word, at).size;
      const auto index = static_cast<uint32_t>(symbols_.size());
      symbols_.push_back({word.substr(at, size), index - 1, index + 1, match.size > 0});
      at += size;
    }
  }

  void consider(uint32_t left) {
    const uint32_t right = symbols_[left].next;
    if (right >= symbols_.size() || symbols_[left].isFrozen || symbols_[right].isFrozen) return;
    const size_t leftBytes = symbols_[left].text.size();
    const size_t bytes = leftBytes + symbols_[right].text.size();
    const std::string_view text(symbols_[left].text.data(), bytes);
    const int32_t id = table_.pieces().find(text);
    if (!table_.isKnown(id)) return;
    if (special_ == SpecialTokens::kAreText && table_.isSpecial(id)) return;
    queue_.push({table_.score(id), left, right, bytes});
    if (table_.type(id) == PieceType::kUnused) halves_[text] = leftBytes;
  }

  void merge() {
    for (uint32_t at = 0; at + 1 < symbols_.size(); ++at) consider(at);
    while (!queue_.empty()) {
      const Candidate best = queue_.top();
      queue_.pop();
      Symbol& left = symbols_[best.left];
      Symbol& right = symbols_[best.right];
      // One of the two may have been merged with another since.
      if (left.text.empty() || right.text.empty() ||
          left.text.size() + right.text.size() != best.bytes)
        continue;
      left.text = {left.text.data(), best.bytes};
      right.text = {};
      left.next = right.next;
      if (left.next < symbols_.size()) symbols_[left.next].previous = best.left;
      if (left.previous < symbols_.size()) consider(left.previous);
      consider(best.left);
    }
  }

  // Appends a piece; of one that is only there to be merged further, what it was made of.
  void add(std::string_view text) {
    const int32_t id = table_.pieces().find(text);
    if (!table_.isKnown(id)) {
      pieces_.push_back({text, table_.unknown()});
      return;
    }
    const auto half = halves_.find(text);
    if (table_.type(id) != PieceType::kUnused || half == halves_.end()) {
      pieces_.push_back({text, id});
      return;
    }
    // Each half is shorter, and pieces are short.
    const size_t left = half->second;
    add(text.substr(0, left));
    add(text.substr(left));
  }

  const SentencePieceTable& table_;
  std::string_view text_;
  SpecialTokens special_;
  std::vector<Symbol> symbols_;  // of the word
  std::priority_queue<Candidate> queue_;
  std::map<std::string_view, size_t> halves_;  // by unused piece: the bytes of the first one
  std::vector<FoundPiece> pieces_;
};

}  // namespace

std::vector<FoundPiece> findBestPath(const SentencePieceTable& table, std::string_view text,
                                     SpecialTokens special) {
  return BestPath(table, text, special).run();
}

std::vector<FoundPiece> mergePieces(const SentencePieceTable& table, std::string_view text,
                                    SpecialTokens special) {
  return MergedPieces(table, text, special).run();
}

}  // namespace hearth::llm
