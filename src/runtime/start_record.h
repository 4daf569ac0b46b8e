// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "hal/device.h"

namespace hearth::runtime {

// How one compilation started, for people and their programs. Value type.
struct StartRecord {
  std::string model;  // path or name, may be empty
  std::string device;
  double prepareMs = 0;
  std::string cache;  // what became of the client's cache files: "hit", why not, or empty: none
  hal::StartReport report;

  // Sets the report, and adds to `cache` why the driver leaves nothing in the client's files.
  void setReport(hal::StartReport made);
};

// One JSON object with the keys that docs/cli.md lists for `start`; `indent` as nlohmann's dump.
std::string startJson(const StartRecord& record, int indent);

// Whether HEARTH_REPORT names a file.
bool isReportWanted();

// Adds a line of JSON with time, process, model, device and `start` to the file that HEARTH_REPORT
// names, if it names one; %p in the name becomes the process id. Lines of several processes do not
// mix. A file that cannot be written is logged and nothing else.
void appendToReport(const StartRecord& record);

}  // namespace hearth::runtime
