// SPDX-License-Identifier: Apache-2.0
#include "llm/number_automaton.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

namespace hearth::llm {
namespace {

// The most digits of a double that is written without an exponent, and more.
constexpr size_t kMaxDoubleText = 1200;

NumberLimit limitOfText(std::string_view text) {
  NumberLimit limit;
  limit.isNegative = text.starts_with('-');
  if (limit.isNegative) text.remove_prefix(1);
  const size_t point = std::min(text.find('.'), text.size());
  limit.whole = text.substr(0, point);
  if (point < text.size()) limit.fraction = text.substr(point + 1);
  limit.fraction.erase(limit.fraction.find_last_not_of('0') + 1);
  if (limit.isZero()) limit.isNegative = false;
  return limit;
}

std::strong_ordering compareMagnitudes(const NumberLimit& one, const NumberLimit& other) {
  return std::tuple(one.whole.size(), std::string_view(one.whole),
                    std::string_view(one.fraction)) <=>
         std::tuple(other.whole.size(), std::string_view(other.whole),
                    std::string_view(other.fraction));
}

// Numbers without a sign between two limits.
struct Magnitudes {
  const NumberLimit* least = nullptr;  // null = none
  const NumberLimit* most = nullptr;
};

// Where in a number a text is, if its whole part has `digits` digits.
struct Place {
  bool isNegative = false;
  bool isFraction = false;
  uint32_t digits = 0;
  uint32_t read = 0;       // of the whole part, or of the fraction
  bool isAtLeast = false;  // what was read is the beginning of the limit
  bool isAtMost = false;

  auto operator<=>(const Place&) const = default;
};

// Follows the possible numbers of digits of the whole part side by side.
class NumberStates {
 public:
  NumberStates(const NumberLimits& limits, AutomatonBudget* budget)
      : isInteger_(limits.isInteger),
        maxDigits_(limits.isInteger ? NumberLimits::kMaxWholeDigits : NumberLimits::kMaxDigits),
        budget_(*budget) {
    const auto pointer = [](const auto& limit) {
      return limit ? &*limit : nullptr;
    };
    const NumberLimit* const least = pointer(limits.least);
    const NumberLimit* const most = pointer(limits.most);
    if (most == nullptr || !most->isNegative)
      positive_ = Magnitudes{least != nullptr && !least->isNegative ? least : nullptr, most};
    if (least == nullptr || least->isNegative)
      negative_ = Magnitudes{
          most != nullptr && (most->isNegative || most->isZero()) ? most : nullptr, least};
  }

  Result<std::optional<TextAutomaton>> make() {
    HEARTH_ASSIGN(const uint32_t begin, stateOf(beginning(false)));
    if (negative_) {
      HEARTH_ASSIGN(const uint32_t minus, stateOf(beginning(true)));
      rows_[begin].edges.push_back({'-', '-', minus});
    }
    for (uint32_t i = 0; i < states_.size(); ++i) {
      HEARTH_TRY(budget_.spendSteps(states_[i].size() * 11));
      for (const char byte : std::string_view(".0123456789")) {
        std::vector<Place> behind;
        for (const Place& place : states_[i])
          if (const auto next = step(place, byte)) behind.push_back(*next);
        if (behind.empty()) continue;
        HEARTH_ASSIGN(const uint32_t target, stateOf(std::move(behind)));
        rows_[i].edges.push_back({static_cast<uint8_t>(byte), static_cast<uint8_t>(byte), target});
      }
    }
    return TextAutomaton::of(std::move(rows_), begin);
  }

 private:
  const Magnitudes& magnitudes(bool isNegative) const {
    return isNegative ? *negative_ : *positive_;
  }

