// SPDX-License-Identifier: Apache-2.0
// Numbers of JSON between two limits.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "llm/text_automaton.h"

namespace hearth::llm {

struct NumberLimit {
  bool isNegative = false;
  std::string whole = "0";  // digits, no zeros in front
  std::string fraction;     // digits, no zeros behind
  bool isExcluded = false;

  // `number` is finite.
  static NumberLimit of(int64_t number);
  static NumberLimit of(double number);

  bool isZero() const { return whole == "0" && fraction.empty(); }
  // Of the two numbers, whether they are excluded or not.
  std::strong_ordering compare(const NumberLimit& other) const;
};

struct NumberLimits {
  // Of a whole number; numbers with a fraction have so few digits in all that each is another
  // double, so that whoever reads them as such finds them on the same side of a limit.
  static constexpr uint32_t kMaxWholeDigits = 18;
  static constexpr uint32_t kMaxDigits = 15;

  bool isInteger = false;
  std::optional<NumberLimit> least;
  std::optional<NumberLimit> most;
};

// The numbers of JSON, written without an exponent, that lie within the limits. No value where
// there is none.
Result<std::optional<TextAutomaton>> numberAutomaton(const NumberLimits& limits,
                                                     AutomatonBudget* budget);

}  // namespace hearth::llm
