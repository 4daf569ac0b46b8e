// SPDX-License-Identifier: Apache-2.0
// What the opaque handles of hearth.h are, and how its functions report errors.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "base/caught.h"
#include "base/result.h"
#include "frontends/tflite/model_file.h"
#include "hearth/hearth.h"
#include "runtime/compilation.h"
#include "runtime/event.h"
#include "runtime/execution.h"
#include "runtime/start_record.h"

struct hearth_error {
  hearth_status code;
  std::string message;
};

struct hearth_model {
  std::shared_ptr<const hearth::tflite::ModelFile> file;
  std::vector<std::string> signatureKeys;
  double loadMs = 0;
  std::string path;  // empty for a model in memory
};

namespace hearth::api {

// An input or output with storage for what hearth_tensor_info points to.
struct Tensor {
  std::string name;
  hearth_type type = HEARTH_TYPE_FLOAT32;
  std::vector<uint32_t> dimensions;
  std::vector<uint32_t> defaultDimensions;
  float scale = 0;
  int32_t zeroPoint = 0;
  uint64_t byteSize = 0;
};

// A compilation as its clients see it; shared by its handle and its executions.
struct CompiledSignature {
  std::shared_ptr<const runtime::Compilation> compilation;
  std::vector<Tensor> inputs;
  std::vector<Tensor> outputs;
  std::string device;

  // How it started; waits until it has.
  const runtime::StartRecord& start() const;

  runtime::StartRecord startSoFar;  // without the driver's report

 private:
  mutable std::once_flag startOnce_;
  mutable runtime::StartRecord start_;
};

}  // namespace hearth::api

struct hearth_compilation {
  std::shared_ptr<const hearth::api::CompiledSignature> signature;
};

struct hearth_execution {
  std::shared_ptr<const hearth::api::CompiledSignature> signature;
  std::shared_ptr<hearth::runtime::Execution> execution;
};

struct hearth_event {
  std::shared_ptr<hearth::runtime::Event> event;
};

namespace hearth::api {

// Hands the error to the caller, who may not want it.
hearth_status report(const Error& error, hearth_error** out) noexcept;
// For kUnexpectedNull.
std::unexpected<Error> nullArgument(const char* name);

// Runs the body of an API function: its Status becomes the return value and the error object (null
// for success), and no exception gets past here.
template <typename Body>
hearth_status guarded(hearth_error** out, Body body) noexcept {
  if (out != nullptr) *out = nullptr;
  const Status status = base::caught(body);
  return status ? HEARTH_OK : report(status.error(), out);
}

// Fills a structure whose first member is its caller's size: as much as both sides know, which its
// size then says.
template <typename Info>
Status fillSized(Info* to, Info from) {
  if (to == nullptr) return nullArgument("info");
  if (to->size < sizeof(to->size))
    return fail(ErrorCode::kBadData, "The structure's size is {}; it is not set.", to->size);
  from.size = std::min(to->size, sizeof(Info));
  std::memcpy(to, &from, from.size);
  return {};
}

// No structure of any version is larger, so that a size which nobody has set is not believed.
inline constexpr size_t kMostStructureBytes = 4096;

// Takes what both sides know of such a structure; where the caller knows more, it must ask for
// nothing there. `least` bytes were there in the first version. `to` has the standard values.
template <typename Info>
Status readSized(const Info& from, size_t least, const char* what, Info* to) {
  if (from.size < least)
    return fail(ErrorCode::kBadData, "The {} have size {}; the least is {}.", what, from.size,
                least);
  if (from.size > kMostStructureBytes)
    return fail(ErrorCode::kBadData, "The {} have size {}, above the most, {}; it is not set.",
                what, from.size, kMostStructureBytes);
  const auto* const bytes = reinterpret_cast<const uint8_t*>(&from);
  const size_t known = std::min(from.size, sizeof(Info));
  if (std::any_of(bytes + known, bytes + from.size, [](uint8_t byte) { return byte != 0; }))
    return fail(ErrorCode::kBadData,
                "The {} have size {} and ask for something behind byte {}, of which this library "
                "does not know.",
                what, from.size, known);
  std::memcpy(to, bytes, known);
  to->size = sizeof(Info);
  return {};
}

inline double millisecondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
      .count();
}

inline base::Deadline deadlineAfter(uint64_t timeoutNs) {
  return timeoutNs == 0 ? base::Deadline() : base::Deadline::after(timeoutNs);
}

// A copy that hearth_string_free frees. Throws std::bad_alloc.
char* copyString(const std::string& text);

// kUnsupported for types that no tensor of a model file has.
Result<hearth_type> publicType(graph::OperandType type);

}  // namespace hearth::api
