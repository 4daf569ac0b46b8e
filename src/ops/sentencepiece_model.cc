// SPDX-License-Identifier: Apache-2.0
#include "ops/sentencepiece_model.h"

#include <flatbuffers/buffer.h>
#include <flatbuffers/table.h>
#include <flatbuffers/vector.h>
#include <flatbuffers/verifier.h>

#include <algorithm>
#include <cstring>

namespace hearth::ops {
namespace {

template <typename T>
T valueAt(const uint8_t* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

// The tables of encoder_config.fbs. The fields have offsets in the order of the schema.
constexpr flatbuffers::voffset_t fieldOffset(unsigned index) {
  return static_cast<flatbuffers::voffset_t>(4 + 2 * index);
}

struct TrieTable : private flatbuffers::Table {
  bool Verify(flatbuffers::Verifier& verifier) const {
    return VerifyTableStart(verifier) && VerifyOffset(verifier, kNodes) &&
           verifier.VerifyVector(nodes()) && verifier.EndTable();
  }
  const flatbuffers::Vector<uint32_t>* nodes() const {
    return GetPointer<const flatbuffers::Vector<uint32_t>*>(kNodes);
  }

 private:
  static constexpr auto kNodes = fieldOffset(0);
};

struct ConfigTable : private flatbuffers::Table {
  bool Verify(flatbuffers::Verifier& verifier) const {
    return VerifyTableStart(verifier) && VerifyField<int8_t>(verifier, kVersion, 1) &&
           VerifyField<int32_t>(verifier, kBegin, 4) && VerifyField<int32_t>(verifier, kEnd, 4) &&
           VerifyField<int32_t>(verifier, kUnknown, 4) &&
           VerifyField<float>(verifier, kUnknownScore, 4) &&
           VerifyField<int32_t>(verifier, kFirstCode, 4) && VerifyOffset(verifier, kPieces) &&
           verifier.VerifyTable(pieces()) && VerifyOffset(verifier, kScores) &&
           verifier.VerifyVector(scores()) && VerifyField<uint8_t>(verifier, kRemovesSpaces, 1) &&
           VerifyField<uint8_t>(verifier, kAddsSpace, 1) &&
           VerifyField<uint8_t>(verifier, kMarksSpaces, 1) && VerifyOffset(verifier, kPrefixes) &&
           verifier.VerifyTable(prefixes()) && VerifyOffset(verifier, kReplacements) &&
           verifier.VerifyVector(replacements()) && verifier.EndTable();
  }
  int8_t version() const { return GetField<int8_t>(kVersion, 0); }
  int32_t begin() const { return GetField<int32_t>(kBegin, 0); }
  int32_t end() const { return GetField<int32_t>(kEnd, 0); }
  int32_t unknown() const { return GetField<int32_t>(kUnknown, -1); }
  float unknownScore() const { return GetField<float>(kUnknownScore, 0); }
  int32_t firstCode() const { return GetField<int32_t>(kFirstCode, 0); }
  bool removesSpaces() const { return GetField<uint8_t>(kRemovesSpaces, 0) != 0; }
  bool addsSpace() const { return GetField<uint8_t>(kAddsSpace, 0) != 0; }
  bool marksSpaces() const { return GetField<uint8_t>(kMarksSpaces, 0) != 0; }
  const TrieTable* pieces() const { return GetPointer<const TrieTable*>(kPieces); }
  const TrieTable* prefixes() const { return GetPointer<const TrieTable*>(kPrefixes); }
  const flatbuffers::Vector<float>* scores() const {
    return GetPointer<const flatbuffers::Vector<float>*>(kScores);
  }
  const flatbuffers::Vector<int8_t>* replacements() const {
    return GetPointer<const flatbuffers::Vector<int8_t>*>(kReplacements);
  }

 private:
  static constexpr auto kVersion = fieldOffset(0);
  static constexpr auto kBegin = fieldOffset(1);
  static constexpr auto kEnd = fieldOffset(2);
  static constexpr auto kUnknown = fieldOffset(3);
  static constexpr auto kUnknownScore = fieldOffset(4);
  static constexpr auto kFirstCode = fieldOffset(5);
  static constexpr auto kPieces = fieldOffset(6);
  static constexpr auto kScores = fieldOffset(7);
  static constexpr auto kRemovesSpaces = fieldOffset(8);
  static constexpr auto kAddsSpace = fieldOffset(9);
  static constexpr auto kMarksSpaces = fieldOffset(10);
  static constexpr auto kPrefixes = fieldOffset(11);
  static constexpr auto kReplacements = fieldOffset(12);
};

base::DoubleArrayTrie trieOf(const TrieTable* table) {
  if (table == nullptr || table->nodes() == nullptr) return {};
  return {table->nodes()->Data(), table->nodes()->size()};
}

bool isSpace(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

// Of several spaces in a row one is left, and none at the end.
std::string withSingleSpaces(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size();) {
    size_t end = i;
    while (end < text.size() && isSpace(text[end])) ++end;
    // A single space stays what it is, a tabulator for instance.
    result += end > i + 1 ? ' ' : text[i];
    i = std::max(end, i + 1);
  }
  if (!result.empty() && isSpace(result.back())) result.pop_back();
  return result;
}

std::string withMarkedSpaces(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (isSpace(c))
      result += "\u2581";
    else
      result += c;
  }
  return result;
}

}  // namespace

Result<SentencepieceModel> SentencepieceModel::read(std::span<const uint8_t> bytes) {
  if (reinterpret_cast<uintptr_t>(bytes.data()) % kAlignment != 0)
    return fail(ErrorCode::kBadData, "A model of SentencePiece lies at no multiple of {}.",
                kAlignment);
  flatbuffers::Verifier verifier(bytes.data(), bytes.size());
  if (!verifier.VerifyBuffer<ConfigTable>(nullptr))
    return fail(ErrorCode::kBadData, "Its model of {} bytes is damaged, or none of SentencePiece.",
                bytes.size());
  const auto* const config = flatbuffers::GetRoot<ConfigTable>(bytes.data());
  if (config->version() != 0 || config->pieces() == nullptr || config->scores() == nullptr)
    return fail(ErrorCode::kBadData, "Its model has the version {}, or no pieces.",
                config->version());
  SentencepieceModel model;
  model.begin_ = config->begin();
  model.end_ = config->end();
  if (config->unknown() >= 0) model.unknown_ = config->unknown();
  model.unknownScore_ = config->unknownScore();
  model.firstCode_ = config->firstCode();
  model.pieces_ = trieOf(config->pieces());
  model.scores_ = config->scores()->Data();
  model.scoreCount_ = config->scores()->size();
  model.removesSpaces_ = config->removesSpaces();
  model.addsSpace_ = config->addsSpace();
  model.marksSpaces_ = config->marksSpaces();
  if (config->replacements() != nullptr) {
    model.prefixes_ = trieOf(config->prefixes());
    model.replacements_ = {reinterpret_cast<const char*>(config->replacements()->Data()),
                           config->replacements()->size()};
  }
  return model;
}

Result<std::string> SentencepieceModel::replacePrefixes(std::string_view text) const {
  constexpr size_t kMostGrowth = 64;
  const size_t most = text.size() * kMostGrowth;
  std::string result;
  while (!text.empty()) {
    std::optional<base::DoubleArrayTrie::Match> longest;
    prefixes_.forEachPrefix(text,
                            [&](const base::DoubleArrayTrie::Match& match) { longest = match; });
    if (!longest) {
      result += text[0];
      text.remove_prefix(1);
      continue;
    }
    // A replacement ends with a zero.
    const std::string_view behind =
        replacements_.substr(std::min<size_t>(longest->value, replacements_.size()));
    result += behind.substr(0, behind.find('\0'));
    text.remove_prefix(longest->size);
    if (result.size() > most)
      return fail(ErrorCode::kBadData, "Its model makes a text more than {} times as long.",
                  kMostGrowth);
  }
  return result;
}

Result<std::string> SentencepieceModel::normalize(std::string_view text) const {
  if (text.empty()) return std::string();
  std::string spaced(addsSpace_ ? 1 : 0, ' ');
  spaced += text;
  HEARTH_ASSIGN(std::string result, replacePrefixes(spaced));
  if (removesSpaces_) result = withSingleSpaces(result);
  return marksSpaces_ ? withMarkedSpaces(result) : result;
}

// The best score of the text up to each byte, from which the pieces are followed back.
Result<std::vector<int32_t>> SentencepieceModel::bestPieces(std::string_view text) const {
  struct End {
    float score = 0;
    std::optional<int32_t> code;  // of the last piece; none where no pieces end here
    size_t begin = 0;             // of it
  };
  std::vector<End> ends(text.size() + 1);
  bool isScored = true;
  for (size_t i = 0; i < text.size(); ++i) {
    if (i > 0 && !ends[i].code) continue;
    const auto offer = [&](size_t end, float score, int32_t code, size_t begin) {
      if (!ends[end].code || ends[end].score < score) ends[end] = {score, code, begin};
    };
    // Unknown bytes in a row are one unknown piece.
    if (unknown_)
      offer(i + 1, ends[i].score + unknownScore_, *unknown_,
            ends[i].code == unknown_ ? ends[i].begin : i);
    pieces_.forEachPrefix(text.substr(i), [&](const base::DoubleArrayTrie::Match& match) {
      if (match.value >= scoreCount_) {
        isScored = false;
        return;
      }
      const auto score = valueAt<float>(scores_ + match.value * sizeof(float));
      offer(i + match.size, ends[i].score + score, static_cast<int32_t>(match.value), i);
    });
  }
  if (!isScored)
    return fail(ErrorCode::kBadData, "Its model has {} scores, fewer than pieces.", scoreCount_);
  std::vector<int32_t> codes;
  if (!ends.back().code) return codes;
  for (size_t end = text.size(); end > 0; end = ends[end].begin) {
    const int32_t code = *ends[end].code;
    const auto shifted = static_cast<uint32_t>(code) + static_cast<uint32_t>(firstCode_);
    codes.push_back(code == unknown_ ? code : static_cast<int32_t>(shifted));
  }
  std::ranges::reverse(codes);
  return codes;
}

Result<std::vector<int32_t>> SentencepieceModel::encode(std::string_view text,
                                                        const Marks& marks) const {
  HEARTH_ASSIGN(const std::string normalized, normalize(text));
  HEARTH_ASSIGN(std::vector<int32_t> codes, bestPieces(normalized));
  if (marks.hasBegin) codes.insert(codes.begin(), begin_);
  if (marks.hasEnd) codes.push_back(end_);
  if (marks.isReversed) std::ranges::reverse(codes);
  return codes;
}

}  // namespace hearth::ops
