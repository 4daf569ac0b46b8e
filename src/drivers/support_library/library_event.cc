// SPDX-License-Identifier: Apache-2.0
#include "drivers/support_library/library_event.h"

#include <linux/sync_file.h>
#include <sys/ioctl.h>

#include <utility>
#include <vector>

namespace hearth::drivers::support_library {

bool hasEvents(const NnApiSLDriverImplFL5& functions) {
  return functions.ANeuralNetworksEvent_createFromSyncFenceFd != nullptr &&
         functions.ANeuralNetworksEvent_free != nullptr &&
         functions.ANeuralNetworksEvent_getSyncFenceFd != nullptr &&
         functions.ANeuralNetworksEvent_wait != nullptr &&
         functions.ANeuralNetworksExecution_startComputeWithDependencies != nullptr;
}

bool isSyncFile(const base::Descriptor& fence) {
  sync_file_info info{};
  return ::ioctl(fence.get(), SYNC_IOC_FILE_INFO, &info) == 0;
}

Result<LibraryEvent> LibraryEvent::start(const NnApiSLDriverImplFL5& functions,
                                         ANeuralNetworksExecution* execution,
                                         std::span<const base::Descriptor> fences) {
  Handles events;
  std::vector<const ANeuralNetworksEvent*> dependencies;
  for (const base::Descriptor& fence : fences) {
    // The library duplicates the descriptor.
    HEARTH_ASSIGN(auto event, makeObject<ANeuralNetworksEvent>(
                                  "ANeuralNetworksEvent_createFromSyncFenceFd",
                                  functions.ANeuralNetworksEvent_createFromSyncFenceFd,
                                  functions.ANeuralNetworksEvent_free, fence.get()));
    dependencies.push_back(event.get());
    events.push_back(std::move(event));
  }
  constexpr uint64_t kNoLimit = 0;  // but that of ANeuralNetworksExecution_setTimeout
  HEARTH_ASSIGN(auto started,
                makeObject<ANeuralNetworksEvent>(
                    "ANeuralNetworksExecution_startComputeWithDependencies",
                    functions.ANeuralNetworksExecution_startComputeWithDependencies,
                    functions.ANeuralNetworksEvent_free, execution,
                    static_cast<const ANeuralNetworksEvent* const*>(dependencies.data()),
                    static_cast<uint32_t>(dependencies.size()), kNoLimit));
  return LibraryEvent(functions, std::move(events), std::move(started));
}

base::Descriptor LibraryEvent::fence() const {
  // NNAPI answers BAD_DATA for an event without a sync file.
  int fence = -1;
  if (functions_->ANeuralNetworksEvent_getSyncFenceFd(event_.get(), &fence) !=
      ANEURALNETWORKS_NO_ERROR)
    return {};
  return base::Descriptor(fence);
}

Status LibraryEvent::wait() const {
  return asStatus(functions_->ANeuralNetworksEvent_wait(event_.get()), "ANeuralNetworksEvent_wait");
}

}  // namespace hearth::drivers::support_library
