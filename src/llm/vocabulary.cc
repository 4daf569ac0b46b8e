// SPDX-License-Identifier: Apache-2.0
#include "llm/vocabulary.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <utility>

namespace hearth::llm {
namespace {

constexpr size_t kMaxTextBytes = size_t{1} << 28;
constexpr size_t kFirstTextSlots = 1024;

uint64_t secret() {
  static const uint64_t number = [] {
    std::random_device device;
    return uint64_t{device()} << 32 | device();
  }();
  return number;
}

uint64_t mix(uint64_t number) {
  number *= 0x9E3779B97F4A7C15;
  number ^= number >> 32;
  number *= 0xD6E8FEB86659FD93;
  return number ^ number >> 29;
}

// Hash of a text under a secret of the process, so that nobody can prepare tokens that all meet at
// one place of a table.
uint64_t secretHash(std::string_view text) {
  uint64_t hash = secret() ^ text.size();
  while (!text.empty()) {
    uint64_t piece = 0;
    const size_t size = std::min(text.size(), sizeof piece);
    std::memcpy(&piece, text.data(), size);
    hash = mix(hash ^ piece);
    text.remove_prefix(size);
  }
  return mix(hash);
}

}  // namespace

size_t Vocabulary::slotOf(std::string_view text) const {
  size_t slot = secretHash(text) & (slots_.size() - 1);
  while (slots_[slot] >= 0 && this->text(slots_[slot]) != text)
    slot = (slot + 1) & (slots_.size() - 1);
  return slot;
}

void Vocabulary::grow() {
  const std::vector<int32_t> old = std::move(slots_);
  slots_.assign(old.empty() ? kFirstTextSlots : 2 * old.size(), -1);
  for (const int32_t id : old)
    if (id >= 0) slots_[slotOf(text(id))] = id;
}

Status Vocabulary::add(std::string_view text, int64_t id) {
  if (id < 0 || id >= static_cast<int64_t>(kMaxTokens))
    return fail(ErrorCode::kBadData, "A token has the number {}; numbers are at most {}.", id,
                kMaxTokens - 1);
  if (text.size() > kMaxTokenBytes || texts_.size() + text.size() > kMaxTextBytes)
    return fail(ErrorCode::kBadData, "Token {} has a text of {} bytes; at most {} are read.", id,
                text.size(), kMaxTokenBytes);
  const auto number = static_cast<int32_t>(id);
  if (has(number)) {
    if (this->text(number) == text) return {};
    return fail(ErrorCode::kBadData, "Two tokens have the number {}.", id);
  }
  if (static_cast<size_t>(id) >= places_.size()) places_.resize(static_cast<size_t>(id) + 1);
  places_[static_cast<size_t>(id)] = {static_cast<uint32_t>(texts_.size()),
                                      static_cast<uint32_t>(text.size())};
  texts_.append(text);
  if (2 * ++count_ > slots_.size()) grow();
  int32_t& slot = slots_[slotOf(text)];
  if (slot < 0) slot = number;
  return {};
}

std::optional<int32_t> Vocabulary::find(std::string_view text) const {
  if (slots_.empty()) return std::nullopt;
  const int32_t id = slots_[slotOf(text)];
  if (id < 0) return std::nullopt;
  return id;
}

bool Vocabulary::has(int32_t id) const {
  return id >= 0 && static_cast<size_t>(id) < places_.size() &&
         places_[static_cast<size_t>(id)].size != kNone;
}

std::string_view Vocabulary::text(int32_t id) const {
  if (!has(id)) return {};
  const Place& place = places_[static_cast<size_t>(id)];
  return std::string_view(texts_).substr(place.begin, place.size);
}

}  // namespace hearth::llm
