// SPDX-License-Identifier: Apache-2.0
// The driver interface: what a runtime asks of a driver. It has the newest NNAPI semantics only;
// adapters for older behaviour belong elsewhere. Whatever a driver is given, it must not abort,
// read out of bounds or hang.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.h"
#include "base/descriptor.h"
#include "base/result.h"
#include "graph/model.h"
#include "hal/output_shapes.h"
#include "memory/pool.h"

namespace hearth::hal {

// Version of this interface; a driver library built for another one is not loaded.
inline constexpr uint32_t kApiVersion = 6;

// Values are NNAPI's.
enum class DeviceType : int32_t { kUnknown = 0, kOther = 1, kCpu = 2, kGpu = 3, kAccelerator = 4 };
enum class Preference : int32_t { kLowPower = 0, kFastSingleAnswer = 1, kSustainedSpeed = 2 };
enum class Priority : int32_t { kLow = 90, kMedium = 100, kHigh = 110 };

// Time and power relative to a reference CPU: 1.0 = the same, lower is better.
struct PerformanceInfo {
  float execTime = 1.0f;
  float powerUsage = 1.0f;
};

struct Capabilities {
  std::map<graph::OperandType, PerformanceInfo> operandPerformance;
  PerformanceInfo relaxedFloat32;
  PerformanceInfo ifPerformance;
  PerformanceInfo whilePerformance;
};

struct CacheFileCounts {
  uint32_t model = 0;
  uint32_t data = 0;
};

using CacheToken = std::array<uint8_t, 32>;

// An operand type of an extension that a device brings. The device may take data for an operand of
// the type (Operand::driverData), which only it understands.
struct ExtensionOperandType {
  std::string extension;     // one of Device::supportedExtensions()
  uint16_t number = 0;       // the code within the extension
  uint32_t elementSize = 0;  // bytes of one element, or of the scalar; at least 1
  bool isTensor = true;

