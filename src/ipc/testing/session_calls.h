// SPDX-License-Identifier: Apache-2.0
// Calls as a client makes them that has nothing but a session with a host of a FakeDevice.
#pragma once

#include <cstdint>

#include "base/descriptor.h"
#include "base/result.h"
#include "ipc/session.h"

namespace hearth::ipc {

inline constexpr uint64_t kPage = 4096;

// Memory of a page that can be shortened.
base::Descriptor pageOfMemory();

// The object of a reply; 0 after a failed expectation.
uint64_t objectOf(const Result<Frame>& frame);
// The error that a call is answered with; kIncomplete when there is none.
Error errorOf(const Result<Frame>& frame);

// Prepares a model that adds two tensors of two floats, and returns its name.
uint64_t prepare(Session& session);
// Writes a request for an execution of it over one memory, in which all its arguments are.
schema::ExecutionRequest::Builder executionOf(Outgoing& outgoing, uint64_t model, uint64_t length);
// Creates such an execution over a page of a file. The inputs are its first floats, and so is the
// output.
Result<Frame> execute(Session& session, uint64_t model, const base::Descriptor& file);

}  // namespace hearth::ipc
