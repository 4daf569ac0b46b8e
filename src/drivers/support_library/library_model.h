// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "drivers/support_library/support_library.h"
#include "graph/model.h"
#include "memory/pool.h"

namespace hearth::drivers::support_library {

// The library's memory of a pool's descriptor. Arguments and constants lie in it at `shift` and
// more, since a library may want to map whole pages.
struct PoolMemory {
  Handle<ANeuralNetworksMemory> memory;
  uint64_t shift = 0;
};

// kBadData for a pool without descriptor; else what the library answers.
Result<PoolMemory> memoryOfPool(const SupportLibrary& library, const memory::Pool& pool);

// A model of a support library. Keeps what its constants lie in. Immutable; thread-safe.
class LibraryModel {
 public:
  // Makes and finishes the library's model. `refusals` gets an entry for each operation of the main
  // subgraph: why the library does not take it, empty for the others. kUnsupported where it refuses
  // one. The model has only operations that can be expressed (expressible.h).
  static Result<std::shared_ptr<const LibraryModel>> make(
      std::shared_ptr<const SupportLibrary> library, std::shared_ptr<const graph::Model> source,
      std::vector<std::string>* refusals);

  ~LibraryModel();
  LibraryModel(const LibraryModel&) = delete;
  LibraryModel& operator=(const LibraryModel&) = delete;

  const SupportLibrary& library() const { return *library_; }
  const graph::Model& source() const { return *source_; }
  ANeuralNetworksModel* get() const { return models_.back().get(); }

  // The library's description of an operand, with these dimensions, which it refers to.
  ANeuralNetworksOperandType typeOf(const graph::Operand& operand,
                                    const graph::Dimensions& dimensions) const;

 private:
  class Builder;
  struct Prefix {
    int32_t ours = 0;
    int32_t theirs = 0;
  };

  LibraryModel(std::shared_ptr<const SupportLibrary> library,
               std::shared_ptr<const graph::Model> source)
      : library_(std::move(library)), source_(std::move(source)) {}

  Status findPrefixes();
  int32_t codeOf(int32_t code) const;

  const std::shared_ptr<const SupportLibrary> library_;
  const std::shared_ptr<const graph::Model> source_;
  std::vector<Prefix> prefixes_;  // of extensions
  std::vector<PoolMemory>
      memories_;  // one for each pool; null where constants are given by address
  // A model is behind those that it refers to, the main one is the last.
  std::vector<Handle<ANeuralNetworksModel>> models_;
};

}  // namespace hearth::drivers::support_library
