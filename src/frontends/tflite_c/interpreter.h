// SPDX-License-Identifier: Apache-2.0
// The objects behind the interface's opaque models, options, interpreters and signature runners.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "frontends/delegate/delegate_options.h"
#include "frontends/tflite/model_file.h"
#include "frontends/tflite_c/declarations.h"
#include "frontends/tflite_c/program_bytes.h"
#include "frontends/tflite_c/program_resolver.h"
#include "frontends/tflite_c/reporter.h"
#include "frontends/tflite_c/subgraph_runner.h"
#include "tflite_abi/operator.h"

struct TfLiteModel {
  // Before the file, so that they are let go of after it; null if the program has no part in them.
  std::shared_ptr<const hearth::tflite_c::ProgramBytes> bytes;
  std::shared_ptr<const hearth::tflite::ModelFile> file;
};

struct TfLiteInterpreterOptions {
  hearth::tflite_c::Reporter reporter;
  int32_t threads = -1;  // -1 = Hearth's choice
  bool isCancellable = false;
  bool fallsBack = false;  // to no delegate, when one cannot be applied
  std::vector<TfLiteDelegate*> delegates;
  std::vector<const TfLiteOperator*> operators;        // of the program
  std::vector<hearth::tflite_c::AddedOperator> added;  // copies of structures
  hearth::tflite_c::ResolverFunctions resolver;
};

namespace hearth::tflite_c {

// An interpreter, which its signature runners keep alive. One thread at a time may change or run
// it; another one's call fails meanwhile. Reading and cancel() are thread-safe.
class Interpreter {
 public:
  // `hasOthers`: operations that no operator of the program computes are Hearth's. Errors: those of
  // SubgraphRunner::create() and useOperators(), and of delegates.
  static Result<std::shared_ptr<Interpreter>> create(const TfLiteModel& model,
                                                     const TfLiteInterpreterOptions& options,
                                                     bool hasOthers = true);

  const Reporter& reporter() const { return reporter_; }
  SubgraphRunner& primary() const { return *primary_; }
  const std::vector<tflite::SignatureSummary>& signatures() const { return signatures_; }
  // The subgraph of a signature; a signature of the first subgraph shares the interpreter's
  // tensors.
  Result<SubgraphRunner*> subgraph(size_t index);

  // Each runs with the exclusive right to the interpreter. kBadState while another thread has it.
  Status resizeInput(SubgraphRunner* subgraph, size_t position, std::span<const int32_t> dims,
                     bool isStrict);
  Status allocate(SubgraphRunner* subgraph);
  // kTfLiteCancelled if cancel() was called meanwhile; kTfLiteDelegateError if a delegate failed
  // and the options allow the fallback: then the results are those without delegates, which are
  // removed.
  Result<TfLiteStatus> invoke(SubgraphRunner* subgraph);
  Status resetVariables();
  Status setCustomAllocation(int32_t index, const TfLiteCustomAllocation& allocation,
                             int64_t flags);
  Status setBufferHandle(TfLiteTensor* tensor, int32_t handle, TfLiteDelegate* delegate);
  Status allowBufferOutputs(bool allow);
  Status ensureReadable(TfLiteTensor* tensor);
  // One that the library made sets options; another one is offered the model.
  Status addDelegate(TfLiteDelegate* delegate);

  // kBadState for an interpreter whose options do not allow it.
  Status cancel();

 private:
  Interpreter(const TfLiteModel& model, const TfLiteInterpreterOptions& options, bool hasOthers);

  template <typename Body>
  Status withClaim(Body body);
  Status applyDelegate(TfLiteDelegate* delegate);

  const std::shared_ptr<const ProgramBytes> bytes_;  // outlives all that reads them
  const std::shared_ptr<const tflite::ModelFile> file_;
  const Reporter reporter_;
  const bool isCancellable_;
  const bool fallsBack_;
  delegate::DelegateOptions options_;
  std::vector<TfLiteDelegate*> delegates_;  // of the program, which have taken nodes
  const ProgramResolver resolver_;
  const std::vector<tflite::SignatureSummary> signatures_;
  std::unique_ptr<SubgraphRunner> primary_;
  base::Mutex mutex_;  // for others_
  std::map<size_t, std::unique_ptr<SubgraphRunner>> others_;
  std::atomic<bool> isClaimed_ = false;
  std::atomic<bool> isCancelled_ = false;
};

}  // namespace hearth::tflite_c

struct TfLiteInterpreter {
  std::shared_ptr<hearth::tflite_c::Interpreter> interpreter;
};

struct TfLiteSignatureRunner {
  std::shared_ptr<hearth::tflite_c::Interpreter> interpreter;
  hearth::tflite_c::SubgraphRunner* subgraph;  // of the interpreter
  // With inputs and outputs that the subgraph has.
  hearth::tflite::SignatureSummary signature;
};
