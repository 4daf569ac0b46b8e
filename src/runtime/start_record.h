// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "hal/device.h"

namespace hearth::runtime {

// How one compilation started. Value type.
struct StartRecord {
  std::string model;  // path or name, may be empty
  std::string part;   // of a container, as the client named it; mostly empty
  std::string device;
  double prepareMs = 0;
  std::string cache;   // "hit", or why the client's cache files were not used; empty = no caching
  std::string choice;  // PartitionedModel::reason
  hal::StartReport report;

  // Sets the report, and adds to `cache` why the driver saves nothing in the client's files.
  void setReport(hal::StartReport made);
};

// One JSON object with the keys that docs/cli.md lists for `start`; `indent` as nlohmann's dump.
std::string startJson(const StartRecord& record, int indent);

// Whether HEARTH_REPORT names a file.
bool isReportWanted();

// Appends a line of JSON with time, process, model, device and `start` to the file that
// HEARTH_REPORT names, if set; %p in the name becomes the process id. Lines of several processes do
// not mix. A failure to write is only logged.
void appendToReport(const StartRecord& record);

}  // namespace hearth::runtime
