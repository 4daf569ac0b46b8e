// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/result.h"
#include "frontends/delegate/delegate_options.h"
#include "frontends/tflite/model_file.h"
#include "ops/specialized_model.h"
#include "runtime/execution.h"

namespace hearth::tflite_c {

// A subgraph compiled for shapes of its inputs. Where inputs have no elements, nothing runs: there
// is no model and no execution, only the outputs, which follow from the shapes.
struct CompiledSubgraph {
  std::shared_ptr<const graph::Model> model;
  bool hasUnknownInputs = false;  // each run tells their shapes
  std::shared_ptr<runtime::Execution> execution;
  std::vector<ops::InferredOutput> inferred;  // without `execution`; each has a value

  // Of the outputs for these shapes of inputs; empty for one that depends on values.
  std::vector<std::optional<graph::Dimensions>> outputShapes(
      const std::vector<graph::Dimensions>& inputs) const;
};

// Compiles a subgraph for the shapes of its inputs. What it has compiled for the shapes that the
// file allows stays, and so do the last eight of other shapes, so that a program that alternates
// between batch sizes compiles each of them once. For one thread at a time.
class SubgraphCompiler {
 public:
  // `declared` is the subgraph as the file has it, or why it cannot run.
  SubgraphCompiler(std::shared_ptr<const tflite::ModelFile> file, size_t subgraph,
                   Result<tflite::ImportedGraph> declared)
      : file_(std::move(file)), subgraph_(subgraph), declared_(std::move(declared)) {}

  // What subgraphs run from now on in place of their operators. What was compiled before is given
  // up. Errors: those of ModelFile::importSubgraph(), after which all is as before; that of a
  // subgraph which could not run before is left to compile().
  Status setPlans(tflite::SubgraphPlans plans);
  // Whether shapes depend on values, as far as the file tells.
  bool hasDynamicShapes(const std::vector<graph::Dimensions>& shapes) const;

  // One shape for each input. Where the file has others, constants that hold a shape follow as in
  // hearth_compile_options; where they cannot, all shapes are inferred from the inputs as
  // TensorFlow Lite does. Where inputs have no elements, all outputs must have none, or elements
  // that depend on no other input, as a sum over no elements does. Errors: that
  // of `declared`; kUnsupported for what no device runs; kBadData or kUnsupported for shapes that
  // an operation cannot have.
  Result<std::shared_ptr<const CompiledSubgraph>> compile(
      const std::vector<graph::Dimensions>& shapes, const delegate::DelegateOptions& options);

 private:
  using Compiled = std::shared_ptr<const CompiledSubgraph>;

  bool allows(const std::vector<graph::Dimensions>& shapes) const;
  // Imports `open_`.
  Status open();
  // For shapes of which some have no elements.
  Result<Compiled> withoutElements(const std::vector<graph::Dimensions>& shapes);
  Result<tflite::ImportedGraph> resized(const std::vector<graph::Dimensions>& shapes);
  Result<Compiled> compileModel(const tflite::ImportedGraph& graph,
                                const std::vector<graph::Dimensions>& shapes, bool isDeclared,
                                const delegate::DelegateOptions& options) const;

  const std::shared_ptr<const tflite::ModelFile> file_;
  const size_t subgraph_;
  tflite::SubgraphPlans plans_;
  Result<tflite::ImportedGraph> declared_;
  std::optional<tflite::ImportedGraph> open_;  // once another shape was asked for
  Compiled forDeclared_;                       // null before it is needed
  std::list<std::pair<std::vector<graph::Dimensions>, Compiled>> others_;  // the last is the newest
};

}  // namespace hearth::tflite_c