  friend bool operator==(const ExtensionOperandType&, const ExtensionOperandType&) = default;
};

// Open cache files, owned by the call that takes them; empty vectors = no caching. The files are
// the client's, so anybody may write to them at any time.
struct Cache {
  std::vector<base::Descriptor> modelFiles;
  std::vector<base::Descriptor> dataFiles;
  CacheToken token{};
};

// How a driver runs one operation of a model.
struct OperationSupport {
  bool supported = false;
  // "xnnpack", "own" or "reference" (the kernel of src/ops); empty when not supported. Set by
  // explainOperations() only.
  std::string kernel;
  std::string reason;  // one sentence why not, or why only by "reference"; else empty
};

// When a driver prepares a model.
enum class Preparation : uint8_t {
  kWhole,       // before prepareModel returns
  kJustInTime,  // prepareModel returns as soon as it knows that it can; the rest happens while the
                // client goes on, and in the first execution
};

struct PrepareOptions {
  Preparation preparation = Preparation::kWhole;
  Preference preference = Preference::kFastSingleAnswer;
  Priority priority = Priority::kMedium;
  base::Deadline deadline;
  unsigned threads = 0;  // 0 = the driver's choice
  // Whether kernels may be chosen by measuring executions. For drivers that have a choice.
  bool isTuned = false;
  // Options that only some drivers know, as names and values; others ignore them. Those of
  // cache::StoreOptions::fromTexts() say where packed weights are kept between starts.
  std::map<std::string, std::string> driverOptions;
  uint64_t maxActivationBytes = 0;  // 0 = no limit; above it preparation fails, naming the tensor
  // For a model with unknown dimensions: the shapes of the inputs that executions are likely to
  // have, one for each input of the main subgraph, so that a driver can prepare for them. Empty
  // when they are not known. Executions may have others.
  std::vector<graph::Dimensions> expectedInputs;
};

// What a device has measured of a model's kernels while it ran, and which stage the model is in.
struct TuningReport {
  enum class State {
    kOff,        // kernels are chosen without measuring
    kMeasuring,  // the first stage: executions are, or will be, measured
    kMeasured,   // the second stage, after `executions` of the first
    kRecalled,   // the second stage from the start: an earlier process measured
  };
  State state = State::kOff;
  uint64_t executions = 0;
  uint32_t changedNodes = 0;  // nodes that run another kernel than in the first stage
  // Measured nanoseconds of one execution's kernels in each stage; 0 when no node changed.
  uint64_t quickTime = 0;
  uint64_t chosenTime = 0;
};

// How a compilation started.
struct StartReport {
  enum class State { kCold, kWarm, kUncached };
  State state = State::kUncached;
  std::string reason;                           // why not warm; empty when warm
  std::map<std::string, uint64_t> packedBytes;  // by operation kind
  uint64_t repackedBytes = 0;                   // packed again although the store had them
  uint64_t repairedBytes = 0;                   // found wrong while in use, and packed again
  uint64_t mappedBytes = 0;      // packed by an earlier start and mapped from the store
  uint64_t sharedBytes = 0;      // packed by another compilation of this process
  uint64_t hashedBytes = 0;      // of the model, to find out whether it changed
  uint64_t activationBytes = 0;  // arena of one execution context
  // Of a model with unknown dimensions: shapes of its inputs that are prepared; 0 for other models.
  uint32_t shapes = 0;
  std::vector<std::string> routedAround;  // kernel families avoided on this CPU
  // Operations that run on a slow kernel for want of a fast one, a sentence without its full stop
  // for each: which one and why. Those on few bytes are left out; a driver names 100 at most.
  std::vector<std::string> slowOperations;
  TuningReport tuning;
  // Why the client's cache files were not written; empty when they were, or there were none.
  std::string cacheProblem;
};

// One argument of a request. Pointers and pools are used in place; they must stay valid until the
// computation that uses them has returned. An output may overlap inputs; the result is the same.
struct Argument {
  enum class Kind { kNoValue, kPointer, kPool, kBuffer };
  Kind kind = Kind::kNoValue;
  void* pointer = nullptr;       // kPointer; never written for an input
  memory::PoolRef pool;          // kPool
  uint64_t offset = 0;           // kPool
  uint64_t length = 0;           // bytes of kPointer and kPool
  uint32_t token = 0;            // kBuffer
  graph::Dimensions dimensions;  // empty = as in the model
  // kPointer: 64 more bytes can be read behind `length`, wherever a page ends.
  bool hasReadableTail = false;
};

struct Request {
  std::vector<Argument> inputs;  // in the order of the main subgraph's inputs
  std::vector<Argument> outputs;
  uint64_t loopTimeout = 2'000'000'000;  // nanoseconds that one WHILE may take; NNAPI's default
};

// In nanoseconds; UINT64_MAX = not measured.
struct Timing {
  uint64_t onDevice = UINT64_MAX;
  uint64_t inDriver = UINT64_MAX;
};

struct ExecutionResult {
  Status status;
  // For success and kOutputInsufficientSize: one entry for each output.
  OutputShapes outputShapes;
  Timing timing;
  // Bytes of the client's inputs and outputs that were copied, as the device could not use them in
  // place.
  uint64_t copiedBytes = 0;
};

// Arguments bound to a prepared model. compute() may be called repeatedly, one call at a time.
// Executions of one prepared model are independent and may run in several threads at once.
//
// The fenced form of a computation does not wait. A fence is a descriptor that poll() reports
// readable from some time on; nobody reads from it.
class Execution {
 public:
  // Gives up a computation of startFenced() that still waits for fences, and waits for the end of
  // one that has begun.
  virtual ~Execution() = default;
  virtual ExecutionResult compute(const base::Deadline& deadline) = 0;

