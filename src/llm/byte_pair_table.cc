// SPDX-License-Identifier: Apache-2.0
#include "llm/byte_pair_table.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "llm/table_arrays.h"

namespace hearth::llm {
Status MergeList::add(const Vocabulary& vocabulary, std::string_view left, std::string_view right) {
  if (entries_.size() == kMaxMerges)
    return fail(ErrorCode::kBadData, "The tokenizer has more than {} merges.", kMaxMerges);
  const auto leftToken = vocabulary.find(left);
  const auto rightToken = vocabulary.find(right);
  const auto made = vocabulary.find(std::string(left) + std::string(right));
  if (!leftToken || !rightToken || !made)
    return fail(ErrorCode::kBadData, "Merge {} has a text that is no token.", entries_.size());
  entries_.push_back({*leftToken, *rightToken, {static_cast<uint32_t>(entries_.size()), *made}});
  return {};
}

std::vector<MergeList::Entry> MergeList::sorted() const {
  const auto pairOf = [](const Entry& entry) {
    return std::pair(entry.left, entry.right);
  };
  std::vector<Entry> sorted(entries_.rbegin(), entries_.rend());
  std::ranges::stable_sort(sorted, {}, pairOf);
  const auto twice = std::ranges::unique(sorted, {}, pairOf);
  sorted.erase(twice.begin(), twice.end());
  return sorted;
}

Result<std::vector<uint8_t>> BytePairTable::make(const Vocabulary& vocabulary,
                                                 const MergeList& merges,
                                                 std::string_view description) {
  std::vector<Place> places(vocabulary.size());
  std::vector<std::pair<std::string_view, int32_t>> ids;
  std::string texts;
  for (size_t i = 0; i < places.size(); ++i) {
    const auto id = static_cast<int32_t>(i);
    if (!vocabulary.has(id)) continue;
    const std::string_view text = vocabulary.text(id);
    places[i] = {static_cast<uint32_t>(texts.size()), static_cast<uint32_t>(text.size())};
    texts += text;
    // Of tokens with one text, find() gives the one that the vocabulary does.
    if (!text.empty() && vocabulary.find(text) == id) ids.emplace_back(text, id);
  }
  std::ranges::sort(ids);
  const PieceTrie::Arrays trie = PieceTrie::build(ids);
  const std::vector<MergeList::Entry> entries = merges.sorted();
  std::vector<uint32_t> firstMerges(places.size() + 1);
  std::vector<int32_t> rights;
  std::vector<TokenMerge> results;
  for (const MergeList::Entry& entry : entries) {
    ++firstMerges[static_cast<size_t>(entry.left) + 1];
    rights.push_back(entry.right);
    results.push_back(entry.merge);
  }
  for (size_t i = 0; i < places.size(); ++i) firstMerges[i + 1] += firstMerges[i];
  if (texts.size() + description.size() > kMaxTableBytes)
    return fail(ErrorCode::kBadData, "The texts of the tokenizer have more than {} bytes.",
                kMaxTableBytes);
  const Head head{.magic = kMagic,
                  .tokens = static_cast<uint32_t>(places.size()),
                  .textBytes = static_cast<uint32_t>(texts.size()),
                  .nodes = static_cast<uint32_t>(trie.ids.size()),
                  .merges = static_cast<uint32_t>(entries.size()),
                  .descriptionBytes = static_cast<uint32_t>(description.size())};
  TableWriter writer;
  writer.add(std::span(&head, 1));
  writer.add(std::span<const Place>(places));
  writer.add(texts);
  writer.add(trie);
  writer.add(std::span<const uint32_t>(firstMerges));
  writer.add(std::span<const int32_t>(rights));
  writer.add(std::span<const TokenMerge>(results));
  writer.add(description);
  return writer.take();
}

bool BytePairTable::isTable(std::span<const uint8_t> bytes) {
  return bytes.size() >= kMagic.size() &&
         std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) == 0;
}

Result<BytePairTable> BytePairTable::open(std::span<const uint8_t> bytes,
                                          std::shared_ptr<const void> owner) {
  BytePairTable table;
  table.owner_ = std::move(owner);
  TableReader reader(bytes);
  const auto head = reader.take<Head>(1);
  if (head.empty() || head[0].magic != kMagic)
    return fail(ErrorCode::kBadData, "The table of the tokenizer is of another version.");
  table.places_ = reader.take<Place>(head[0].tokens);
  table.texts_ = reader.takeText(head[0].textBytes);
  table.ids_ = reader.takeTrie(head[0].nodes);
  table.firstMerges_ = reader.take<uint32_t>(size_t{head[0].tokens} + 1);
  table.rights_ = reader.take<int32_t>(head[0].merges);
  table.merges_ = reader.take<TokenMerge>(head[0].merges);
  table.description_ = reader.takeText(head[0].descriptionBytes);
  if (!reader.isWhole())
    return fail(ErrorCode::kBadData, "The table of the tokenizer, of {} bytes, is cut off.",
                bytes.size());
  return table;
}

std::optional<int32_t> BytePairTable::find(std::string_view text) const {
  const int32_t id = ids_.find(text);
  return id < 0 ? std::nullopt : std::optional(id);
}

bool BytePairTable::has(int32_t id) const {
  return id >= 0 && static_cast<size_t>(id) < places_.size() &&
         places_[static_cast<size_t>(id)].size != kNone;
}

std::string_view BytePairTable::text(int32_t id) const {
  if (!has(id)) return {};
  const Place& place = places_[static_cast<size_t>(id)];
  if (place.begin > texts_.size() || place.size > texts_.size() - place.begin) return {};
  return texts_.substr(place.begin, place.size);
}

const TokenMerge* BytePairTable::merge(int32_t left, int32_t right) const {
  if (left < 0 || static_cast<size_t>(left) >= places_.size()) return nullptr;
  const size_t begin = firstMerges_[static_cast<size_t>(left)];
  const size_t end = firstMerges_[static_cast<size_t>(left) + 1];
  if (begin > end || end > rights_.size()) return nullptr;
  const auto rights = rights_.subspan(begin, end - begin);
  const auto found = std::ranges::lower_bound(rights, right);
  if (found == rights.end() || *found != right) return nullptr;
  return &merges_[begin + static_cast<size_t>(found - rights.begin())];
}

}  // namespace hearth::llm
