// SPDX-License-Identifier: Apache-2.0
// The objects behind the opaque handles of hearth.h, and how its functions report errors.
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
  std::string part;  // as named; mostly empty
};

namespace hearth::api {

// An input or output; owns the memory that a hearth_tensor_info points to.
struct Tensor {
  std::string name;
  hearth_type type = HEARTH_TYPE_FLOAT32;
  std::vector<uint32_t> dimensions;
  std::vector<uint32_t> defaultDimensions;
  float scale = 0;
  int32_t zeroPoint = 0;
  uint64_t byteSize = 0;
};

// A compilation as its clients see it. Its handle and its executions share it. Thread-safe.
struct CompiledSignature {
  std::shared_ptr<const runtime::Compilation> compilation;
  std::vector<Tensor> inputs;
  std::vector<Tensor> outputs;
  std::string device;

  // The start report with the driver's part; the first call waits until the start is over.
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

// Returns the error's code and, unless `out` is null, stores an error object in *out.
hearth_status report(const Error& error, hearth_error** out) noexcept;
// A kUnexpectedNull error that names the argument.
std::unexpected<Error> nullArgument(const char* name);

// Runs the body of an API function. Its Status, or the exception that it throws, becomes the return
// value and the error object (null for success).
template <typename Body>
hearth_status guarded(hearth_error** out, Body body) noexcept {
  if (out != nullptr) *out = nullptr;
  const Status status = base::caught(body);
  return status ? HEARTH_OK : report(status.error(), out);
}

// Fills a structure that begins with the caller's `size`: writes the bytes that both sides know and
// sets `size` to their number. kBadData for a size that was not set.
template <typename Info>
Status fillSized(Info* to, Info from) {
  if (to == nullptr) return nullArgument("info");
  if (to->size < sizeof(to->size))
    return fail(ErrorCode::kBadData, "The structure's size is {}; it is not set.", to->size);
  from.size = std::min(to->size, sizeof(Info));
  std::memcpy(to, &from, from.size);
  return {};
}

// An upper bound of the sizes of all versions of all structures: a larger `size` was not set.
inline constexpr size_t kMostStructureBytes = 4096;

// Reads the bytes that both sides know of such a structure into `to`, which holds the default
// values. Bytes that only the caller knows must be zero. `least` is the size of the first version.
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

// The type in hearth.h. kUnsupported for types that no tensor of a model file has.
Result<hearth_type> publicType(graph::OperandType type);

}  // namespace hearth::api
