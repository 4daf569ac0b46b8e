// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/result.h"
#include "frontends/nnapi/objects/devices.h"
#include "frontends/nnapi/objects/model.h"
#include "runtime/compilation.h"

namespace hearth::nnapi {

// Holds the options of a compilation until finish(), and then the runtime's compilation, which
// executions, bursts and memory roles share. All changes after finish() fail with kBadState. Used
// by one thread at a time until it is finished.
class Compilation {
 public:
  // An empty `devices` means all, and the reference runs what fails on the others.
  Compilation(const Model& model, DeviceList devices);

  Status setPreference(int32_t preference);
  Status setPriority(int32_t priority);
  // Nanoseconds, 0 = no limit.
  Status setTimeout(uint64_t duration);
  // `token` has BYTE_SIZE_OF_CACHE_TOKEN bytes. The last call wins.
  Status setCaching(const char* directory, const uint8_t* token);
  // Caches in the client's open files, whose descriptors are duplicated. They serve only a model
  // that one device takes as a whole.
  Status setCachingByFiles(std::span<const int> modelFiles, std::span<const int> dataFiles,
                           const uint8_t* token);
  // Always kBadData: no device knows an attribute.
  Status addAttribute(const char* extension, uint16_t code);
  Status finish();

  // kBadState when the compilation is not finished or failed.
  Result<std::shared_ptr<const runtime::Compilation>> compiled() const;

 private:
  Status requireOpen() const;

  const std::shared_ptr<const graph::Model> model_;
  const bool hasUnknownOperation_;
  runtime::CompilationOptions options_;
  uint64_t timeout_ = 0;
  bool isFinished_ = false;
  std::shared_ptr<const runtime::Compilation> compiled_;
};

}  // namespace hearth::nnapi

struct ANeuralNetworksCompilation final : hearth::nnapi::Compilation {
  using Compilation::Compilation;
};
