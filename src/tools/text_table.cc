// SPDX-License-Identifier: Apache-2.0
#include "tools/text_table.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"

namespace hearth::tools {
namespace {

// The number of characters in UTF-8 text: all bytes but continuation bytes.
size_t width(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

}  // namespace

std::string TextTable::toString() const {
  std::vector<size_t> widths(alignment_.size(), 0);
  for (const auto& row : rows_)
    for (size_t i = 0; i < row.size() && i < widths.size(); ++i)
      widths[i] = std::max(widths[i], width(row[i]));

  std::string text;
  const auto addRow = [&](const std::vector<std::string>& row) {
    std::string line;
    for (size_t i = 0; i < row.size() && i < widths.size(); ++i) {
      const std::string padding(widths[i] - width(row[i]), ' ');
      line += "  " + (alignment_[i] == 'r' ? padding + row[i] : row[i] + padding);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  };
  addRow(rows_.front());
  std::vector<std::string> rule;
  for (const size_t columns : widths) rule.emplace_back(columns, '-');
  addRow(rule);
  for (size_t i = 1; i < rows_.size(); ++i) addRow(rows_[i]);
  return text;
}

std::string bytesText(uint64_t bytes) {
  if (bytes < 1024) return base::formatText("{} B", bytes);
  static constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  return base::formatText("{:.{}f} {}", value, value < 100 ? 1 : 0, kUnits[unit]);
}

std::string millisecondsText(double milliseconds) {
  if (milliseconds >= 10000) return base::formatText("{:.1f} s", milliseconds / 1000);
  if (milliseconds >= 100) return base::formatText("{:.0f} ms", milliseconds);
  return base::formatText("{:.{}f} ms", milliseconds,
                          milliseconds < 1    ? 3
                          : milliseconds < 10 ? 2
                                              : 1);
}

std::string bar(double fraction, unsigned width) {
  static constexpr const char* kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  if (!(fraction > 0)) return "";
  const auto eighths = static_cast<unsigned>(std::lround(std::min(fraction, 1.0) * width * 8));
  std::string text;
  for (unsigned i = 0; i < eighths / 8; ++i) text += "█";
  return text + kEighths[eighths % 8];
}

std::string printable(const std::string& text) {
  std::string safe = text;
  for (char& c : safe)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
  return safe;
}

}  // namespace hearth::tools
