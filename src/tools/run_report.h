// SPDX-License-Identifier: Apache-2.0
// The report of `hearth run` and `hearth bench`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/process_memory.h"
#include "hearth/hearth.hpp"

namespace hearth::tools {

struct RunReport {
  struct Output {
    std::string name;
    std::vector<uint64_t> shape;
    hearth_type type = HEARTH_TYPE_FLOAT32;
    std::string file;  // empty when it was not written
    // Of the real numbers; nullopt if there are none, or not all are finite.
    std::optional<std::pair<double, double>> range = {};
    std::vector<double> first = {};       // some numbers from the begin
    std::vector<std::string> texts = {};  // some strings from the begin, of an output of strings
    bool isShown = false;                 // whether the report shows in another way what it means
  };
  struct Class {
    uint64_t index = 0;
    std::optional<std::string> label;
    double score = 0;
  };
  struct Segment {
    uint64_t index = 0;
    std::optional<std::string> label;
    uint64_t pixels = 0;
  };

  // Something that a detector found; its edges are fractions of the picture.
  struct Box {
    uint64_t index = 0;
    std::optional<std::string> label;
    double score = 0;
    double left = 0, top = 0, right = 0, bottom = 0;
  };
  struct Point {
    double x = 0, y = 0;  // fractions of the picture
    std::optional<double> score;
  };
  // Consecutive moments of a sound with the same best class.
  struct Frames {
    uint64_t first = 0;
    uint64_t count = 0;
    Class best;  // with the best score of these frames
  };

  std::string model;
  std::string part;  // of a container; empty when none was named
  std::string device;
  std::string startJson;  // from the library; prepareMs replaces the time in it
  double prepareMs = 0;
  StartReport start;
  double firstMs = 0;
  double firstResultMs = 0;         // from the end of the preparation to the end of the first run
  std::vector<double> steadyMs;     // one for each repeat
  std::vector<double> processorMs;  // of all threads; one for each repeat
  uint64_t startPeakRssKib = 0;     // read when the model was ready
  uint64_t copiedBytes = 0;         // of inputs and outputs, in the last run
  base::ProcessMemory memory;
  std::vector<Output> outputs;
  std::vector<Class> top;
  std::vector<Segment> segments;
  std::optional<std::vector<Box>> boxes;  // nullopt if the model is no detector
  std::vector<Point> points;
  std::vector<Frames> frames;
  std::vector<std::string> notes;  // sentences about what does not fit
  std::string overlay;             // empty when there is none
};

// One object with the keys of docs/cli.md.
std::string toJson(const RunReport& report);
// Tables for people.
std::string toText(const RunReport& report, bool isBench);

}  // namespace hearth::tools
