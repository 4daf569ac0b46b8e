// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "frontends/delegate/delegate_options.h"
#include "frontends/tflite/model_file.h"
#include "frontends/tflite_c/declarations.h"
#include "frontends/tflite_c/program_graphs.h"
#include "frontends/tflite_c/program_resolver.h"
#include "frontends/tflite_c/subgraph_compiler.h"
#include "frontends/tflite_c/tensor_strings.h"
#include "frontends/tflite_c/tensor_table.h"
#include "tflite_abi/tensor_memory.h"

namespace hearth::tflite_c {

// A subgraph with its tensors, as an interpreter runs it: resize inputs, allocate, invoke. Nothing
// is prepared before allocate(). All but tensor() and the lists is for one thread at a time.
class SubgraphRunner {
 public:
  SubgraphRunner(const SubgraphRunner&) = delete;
  SubgraphRunner& operator=(const SubgraphRunner&) = delete;

  // Errors: those of ModelFile::importSubgraph(), but for kUnsupported: a subgraph that cannot run
  // can be looked at, and allocate() says why.
  static Result<std::unique_ptr<SubgraphRunner>> create(
      std::shared_ptr<const tflite::ModelFile> file, size_t subgraph);

  // Indices in the file.
  const std::vector<int32_t>& inputs() const { return subgraph_.inputs; }
  const std::vector<int32_t>& outputs() const { return subgraph_.outputs; }
  const std::vector<int32_t>& variables() const { return subgraph_.variables; }
  Result<TfLiteTensor*> tensor(size_t index) const { return tensors_->at(index); }

  // Gives input `position` other dimensions; with `isStrict` only where the file leaves them open.
  // allocate() must follow, unless they are the same as before. kBadData for a position or
  // dimensions that cannot be.
  Status resizeInput(size_t position, std::span<const int32_t> dims, bool isStrict);
  // Makes the model ready for the shapes of its inputs: compiles it, gives all inputs and outputs
  // memory, and sets variables to their initial values. Does nothing if it is ready. Errors: those
  // of SubgraphCompiler::compile(); after other shapes were given, it may be called again.
  Status allocate(const delegate::DelegateOptions& options);
  // Lets operators of the program compute what the resolver finds, from now on. Errors: those of
  // ProgramGraphs::create() and useOperators().
  Status useOperators(const ProgramResolver& resolver, const delegate::DelegateOptions& options);
  // Offers the subgraph, and those that its IF and WHILE call, to a delegate of the program, which
  // must live as long as this. Memory is allocated again if it was, or if the delegate wants static
  // sizes. Errors: those of ProgramGraphs::apply(), after which all is as before, and of
  // allocate().
  Status applyDelegate(TfLiteDelegate* delegate, const delegate::DelegateOptions& options);
  bool hasDelegates() const;  // that have taken nodes
  // Gives the nodes of all delegates back to Hearth and allocates again; the inputs keep their
  // values, which are copied out of buffers of the delegates, and variables get their initial ones.
  // To be called if hasDelegates(). Errors: those of ensureReadable() and allocate().
  Status removeDelegates(const delegate::DelegateOptions& options);
  // Lets a tensor of tensor() lie in a buffer of a delegate's: DelegatedGraph::setBufferHandle().
  // kBadState before a delegate has taken nodes.
  Status setBufferHandle(TfLiteTensor* tensor, int32_t handle, TfLiteDelegate* delegate);
  // Whether a run may leave outputs in buffers of delegates; it copies them otherwise.
  void allowBufferOutputs(bool allow);
  // Copies a tensor of tensor() out of its delegate's buffer if its memory is stale. Errors: those
  // of DelegatedGraph::copyFromBuffer().
  Status ensureReadable(TfLiteTensor* tensor);
  // kBadState before allocate().
  Status invoke();
  Status resetVariables();
  // Lets an input or output lie in memory of the program, which must stay valid as long as this.
  // Any other tensor that is computed may have memory, too, but no run uses it.
  Status setCustomAllocation(int32_t index, const TfLiteCustomAllocation& allocation,
                             int64_t flags);

 private:
  struct Place {
    TfLiteTensor* tensor = nullptr;
    // Empty: `custom`, or the memory of an equal input. Of an output of strings: its elements.
    tflite_abi::TensorMemory memory;
    std::unique_ptr<HeldStrings> strings;  // of an input of strings, once there was a run
    void* custom = nullptr;                // of the program
    uint64_t customBytes = 0;
    bool isDynamic = false;  // an output whose size depends on values
    void* bound = nullptr;
  };

  SubgraphRunner(std::shared_ptr<const tflite::ModelFile> file, size_t subgraph,
                 tflite::FileSubgraph description, Result<tflite::ImportedGraph> imported);

  Status findPlaces();
  Status makeGraph(const delegate::DelegateOptions& options);
  std::vector<graph::Dimensions> inputShapes() const;
  Status placeInput(size_t position);
  Status placeOutput(size_t position, const std::optional<graph::Dimensions>& shape);
  // The memory for a tensor of this many bytes: the program's, or the library's.
  Result<void*> memoryFor(Place* place, uint64_t bytes);
  Status bindInput(size_t position);
  Status bindOutput(size_t position, uint64_t bytes);
  bool isInput(const TfLiteTensor* tensor) const;
  // The bytes that a run needs for an output.
  static Result<uint64_t> boundBytes(const TfLiteTensor& tensor, std::span<const int32_t> dims);
  // Allocates again for other dimensions that inputs have got with their strings.
  Status followStrings();
  // Lets the run have the strings that the program has written to the inputs.
  Status takeStrings();
  Status giveStrings();
  Status compute();
  // What programs see of delegates in the tensors that those have taken.
  Status showDelegates();
  // A run where a tensor lies in a buffer of a delegate's.
  Status runWithBuffers();
  Status run();
  // In place of a run, for inputs without elements.
  void giveInferred();
  Status growOutputs();
  Status describeDynamicOutputs();

  const std::shared_ptr<const tflite::ModelFile> file_;
  const size_t index_;
  const tflite::FileSubgraph subgraph_;
  std::unique_ptr<TensorTable> tensors_;
  // Null before the first delegate or operator of the program.
  std::unique_ptr<ProgramGraphs> graphs_;
  SubgraphCompiler compiler_;
  std::vector<Place> inputs_;
  std::vector<Place> outputs_;
  bool hasDynamicOutputs_ = false;
  bool hasStrings_ = false;  // among inputs and outputs
  bool hasBuffers_ = false;  // a tensor has lain in a buffer of a delegate's
  bool allowsBufferOutputs_ = false;
  bool isReady_ = false;
  // Of the last allocate().
  std::shared_ptr<const CompiledSubgraph> compiled_;  // null before the first one
  std::vector<graph::Dimensions> shapes_;
  delegate::DelegateOptions options_;  // where there are strings
};

}  // namespace hearth::tflite_c
