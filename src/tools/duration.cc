// SPDX-License-Identifier: Apache-2.0
#include "tools/duration.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/env.h"
#include "base/format.h"

namespace hearth::tools {

using std::chrono::seconds;

Result<seconds> parseDuration(std::string_view name, std::string_view text) {
  constexpr std::pair<char, int64_t> kUnits[] = {
      {'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86'400}, {'w', 604'800}};
  constexpr int64_t kMost = int64_t{1000} * 365 * 86'400;
  const auto* unit = std::ranges::find(kUnits, text.empty() ? '\0' : text.back(),
                                       &std::pair<char, int64_t>::first);
  const std::string_view digits = text.substr(0, text.empty() ? 0 : text.size() - 1);
  if (unit == std::end(kUnits) || digits.empty() ||
      !std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; }))
    return fail(ErrorCode::kBadData,
                "{} is \"{}\", which is no time (digits, then s, m, h, d or w).", name, text);
  HEARTH_ASSIGN(const int64_t count, base::parseInteger(name, digits, 0, kMost / unit->second));
  return seconds(count * unit->second);
}

std::string ageText(std::chrono::nanoseconds age) {
  const int64_t whole = std::max<int64_t>(0, std::chrono::duration_cast<seconds>(age).count());
  if (whole < 120) return base::formatText("{} s", whole);
  if (whole < 7200) return base::formatText("{} min", whole / 60);
  if (whole < 172'800) return base::formatText("{} h", whole / 3600);
  return base::formatText("{} d", whole / 86'400);
}

}  // namespace hearth::tools
