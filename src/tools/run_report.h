// SPDX-License-Identifier: Apache-2.0
// The report of `hearth run` and `hearth bench`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hearth/hearth.hpp"
#include "tools/process_memory.h"

namespace hearth::tools {

struct RunReport {
  struct Output {
    std::string name;
    std::vector<uint64_t> shape;
    hearth_type type = HEARTH_TYPE_FLOAT32;
    std::string file;  // empty when it was not written
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
  ProcessMemory memory;
  std::vector<Output> outputs;
  std::vector<Class> top;
  std::vector<Segment> segments;
  std::string overlay;  // empty when there is none
};

// One object with the keys of docs/cli.md.
std::string toJson(const RunReport& report);
// Tables for people.
std::string toText(const RunReport& report, bool isBench);

}  // namespace hearth::tools
