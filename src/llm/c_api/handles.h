// SPDX-License-Identifier: Apache-2.0
// The objects behind the opaque handles of hearth_llm.h, and how its functions report errors.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/reported_error.h"
#include "base/c_interface.h"
#include "base/caught.h"
#include "hearth/hearth_llm.h"
#include "llm/generation.h"
#include "llm/open_model.h"
#include "llm/sampler.h"
#include "llm/session.h"
#include "llm/thrown.h"
#include "llm/tool_calls.h"

namespace hearth::llm::c_api {

// What a session's handle and those of its answers share.
struct OpenSession {
  std::shared_ptr<const OpenModel> model;
  std::unique_ptr<Session> session;
  const void* answer = nullptr;  // the one that is being generated
  bool hasPrefixes = false;      // whether the session uses the store, or has tried to

  ~OpenSession() { keep(); }

  // Writes what was computed of a marked beginning. Another process computes it where that fails.
  void keep() {
    base::logged("Keeping the beginning of a text",
                 [&] { static_cast<void>(session->keepPrefix()); });
  }
};

// One answer. Session, sampler and hook live as long as it.
struct OpenAnswer {
  std::shared_ptr<OpenSession> session;
  Sampler sampler;
  std::optional<Generation> generation;
  std::atomic<bool> isCancelled = false;
  std::string text;                          // that was returned last
  std::optional<ToolCallReader> callReader;  // absent: calls are text
  std::deque<ToolCall> calls;                // where callers have pointers into

  // What of a piece of the answer is no call; calls are kept.
  std::string textOf(std::string_view piece) {
    if (!callReader) return std::string(piece);
    std::string rest;
    const auto take = [&](ToolCallReader::Piece read) {
      rest += read.text;
      for (ToolCall& call : read.calls) calls.push_back(std::move(call));
    };
    take(callReader->add(piece));
    if (generation->isEnded()) take(callReader->finish());
    return rest;
  }

  // Whether the session is this answer's alone.
  bool isOpen() const { return session->answer == this; }
  void close() {
    if (!isOpen()) return;
    session->answer = nullptr;
    session->keep();
  }
};

// Runs the body of an API function. Its Status, or the exception that it throws, becomes the return
// value and the error object (null for success).
template <typename Body>
hearth_status guarded(hearth_error** out, Body body) noexcept {
  if (out != nullptr) *out = nullptr;
  const Status status = base::caught([&] { return returned(body); });
  if (status) return HEARTH_OK;
  const auto code = static_cast<hearth_status>(status.error().code());
  return hearth_report_error(code, status.error().toString().c_str(), out);
}

using base::fillSized;
using base::nullArgument;
using base::readSized;

// Fails for flags that a function does not have.
inline Status checkFlags(uint32_t flags, uint32_t known) {
  if ((flags & ~known) == 0) return {};
  return fail(ErrorCode::kBadData, "The flags are {}; this function has {}.", flags, known);
}

// A copy that hearth_string_free frees. Throws std::bad_alloc.
char* copyText(std::string_view text);
// A copy that hearth_llm_tokens_free frees, not null for no tokens either. Throws std::bad_alloc.
int32_t* copyTokens(const std::vector<int32_t>& tokens);

inline StepLimits limitsOf(uint64_t timeoutNs) {
  StepLimits limits;
  // A time-out of centuries is none; adding it would overflow.
  if (timeoutNs != 0 && timeoutNs < uint64_t{1} << 61)
    limits.deadline = std::chrono::steady_clock::now() + std::chrono::nanoseconds(timeoutNs);
  return limits;
}

}  // namespace hearth::llm::c_api

struct hearth_llm_model {
  std::shared_ptr<const hearth::llm::OpenModel> model;
};
struct hearth_llm_session {
  std::shared_ptr<hearth::llm::c_api::OpenSession> open;
};
struct hearth_llm_answer {
  std::shared_ptr<hearth::llm::c_api::OpenAnswer> open;
};
