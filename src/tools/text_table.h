// SPDX-License-Identifier: Apache-2.0
// Text for people: tables, sizes, times.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hearth::tools {

// Rows of cells in aligned columns, indented by two spaces. Value type.
class TextTable {
 public:
  // `alignment` has one character for each column: 'l' or 'r'.
  TextTable(std::vector<std::string> header, std::string alignment)
      : rows_{std::move(header)}, alignment_(std::move(alignment)) {}

  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  bool empty() const { return rows_.size() == 1; }
  // With a rule under the header; every line ends with a line feed.
  std::string toString() const;

 private:
  std::vector<std::vector<std::string>> rows_;
  std::string alignment_;
};

// "12.3 MiB"
std::string bytesText(uint64_t bytes);
// "0.123 ms", "12.3 ms", "1.23 s"
std::string millisecondsText(double milliseconds);
// A bar of up to `width` cells for a fraction between 0 and 1, in eighths of a cell.
std::string bar(double fraction, unsigned width);
// Text from a file, safe for a terminal: control characters become '?'.
std::string printable(const std::string& text);

}  // namespace hearth::tools