  std::vector<Place> beginning(bool isNegative) const {
    std::vector<Place> places;
    if (!(isNegative ? negative_ : positive_)) return places;
    const auto [least, most] = magnitudes(isNegative);
    for (uint32_t digits = 1; digits <= maxDigits_; ++digits) {
      if (least != nullptr && digits < least->whole.size()) continue;
      if (most != nullptr && digits > most->whole.size()) continue;
      places.push_back({.isNegative = isNegative,
                        .digits = digits,
                        .isAtLeast = least != nullptr && digits == least->whole.size(),
                        .isAtMost = most != nullptr && digits == most->whole.size()});
    }
    return places;
  }

  bool isWhole(const Place& place) const { return place.isFraction || place.read == place.digits; }

  std::optional<Place> step(Place place, char byte) const {
    if (byte == '.') {
      if (isInteger_ || place.isFraction || place.read != place.digits ||
          place.digits == maxDigits_)
        return std::nullopt;
      place.isFraction = true;
      place.read = 0;
      return place;
    }
    if (place.isFraction ? place.digits + place.read == maxDigits_ : place.read == place.digits)
      return std::nullopt;
    if (!place.isFraction && place.read == 0 && byte == '0' && place.digits > 1)
      return std::nullopt;
    const auto [least, most] = magnitudes(place.isNegative);
    const auto digitOf = [&](const NumberLimit& limit) {
      const std::string& digits = place.isFraction ? limit.fraction : limit.whole;
      return place.read < digits.size() ? digits[place.read] : '0';
    };
    if (place.isAtLeast) {
      if (byte < digitOf(*least)) return std::nullopt;
      place.isAtLeast = byte == digitOf(*least);
    }
    if (place.isAtMost) {
      if (byte > digitOf(*most)) return std::nullopt;
      place.isAtMost = byte == digitOf(*most);
    }
    ++place.read;
    return place;
  }

  // Whether the number may end here.
  bool isEnd(const Place& place) const {
    if (!isWhole(place) || (place.isFraction && place.read == 0)) return false;
    const auto [least, most] = magnitudes(place.isNegative);
    const uint32_t read = place.isFraction ? place.read : 0;
    // The rest of a limit's fraction is not zero, where there is one.
    if (place.isAtLeast && (read < least->fraction.size() || least->isExcluded)) return false;
    return !place.isAtMost || read < most->fraction.size() || !most->isExcluded;
  }

  Result<uint32_t> stateOf(std::vector<Place> places) {
    std::ranges::sort(places);
    const auto [found, isNew] = ids_.try_emplace(places, static_cast<uint32_t>(states_.size()));
    if (!isNew) return found->second;
    HEARTH_TRY(budget_.spendStates(1));
    rows_.push_back(
        {.isEnd = std::ranges::any_of(places, [&](const Place& place) { return isEnd(place); })});
    states_.push_back(std::move(places));
    return found->second;
  }

  const bool isInteger_;
  const uint32_t maxDigits_;
  AutomatonBudget& budget_;
  std::optional<Magnitudes> positive_;  // absent: there are none
  std::optional<Magnitudes> negative_;
  std::vector<std::vector<Place>> states_;
  std::map<std::vector<Place>, uint32_t> ids_;
  std::vector<TextAutomaton::Row> rows_;
};

}  // namespace

NumberLimit NumberLimit::of(int64_t number) {
  return limitOfText(std::to_string(number));
}

NumberLimit NumberLimit::of(double number) {
  std::string text(kMaxDoubleText, '\0');
  const auto written =
      std::to_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  text.resize(static_cast<size_t>(written.ptr - text.data()));
  return limitOfText(text);
}

std::strong_ordering NumberLimit::compare(const NumberLimit& other) const {
  if (isNegative != other.isNegative)
    return isNegative ? std::strong_ordering::less : std::strong_ordering::greater;
  return isNegative ? compareMagnitudes(other, *this) : compareMagnitudes(*this, other);
}

Result<std::optional<TextAutomaton>> numberAutomaton(const NumberLimits& limits,
                                                     AutomatonBudget* budget) {
  return NumberStates(limits, budget).make();
}

}  // namespace hearth::llm
