// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "base/result.h"
#include "drivers/support_library/support_library.h"

namespace hearth::drivers::support_library {

// Whether the library has all functions that LibraryEvent calls, which libraries may lack.
bool hasEvents(const NnApiSLDriverImplFL5& functions);

// Whether the descriptor is a sync file of the kernel. Those are signalled in a bounded time, as
// the kernel demands of all devices; whoever waits for one is not kept for ever.
bool isSyncFile(const base::Descriptor& fence);

// The end of a computation that a library has started. Move-only; used by one thread at a time.
class LibraryEvent {
 public:
  // Starts a computation that begins once all of `fences`, sync files, are signalled. Errors are
  // those of the library, which has then started nothing.
  static Result<LibraryEvent> start(const NnApiSLDriverImplFL5& functions,
                                    ANeuralNetworksExecution* execution,
                                    std::span<const base::Descriptor> fences);

  // A sync file that is signalled at the end; invalid where the library gives none.
  base::Descriptor fence() const;
  // Waits for the end, and returns how the computation went.
  Status wait() const;

 private:
  using Handles = std::vector<Handle<ANeuralNetworksEvent>>;

  LibraryEvent(const NnApiSLDriverImplFL5& functions, Handles fences,
               Handle<ANeuralNetworksEvent> event)
      : functions_(&functions), fences_(std::move(fences)), event_(std::move(event)) {}

  const NnApiSLDriverImplFL5* functions_;
  Handles fences_;  // kept until the end, since a library may wait for one when it frees it
  Handle<ANeuralNetworksEvent> event_;
};

}  // namespace hearth::drivers::support_library
