// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "hearth/hearth.hpp"
#include "tools/media/array.h"

namespace hearth::tools {

// Names of classes, one a line.
class Labels {
 public:
  Labels() = default;
  explicit Labels(std::vector<std::string> names) : names_(std::move(names)) {}
  // kNotFound, kIo; kBadData above 16 MiB.
  static Result<Labels> read(const std::string& path);
  static Labels parse(const std::string& text);

  // The name of a class of a model with `classCount` classes; empty if it has none. A list with one
  // name more than classes begins with a background class that the model lacks, and is shifted by
  // one.
  std::string name(uint64_t index, uint64_t classCount) const;
  // The name of a class that a detector found. A list that begins with "???" or "background" is
  // shifted by one: detectors do not find the background.
  std::string detectedName(uint64_t index) const;
  // What is wrong with the list for a model with `classCount` classes, in a sentence; else empty.
  std::string misfit(uint64_t classCount) const;
  bool empty() const { return names_.empty(); }

 private:
  std::vector<std::string> names_;
};

struct ScoredClass {
  uint64_t index = 0;
  double score = 0;  // a real number, dequantised if the output is quantised
};

// Whether an output can be one score for each of several classes: [N], [1,N] or [1,1,1,N] with N of
// at least 2; with `isLenient`, any shape with one dimension above 1.
bool isClassification(const Array& output, bool isLenient);

// The `count` classes with the best scores, best first; of equal scores the smaller index first,
// NaN last.
std::vector<ScoredClass> topClasses(const std::vector<double>& scores, size_t count);
std::vector<ScoredClass> topClasses(const Array& output, const TensorInfo& tensor, size_t count);

}  // namespace hearth::tools
