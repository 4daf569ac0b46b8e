// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "frontends/delegate/delegate_options.h"
#include "frontends/delegate/partition_source.h"
#include "graph/model.h"
#include "runtime/execution.h"

namespace hearth::delegate {

// A partition as the canonical model, every shape known. Its inputs are those of the source, then
// the variables; its outputs are those of the source, then the variables' new values.
struct TranslatedPartition {
  std::shared_ptr<const graph::Model> model;
  std::vector<int32_t> variables;  // tensors of the runtime
};

// Errors: those of the reader of files; kIncomplete when a shape depends on values that are known
// only at run time.
Result<TranslatedPartition> translate(const PartitionSource& source);

// Whether every operation has a device that takes it: those that the options name, or any.
// kUnsupported names the first that has none.
Status checkDevices(const graph::Model& model, const DelegateOptions& options);

// A partition for certain shapes of its inputs, ready to be run. Used by one thread at a time.
struct CompiledPartition {
  std::shared_ptr<runtime::Execution> execution;
  std::vector<int32_t> variables;
  std::vector<graph::Dimensions> outputDimensions;  // of the source's outputs
};

// Compiles what translate() made of a source whose constants are no memory of the runtime. `file`
// is the path of the model, for reports; may be empty. Errors: those of Compilation::create().
Result<CompiledPartition> compile(const PartitionSource& source, TranslatedPartition translated,
                                  const DelegateOptions& options, unsigned threads,
                                  const std::string& file);

}  // namespace hearth::delegate
