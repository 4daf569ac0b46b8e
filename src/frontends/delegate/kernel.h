// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "frontends/delegate/partition.h"
#include "frontends/delegate/partition_source.h"
#include "tflite_abi/structures.h"

namespace hearth::delegate {

// The node that runs a partition in one interpreter. Used by one thread at a time.
class Kernel {
 public:
  // What all kernels of an interpreter's partitions share.
  struct Settings {
    std::shared_ptr<const DelegateOptions> options;
    unsigned threads = 0;
    std::string file;  // the model's path, or empty
  };

  // Translates the partition for the shapes that the source states, and finds devices for it; its
  // constants must be no memory of the runtime. Compiles it if the options name devices, which may
  // then still refuse it. Errors: those of translate(), checkDevices() and compile().
  static Result<std::unique_ptr<Kernel>> create(PartitionSource source, Settings settings);

  // Compiles for the shapes that the inputs now have, which may be others, and gives the outputs
  // theirs. Errors: those of translate() and compile(), and kOpFailed when the runtime refuses.
  Status prepare(TfLiteContext* context);
  // Computes the outputs and the new values of the variables from and into the runtime's memory.
  Status invoke(TfLiteContext* context);

  size_t nodeCount() const { return source_.nodes.size(); }
  uint64_t constantBytes() const;

 private:
  // The dimensions of the inputs, then those of the variables.
  using Shapes = std::vector<graph::Dimensions>;
  struct Variant {
    Shapes shapes;
    CompiledPartition compiled;
    std::vector<void*> boundInputs;
    std::vector<void*> boundOutputs;
  };

  Kernel(PartitionSource source, Settings settings);
  Shapes statedShapes() const;
  Result<TranslatedPartition> translateFor(const Shapes& shapes);
  // Moves the variant for these shapes to the front, compiling it if necessary.
  Status use(const Shapes& shapes);
  Status bind(TfLiteContext* context, int32_t tensor, size_t index, bool isInput, void** bound);

  PartitionSource source_;
  const Settings settings_;
  std::vector<int32_t> arguments_;  // the inputs, then the variables
  std::list<Variant> variants_;     // that used last is the first
  // Made by create() for the first compilation.
  std::optional<TranslatedPartition> translated_;
};

}  // namespace hearth::delegate
