// SPDX-License-Identifier: Apache-2.0
// Memory domains: tensors that a client has in memory of the library's device.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "drivers/support_library/support_library.h"
#include "graph/model.h"
#include "hal/device.h"

namespace hearth::drivers::support_library {

// One tensor, which has no value until a copy or an execution gives it one. Keeps the models that
// it is for.
struct LibraryMemory {
  uint32_t token = 0;
  uint64_t bytes = 0;
  graph::Dimensions dimensions;
  std::vector<std::shared_ptr<hal::PreparedModel>> models;
  Handle<ANeuralNetworksMemory> handle{nullptr, nullptr};
};

// The tensors of one device, by their tokens. Thread-safe.
class LibraryMemories : public std::enable_shared_from_this<LibraryMemories> {
 public:
  explicit LibraryMemories(std::shared_ptr<const SupportLibrary> library)
      : library_(std::move(library)) {}

  // A tensor for these roles, all of models of this library, until the result is destroyed. Errors:
  // kUnsupported where the library has no memory of its own, a role is of another device's model,
  // or the size is not known; kBadData for roles and dimensions that do not fit each other; those
  // of the library.
  Result<std::unique_ptr<hal::Buffer>> allocate(const hal::BufferDescription& description,
                                                const std::vector<hal::BufferRole>& roles);

  // Null for a token of no tensor. No two tensors have had the same one.
  std::shared_ptr<const LibraryMemory> find(uint32_t token);
  void remove(uint32_t token);

  const SupportLibrary& library() const { return *library_; }

 private:
  const std::shared_ptr<const SupportLibrary> library_;
  base::Mutex mutex_;
  uint32_t lastToken_ = 0;
  std::map<uint32_t, std::shared_ptr<const LibraryMemory>> memories_;
};

}  // namespace hearth::drivers::support_library