  // Starts a computation that begins once all of `fences` are readable; the device, or a thread of
  // the driver, waits for them. Returns a fence that is readable when the outputs are written, or
  // the computation has failed. Each success is followed by one finishFenced(), and nothing else is
  // called before. kUnsupported, before anything has begun, where the driver cannot start this
  // execution in this way, so that the caller has to wait and call compute(). Other errors are
  // those of compute().
  virtual Result<base::Descriptor> startFenced(std::vector<base::Descriptor> /*fences*/,
                                               const base::Deadline& /*deadline*/) {
    return fail(ErrorCode::kUnsupported, "The driver has no fenced executions.");
  }
  // Waits for the end of what startFenced() has started, and returns its result.
  virtual ExecutionResult finishFenced() {
    ExecutionResult result;
    result.status = fail(ErrorCode::kBadState, "No fenced execution has been started.");
    return result;
  }
};

// A model that a driver has prepared. Thread-safe. Its executions keep it alive.
class PreparedModel {
 public:
  virtual ~PreparedModel() = default;
  // Whether it is worth while to call startFenced() of its executions.
  virtual bool hasFences() const { return false; }
  // Checks the request against the model (counts, lengths, dimensions); kBadData says what does not
  // fit.
  virtual Result<std::unique_ptr<Execution>> createExecution(Request request) = 0;
  // How the model started. Waits for what is still in progress.
  virtual StartReport startReport() const = 0;
  // The same as far as it is known now; does not wait.
  virtual StartReport startReportSoFar() const { return startReport(); }
};

// Driver-managed memory (memory domains). Thread-safe.
class Buffer {
 public:
  virtual ~Buffer() = default;
  virtual uint32_t token() const = 0;
  virtual Status copyTo(const memory::PoolRef& destination) = 0;
  virtual Status copyFrom(const memory::PoolRef& source, const graph::Dimensions& dimensions) = 0;
};

struct BufferRole {
  std::shared_ptr<PreparedModel> preparedModel;
  bool isInput = false;
  uint32_t index = 0;
  float frequency = 1.0f;
};

struct BufferDescription {
  graph::Dimensions dimensions;
};

// A device as a runtime sees it. Thread-safe; lives as long as the process.
class Device {
 public:
  virtual ~Device() = default;

  virtual std::string name() const = 0;  // unique among devices
  virtual std::string version() const = 0;
  virtual DeviceType type() const = 0;
  virtual int64_t featureLevel() const = 0;  // NNAPI's: 27..31, 1000006, 1000007
  virtual Capabilities capabilities() const = 0;
  // The names of extensions. Two devices with an extension of the same name have the same types and
  // operations in it.
  virtual std::vector<std::string> supportedExtensions() const { return {}; }
  // The operand types of these extensions, each once; not those of hearth.tflite. A device that
  // announces one wrongly is not registered.
  virtual std::vector<ExtensionOperandType> extensionOperandTypes() const { return {}; }
  // How many files of each kind the driver wants for caching a compilation; none = it caches
  // nothing. Called once. A device that wants more than 32 of a kind, or returns an error, is not
  // registered.
  virtual Result<CacheFileCounts> numberOfCacheFilesNeeded() const { return CacheFileCounts{}; }

  // Does the work that a process's first preparation needs for any model, so that the preparation
  // finds it done or waits for less. Called once, while other threads go on.
  virtual void warmUp() {}

  // One entry for each operation of the main subgraph, in its order. The model has passed
  // graph::validate(). kOpFailed for memory that the driver cannot map.
  virtual Result<std::vector<OperationSupport>> supportedOperations(const graph::Model& model) = 0;

  // The same with the kernel of each operation, for people. May take as long as preparing.
  virtual Result<std::vector<OperationSupport>> explainOperations(const graph::Model& model) {
    return supportedOperations(model);
  }

  // Prepares a model. The model is shared, so a driver may use constants in place. With cache
  // files, writes into them what prepareModelFromCache needs, before it returns; a failure to do so
  // is not an error.
  virtual Result<std::shared_ptr<PreparedModel>> prepareModel(
      std::shared_ptr<const graph::Model> model, const PrepareOptions& options, Cache cache) = 0;
  // How prepareModel would start now: state, reason and mappedBytes. Packs, changes and keeps
  // nothing.
  virtual Result<StartReport> explainStart(std::shared_ptr<const graph::Model> /*model*/,
                                           const PrepareOptions& /*options*/) {
    StartReport report;
    report.reason = "the device " + name() + " keeps no packed weights";
    return report;
  }
  // Prepares the model that prepareModel saved in these files under this token, without the model.
  // Files that this driver did not write under this token, or that changed since, are an error, and
  // not a byte of them is interpreted.
  virtual Result<std::shared_ptr<PreparedModel>> prepareModelFromCache(
      const PrepareOptions& /*options*/, Cache /*cache*/) {
    return fail(ErrorCode::kUnsupported, "The device {} keeps no compilation cache.", name());
  }

  // Returns when all that earlier calls keep for later starts is written.
  virtual void flush() {}

  virtual Result<std::unique_ptr<Buffer>> allocate(const BufferDescription& /*description*/,
                                                   const std::vector<BufferRole>& /*roles*/) {
    return fail(ErrorCode::kUnsupported, "The device {} has no memory of its own.", name());
  }
};

}  // namespace hearth::hal
