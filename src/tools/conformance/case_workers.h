// SPDX-License-Identifier: Apache-2.0
// Runs cases in processes of their own, so that a case which crashes or hangs harms no other.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "tools/conformance/case_run.h"
#include "tools/conformance/devices.h"
#include "tools/conformance/nntv_file.h"

namespace hearth::conformance {

struct WorkerOptions {
  unsigned processes = 2;
  unsigned chunkSize = 100;      // cases for each process
  unsigned timeoutSeconds = 60;  // for one case
};

// One of the cases to run.
struct CaseTask {
  const NntvFile* file = nullptr;
  size_t index = 0;
};

// Returns results in the order of the tasks. A case fails when its process dies or it exceeds its
// time. `onProgress` gets the number of finished cases; may be empty. The calling process must have
// no other threads. kIo when no process can be started.
Result<std::vector<CaseResult>> runInWorkers(const DeviceFactory& device,
                                             const std::vector<CaseTask>& tasks,
                                             const WorkerOptions& options,
                                             const std::function<void(size_t)>& onProgress);

}  // namespace hearth::conformance
