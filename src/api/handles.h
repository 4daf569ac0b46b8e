// SPDX-License-Identifier: Apache-2.0
// The objects behind the opaque handles of hearth.h, and how its functions report errors.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "base/c_interface.h"
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

namespace hearth::api {

// The value of an input of strings.
struct InputStrings {
  memory::StringScope scope;
  std::vector<memory::StringHandle> elements;
};

}  // namespace hearth::api

struct hearth_execution {
  std::shared_ptr<const hearth::api::CompiledSignature> signature;
  std::shared_ptr<hearth::runtime::Execution> execution;
  // By input; null for those of other types. Outlives the execution's arguments.
  std::vector<std::unique_ptr<hearth::api::InputStrings>> inputStrings = {};
  bool isPaddingPromised = false;  // of memory that is bound from now on
};

struct hearth_event {
  std::shared_ptr<hearth::runtime::Event> event;
};

namespace hearth::api {

// Returns the error's code and, unless `out` is null, stores an error object in *out.
hearth_status report(const Error& error, hearth_error** out) noexcept;

// Runs the body of an API function. Its Status, or the exception that it throws, becomes the return
// value and the error object (null for success).
template <typename Body>
hearth_status guarded(hearth_error** out, Body body) noexcept {
  if (out != nullptr) *out = nullptr;
  const Status status = base::caught(body);
  return status ? HEARTH_OK : report(status.error(), out);
}

using base::fillSized;
using base::nullArgument;
using base::readSized;

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
