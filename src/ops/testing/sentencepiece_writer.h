// SPDX-License-Identifier: Apache-2.0
// Writes models of SentencePiece as SentencepieceModel reads them.
#pragma once

#include <flatbuffers/flatbuffer_builder.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::ops {

// The nodes of a double-array trie of strings without zeros.
class TrieWriter {
 public:
  explicit TrieWriter(const std::map<std::string, uint32_t>& strings) : strings_(strings) {
    nodes_.resize(1);
    taken_.insert(0);
    place(0, "");
  }
  const std::vector<uint32_t>& nodes() const { return nodes_; }

 private:
  // Puts the children of the node at `position`, to which `prefix` leads, where all are free.
  void place(uint32_t position, const std::string& prefix) {
    std::set<uint8_t> labels;
    bool hasValue = false;
    for (const auto& [text, value] : strings_) {
      if (!text.starts_with(prefix)) continue;
      if (text.size() == prefix.size())
        hasValue = true;
      else
        labels.insert(static_cast<uint8_t>(text[prefix.size()]));
    }
    uint32_t base = 1;
    const auto isFree = [&] {
      return !taken_.contains(base) && std::ranges::none_of(labels, [&](uint8_t label) {
        return taken_.contains(base ^ label);
      });
    };
    while (!isFree()) ++base;
    nodes_[position] |= (position ^ base) << 10 | (hasValue ? 0x100u : 0u);
    put(base, hasValue ? 0x80000000u | strings_.at(prefix) : 0u);
    for (const uint8_t label : labels) put(base ^ label, label);
    for (const uint8_t label : labels) place(base ^ label, prefix + static_cast<char>(label));
  }
  void put(uint32_t position, uint32_t node) {
    if (nodes_.size() <= position) nodes_.resize(position + 1);
    nodes_[position] = node;
    taken_.insert(position);
  }

  const std::map<std::string, uint32_t>& strings_;
  std::vector<uint32_t> nodes_;
  std::set<uint32_t> taken_;
};

struct SentencepieceContent {
  std::vector<std::pair<std::string, float>> pieces;
  std::map<std::string, std::string> replacements;
  int32_t begin = 0;
  int32_t end = 0;
  int32_t unknown = -1;
  float unknownScore = 0;
  int32_t firstCode = 0;
  bool removesSpaces = false;
  bool addsSpace = false;
  bool marksSpaces = false;
  int8_t version = 0;

  std::vector<uint8_t> write() const {
    flatbuffers::FlatBufferBuilder builder;
    const auto addTrie = [&](const std::map<std::string, uint32_t>& strings) {
      const auto nodes = builder.CreateVector(TrieWriter(strings).nodes());
      const auto start = builder.StartTable();
      builder.AddOffset(4, nodes);
      return flatbuffers::Offset<void>(builder.EndTable(start));
    };
    std::map<std::string, uint32_t> texts;
    std::vector<float> scores;
    for (const auto& [piece, score] : pieces) {
      texts[piece] = static_cast<uint32_t>(scores.size());
      scores.push_back(score);
    }
    std::map<std::string, uint32_t> prefixes;
    std::vector<int8_t> bytes;
    for (const auto& [from, to] : replacements) {
      prefixes[from] = static_cast<uint32_t>(bytes.size());
      bytes.insert(bytes.end(), to.begin(), to.end());
      bytes.push_back(0);
    }
    const auto piecesOffset = addTrie(texts);
    const auto scoresOffset = builder.CreateVector(scores);
    const auto prefixesOffset = addTrie(prefixes);
    const auto bytesOffset = builder.CreateVector(bytes);
    const auto start = builder.StartTable();
    builder.AddElement<int8_t>(4, version, 0);
    builder.AddElement<int32_t>(6, begin, 0);
    builder.AddElement<int32_t>(8, end, 0);
    builder.AddElement<int32_t>(10, unknown, -1);
    builder.AddElement<float>(12, unknownScore, 0);
    builder.AddElement<int32_t>(14, firstCode, 0);
    builder.AddOffset(16, piecesOffset);
    builder.AddOffset(18, scoresOffset);
    builder.AddElement<uint8_t>(20, removesSpaces ? 1 : 0, 0);
    builder.AddElement<uint8_t>(22, addsSpace ? 1 : 0, 0);
    builder.AddElement<uint8_t>(24, marksSpaces ? 1 : 0, 0);
    builder.AddOffset(26, prefixesOffset);
    builder.AddOffset(28, bytesOffset);
    builder.Finish(flatbuffers::Offset<void>(builder.EndTable(start)));
    return {builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize()};
  }
};

// "▁ab" and its parts: letters that are likelier together.
inline SentencepieceContent smallSentencepieceModel() {
  SentencepieceContent content;
  content.pieces = {{"<unk>", 0},      {"<s>", 0},       {"</s>", 0},  {"\u2581", -2},
                    {"a", -3},         {"b", -3},        {"ab", -4},   {"\u2581ab", -5},
                    {"\u2581b", -4.5}, {"\u00e4", -3.5}, {"abba", -20}};
  // A piece that is no text must not be found.
  for (size_t i = 0; i < 3; ++i) content.pieces[i].first[0] = '\x01';
  content.replacements = {{"A", "a"}, {"a\u0308", "\u00e4"}, {"\t", " "}};
  content.begin = 1;
  content.end = 2;
  content.unknown = 0;
  content.unknownScore = -30;
  content.removesSpaces = content.addsSpace = content.marksSpaces = true;
  return content;
}

}  // namespace hearth::ops
