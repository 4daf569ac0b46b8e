// SPDX-License-Identifier: Apache-2.0
#include "tools/conformance/nnapi_device.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <utility>

#include "android/NeuralNetworks.h"
#include "base/env.h"
#include "tools/conformance/nnapi_handles.h"
#include "tools/conformance/nnapi_model.h"

namespace hearth::conformance {
namespace {

struct ModeName {
  NnapiMode mode;
  const char* name;
};
constexpr ModeName kModeNames[] = {
    {NnapiMode::kSync, "sync"},
    {NnapiMode::kAsync, "async"},
    {NnapiMode::kBurst, "burst"},
    {NnapiMode::kFenced, "fenced"},
    {NnapiMode::kReusable, "reusable"},
    {NnapiMode::kDeviceMemory, "device-memory"},
    {NnapiMode::kSharedMemory, "shared-memory"},
    {NnapiMode::kCached, "cached"},
};

constexpr char kDefaultName[] = "default";

// A folder for cache files and the map of them, set by the environment. There can be only one at a
// time, because the process has one environment.
class CacheFolder {
 public:
  CacheFolder() {
    std::string pattern = folderForAll() / "hearth-conformance-XXXXXX";
    if (const char* made = ::mkdtemp(pattern.data())) path_ = made;
    ::setenv("XDG_STATE_HOME", (path_ / "state").c_str(), 1);
    ::setenv("HEARTH_REPORT", report().c_str(), 1);
  }
  ~CacheFolder() {
    ::unsetenv("XDG_STATE_HOME");
    ::unsetenv("HEARTH_REPORT");
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  CacheFolder(const CacheFolder&) = delete;
  CacheFolder& operator=(const CacheFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

  // Fails unless the last compilation was a cache hit or, if not `isNeeded`, cached nothing.
  Status checkHit(bool isNeeded) const {
    std::ifstream lines(report());
    std::string last;
    for (std::string line; std::getline(lines, line);) last = line;
    const bool isHit = last.find("\"cache\":\"hit\"") != std::string::npos;
    const bool isNone = last.find("\"cache\":\"\"") != std::string::npos;
    if (isHit || (isNone && !isNeeded)) return {};
    return fail(ErrorCode::kOpFailed, "The second compilation is not from the cache: {}", last);
  }

 private:
  // A folder in memory if there is one, because syncing takes no time there.
  static std::filesystem::path folderForAll() {
    const std::filesystem::path memory = "/dev/shm";
    if (::access(memory.c_str(), W_OK | X_OK) == 0) return memory;
    return base::envString(base::Env::kTemporary);
  }
  std::filesystem::path report() const { return path_ / "report"; }
  std::filesystem::path path_;
};

class NnapiPreparedModel;

class NnapiExecution final : public hal::Execution {
 public:
  NnapiExecution(std::shared_ptr<NnapiPreparedModel> prepared, hal::Request request)
      : prepared_(std::move(prepared)), request_(std::move(request)) {}

  hal::ExecutionResult compute(const base::Deadline& deadline) override;

 private:
  Status makeExecution(ExecutionHandle* execution);
  Status setInputs(ANeuralNetworksExecution* execution);
  Status setArguments(ANeuralNetworksExecution* execution);
  Status setSharedArguments(ANeuralNetworksExecution* execution);
  Status setDeviceArguments(ANeuralNetworksExecution* execution);
  Status computeOnce(ANeuralNetworksExecution* execution);
  Status computeFenced(ANeuralNetworksExecution* execution);
  Status repeatFenced(hal::ExecutionResult* result);
  Status fetchOutputs(const hal::OutputShapes& shapes);
  Status readShapes(ANeuralNetworksExecution* execution, hal::ExecutionResult* result);

  std::shared_ptr<NnapiPreparedModel> prepared_;
  const hal::Request request_;
  ExecutionHandle reused_;
  memory::PoolRef shared_;  // inputs, then outputs
  std::vector<uint64_t> sharedOutputs_;
  std::vector<MemoryHandle> memories_;        // the memories of the arguments
  std::vector<MemoryHandle> outputMemories_;  // by output; null where there is none
};

class NnapiPreparedModel final : public hal::PreparedModel,
                                 public std::enable_shared_from_this<NnapiPreparedModel> {
 public:
  NnapiPreparedModel(std::shared_ptr<const graph::Model> graph, NnapiMode mode)
      : graph_(std::move(graph)), mode_(mode) {
    const graph::Subgraph& main = graph_->main();
    for (const uint32_t index : main.outputs)
      hasKnownSizes_ &= graph::isFullySpecified(main.operands[index]);
    for (const uint32_t index : main.inputs)
      hasKnownInputs_ &= graph::isFullySpecified(main.operands[index]);
    hasKnownSizes_ &= hasKnownInputs_;
  }

  Status prepare(const ANeuralNetworksDevice* device, const hal::PrepareOptions& options) {
    HEARTH_TRY(buildNnapiModel(*graph_, &model_));
    if (mode_ != NnapiMode::kCached) return compile(device, options, nullptr);
    CacheFolder folder;
    HEARTH_TRY(compile(device, options, &folder));
    HEARTH_TRY(compile(device, options, &folder));
    return folder.checkHit(device != nullptr && namesOneThatCaches(device));
  }

  Result<std::unique_ptr<hal::Execution>> createExecution(hal::Request request) override {
    return std::make_unique<NnapiExecution>(shared_from_this(), std::move(request));
  }
  hal::StartReport startReport() const override { return {}; }

  const graph::Subgraph& main() const { return graph_->main(); }
  // The mode that can be used: fences need all sizes to be known, and plain bytes, which are copied
  // into device memories, do not carry the dimensions of inputs.
  NnapiMode mode() const {
    const bool isImpossible = (mode_ == NnapiMode::kFenced && !hasKnownSizes_) ||
                              (mode_ == NnapiMode::kDeviceMemory && !hasKnownInputs_);
    return isImpossible ? NnapiMode::kSync : mode_;
  }
  // Whether no device memory could be made for an output, because its size is unknown and its roles
  // are on several devices.
  bool lacksMemory(uint32_t output, const Status& status) const {
    return !status && !graph::isFullySpecified(main().operands[main().outputs[output]]) &&
           status.error().code() == ErrorCode::kOpFailed && isDivided_;
  }
  // Whether a computation without fences must find the sizes first.
  bool fencesLater() const { return mode_ == NnapiMode::kFenced && !hasKnownSizes_; }
  ANeuralNetworksCompilation* compilation() const { return compilation_.get(); }
  ANeuralNetworksBurst* burst() const { return burst_.get(); }

 private:
  static bool namesOneThatCaches(const ANeuralNetworksDevice* device) {
    const char* name = nullptr;
    return ANeuralNetworksDevice_getName(device, &name) == ANEURALNETWORKS_NO_ERROR &&
           name == std::string_view("hearth-cpu");
  }

  // Compiles, with a zero token if there is a cache folder.
  Status compile(const ANeuralNetworksDevice* device, const hal::PrepareOptions& options,
                 const CacheFolder* cache) {
    isDivided_ = device == nullptr;
    if (device != nullptr)
      HEARTH_TRY(check(
          ANeuralNetworksCompilation_createForDevices(model_.main(), &device, 1, Out(compilation_)),
          "createForDevices"));
    else
      HEARTH_TRY(check(ANeuralNetworksCompilation_create(model_.main(), Out(compilation_)),
                       "Compilation_create"));
    HEARTH_TRY(check(ANeuralNetworksCompilation_setPreference(
                         compilation_.get(), static_cast<int32_t>(options.preference)),
                     "setPreference"));
    HEARTH_TRY(check(ANeuralNetworksCompilation_setPriority(compilation_.get(),
                                                            static_cast<int>(options.priority)),
                     "setPriority"));
    if (cache != nullptr) {
      const uint8_t token[ANEURALNETWORKS_BYTE_SIZE_OF_CACHE_TOKEN] = {};
      HEARTH_TRY(check(
          ANeuralNetworksCompilation_setCaching(compilation_.get(), cache->path().c_str(), token),
          "setCaching"));
    }
    HEARTH_TRY(check(ANeuralNetworksCompilation_finish(compilation_.get()), "Compilation_finish"));
    if (mode_ == NnapiMode::kBurst)
      HEARTH_TRY(
          check(ANeuralNetworksBurst_create(compilation_.get(), Out(burst_)), "Burst_create"));
    return {};
  }

  const std::shared_ptr<const graph::Model> graph_;
  const NnapiMode mode_;
  bool hasKnownInputs_ = true;
  bool hasKnownSizes_ = true;
  bool isDivided_ = false;  // the runtime may choose several devices
  NnapiModel model_;
  CompilationHandle compilation_;
  BurstHandle burst_;
};

Status NnapiExecution::makeExecution(ExecutionHandle* execution) {
  HEARTH_TRY(check(ANeuralNetworksExecution_create(prepared_->compilation(), Out(*execution)),
                   "Execution_create"));
  HEARTH_TRY(check(ANeuralNetworksExecution_setLoopTimeout(execution->get(), request_.loopTimeout),
                   "setLoopTimeout"));
  if (prepared_->mode() == NnapiMode::kReusable)
    HEARTH_TRY(check(ANeuralNetworksExecution_setReusable(execution->get(), true), "setReusable"));
  switch (prepared_->mode()) {
    case NnapiMode::kSharedMemory:
      return setSharedArguments(execution->get());
    case NnapiMode::kDeviceMemory:
      return setDeviceArguments(execution->get());
    default:
      return setArguments(execution->get());
  }
}

Status NnapiExecution::setInputs(ANeuralNetworksExecution* execution) {
  for (size_t i = 0; i < request_.inputs.size(); ++i)
    HEARTH_TRY(check(
        ANeuralNetworksExecution_setInput(execution, static_cast<int32_t>(i), nullptr,
                                          request_.inputs[i].pointer, request_.inputs[i].length),
        "setInput"));
  return {};
}

Status NnapiExecution::setArguments(ANeuralNetworksExecution* execution) {
  HEARTH_TRY(setInputs(execution));
  for (size_t i = 0; i < request_.outputs.size(); ++i)
    HEARTH_TRY(check(
        ANeuralNetworksExecution_setOutput(execution, static_cast<int32_t>(i), nullptr,
                                           request_.outputs[i].pointer, request_.outputs[i].length),
        "setOutput"));
  return {};
}

// Puts all arguments into one memory, each at an offset that is no multiple of a page.
Status NnapiExecution::setSharedArguments(ANeuralNetworksExecution* execution) {
  constexpr uint64_t kFirst = 20;
  constexpr uint64_t kStep = 8;
  uint64_t size = kFirst;
  std::vector<uint64_t> offsets;
  for (const auto* arguments : {&request_.inputs, &request_.outputs})
    for (const hal::Argument& argument : *arguments) {
      offsets.push_back(size);
      size += (argument.length + 2 * kStep - 1) / kStep * kStep;
    }
  HEARTH_ASSIGN(shared_, memory::Pool::anonymous(size));
  memories_.emplace_back();
  HEARTH_TRY(check(ANeuralNetworksMemory_createFromFd(size, PROT_READ | PROT_WRITE, shared_->fd(),
                                                      0, Out(memories_.back())),
                   "createFromFd"));
  ANeuralNetworksMemory* const memory = memories_.back().get();
  for (size_t i = 0; i < request_.inputs.size(); ++i) {
    const hal::Argument& input = request_.inputs[i];
    const auto index = static_cast<int32_t>(i);
    if (input.length == 0) {
      HEARTH_TRY(check(ANeuralNetworksExecution_setInput(execution, index, nullptr, nullptr, 0),
                       "setInput"));
      continue;
    }
    std::memcpy(shared_->mutableData() + offsets[i], input.pointer, input.length);
    HEARTH_TRY(check(ANeuralNetworksExecution_setInputFromMemory(execution, index, nullptr, memory,
                                                                 offsets[i], input.length),
                     "setInputFromMemory"));
  }
  sharedOutputs_.assign(offsets.begin() + static_cast<ptrdiff_t>(request_.inputs.size()),
                        offsets.end());
  for (size_t i = 0; i < request_.outputs.size(); ++i)
    HEARTH_TRY(check(ANeuralNetworksExecution_setOutputFromMemory(
                         execution, static_cast<int32_t>(i), nullptr, memory, sharedOutputs_[i],
                         request_.outputs[i].length),
                     "setOutputFromMemory"));
  return {};
}

// Puts arguments into device memories; inputs are copied there through a shared memory.
Status NnapiExecution::setDeviceArguments(ANeuralNetworksExecution* execution) {
  for (size_t i = 0; i < request_.inputs.size(); ++i) {
    const hal::Argument& input = request_.inputs[i];
    const auto index = static_cast<uint32_t>(i);
    if (input.length == 0) {
      HEARTH_TRY(check(ANeuralNetworksExecution_setInput(execution, static_cast<int32_t>(i),
                                                         nullptr, nullptr, 0),
                       "setInput"));
      continue;
    }
    MemoryHandle device;
    HEARTH_TRY(makeDeviceMemory(prepared_->compilation(), true, index, &device));
    HEARTH_TRY(copyIn(input.pointer, input.length, device.get()));
    HEARTH_TRY(check(ANeuralNetworksExecution_setInputFromMemory(execution, static_cast<int32_t>(i),
                                                                 nullptr, device.get(), 0, 0),
                     "setInputFromMemory"));
    memories_.push_back(std::move(device));
  }
  outputMemories_.clear();
  for (size_t i = 0; i < request_.outputs.size(); ++i) {
    const auto index = static_cast<uint32_t>(i);
    MemoryHandle device;
    const Status made = makeDeviceMemory(prepared_->compilation(), false, index, &device);
    if (prepared_->lacksMemory(index, made)) {
      HEARTH_TRY(check(ANeuralNetworksExecution_setOutput(execution, static_cast<int32_t>(i),
                                                          nullptr, request_.outputs[i].pointer,
                                                          request_.outputs[i].length),
                       "setOutput"));
      outputMemories_.emplace_back();
      continue;
    }
    HEARTH_TRY(made);
    HEARTH_TRY(check(ANeuralNetworksExecution_setOutputFromMemory(
                         execution, static_cast<int32_t>(i), nullptr, device.get(), 0, 0),
                     "setOutputFromMemory"));
    outputMemories_.push_back(std::move(device));
  }
  return {};
}

Status NnapiExecution::computeFenced(ANeuralNetworksExecution* execution) {
  EventHandle event;
  HEARTH_TRY(check(
      ANeuralNetworksExecution_startComputeWithDependencies(execution, nullptr, 0, 0, Out(event)),
      "startComputeWithDependencies"));
  return check(ANeuralNetworksEvent_wait(event.get()), "Event_wait");
}

// Computes again with fences, with outputs of the shapes that the first computation found.
Status NnapiExecution::repeatFenced(hal::ExecutionResult* result) {
  ExecutionHandle execution;
  HEARTH_TRY(check(ANeuralNetworksExecution_create(prepared_->compilation(), Out(execution)),
                   "Execution_create"));
  HEARTH_TRY(check(ANeuralNetworksExecution_setLoopTimeout(execution.get(), request_.loopTimeout),
                   "setLoopTimeout"));
  HEARTH_TRY(setInputs(execution.get()));
  const graph::Subgraph& main = prepared_->main();
  for (size_t i = 0; i < request_.outputs.size(); ++i) {
    graph::Operand operand = main.operands[main.outputs[i]];
    operand.dimensions = result->outputShapes[i].dimensions;
    // A type cannot express a dimension of 0.
    if (!graph::isFullySpecified(operand)) return {};
    HEARTH_ASSIGN(const uint64_t bytes, graph::byteSize(operand));
    const ANeuralNetworksOperandType type = {
        static_cast<int32_t>(operand.type), static_cast<uint32_t>(operand.dimensions.size()),
        operand.dimensions.empty() ? nullptr : operand.dimensions.data(), operand.scale,
        operand.zeroPoint};
    std::memset(request_.outputs[i].pointer, 0xA5, bytes);
    HEARTH_TRY(check(ANeuralNetworksExecution_setOutput(execution.get(), static_cast<int32_t>(i),
                                                        &type, request_.outputs[i].pointer, bytes),
                     "setOutput"));
  }
  HEARTH_TRY(computeFenced(execution.get()));
  result->outputShapes.clear();
  return readShapes(execution.get(), result);
}

Status NnapiExecution::computeOnce(ANeuralNetworksExecution* execution) {
  switch (prepared_->mode()) {
    case NnapiMode::kAsync: {
      EventHandle event;
      HEARTH_TRY(
          check(ANeuralNetworksExecution_startCompute(execution, Out(event)), "startCompute"));
      return check(ANeuralNetworksEvent_wait(event.get()), "Event_wait");
    }
    case NnapiMode::kBurst:
      return check(ANeuralNetworksExecution_burstCompute(execution, prepared_->burst()),
                   "burstCompute");
    case NnapiMode::kFenced:
      return computeFenced(execution);
    default:
      return check(ANeuralNetworksExecution_compute(execution), "compute");
  }
}

// Copies outputs of these shapes to the memory of the request.
Status NnapiExecution::fetchOutputs(const hal::OutputShapes& shapes) {
  const graph::Subgraph& main = prepared_->main();
  for (size_t i = 0; i < request_.outputs.size(); ++i) {
    const hal::Argument& output = request_.outputs[i];
    if (prepared_->mode() == NnapiMode::kSharedMemory)
      std::memcpy(output.pointer, shared_->data() + sharedOutputs_[i], output.length);
    if (prepared_->mode() == NnapiMode::kDeviceMemory && outputMemories_[i] != nullptr) {
      graph::Operand operand = main.operands[main.outputs[i]];
      operand.dimensions = shapes[i].dimensions;
      // An empty tensor has a dimension of 0.
      if (!graph::isFullySpecified(operand)) continue;
      HEARTH_ASSIGN(const uint64_t bytes, graph::byteSize(operand));
      if (bytes > output.length)
        return fail(ErrorCode::kOutputInsufficientSize,
                    "The output {} has {} bytes of room for {}.", i, output.length, bytes);
      HEARTH_TRY(copyOut(outputMemories_[i].get(), output.pointer, bytes));
    }
  }
  return {};
}

Status NnapiExecution::readShapes(ANeuralNetworksExecution* execution,
                                  hal::ExecutionResult* result) {
  for (size_t i = 0; i < request_.outputs.size(); ++i) {
    const auto index = static_cast<int32_t>(i);
    uint32_t rank = 0;
    HEARTH_TRY(check(ANeuralNetworksExecution_getOutputOperandRank(execution, index, &rank),
                     "getOutputOperandRank"));
    hal::OutputShape shape;
    shape.dimensions.resize(rank);
    if (rank != 0)
      HEARTH_TRY(check(ANeuralNetworksExecution_getOutputOperandDimensions(execution, index,
                                                                           shape.dimensions.data()),
                       "getOutputOperandDimensions"));
    result->outputShapes.push_back(std::move(shape));
  }
  return {};
}

hal::ExecutionResult NnapiExecution::compute(const base::Deadline& /*deadline*/) {
  hal::ExecutionResult result;
  ExecutionHandle fresh;
  ExecutionHandle& execution = prepared_->mode() == NnapiMode::kReusable ? reused_ : fresh;
  if (execution == nullptr) result.status = makeExecution(&execution);
  if (result.status) result.status = computeOnce(execution.get());
  if (result.status) result.status = readShapes(execution.get(), &result);
  if (result.status) result.status = fetchOutputs(result.outputShapes);
  if (result.status && prepared_->fencesLater()) result.status = repeatFenced(&result);
  return result;
}

class NnapiDevice final : public hal::Device {
 public:
  NnapiDevice(std::string name, const ANeuralNetworksDevice* device, NnapiMode mode)
      : name_(std::move(name)), device_(device), mode_(mode) {}

  std::string name() const override { return name_; }
  std::string version() const override { return "1"; }
  hal::DeviceType type() const override { return hal::DeviceType::kOther; }
  int64_t featureLevel() const override { return ANeuralNetworks_getRuntimeFeatureLevel(); }
  hal::Capabilities capabilities() const override { return {}; }

  Result<std::vector<hal::OperationSupport>> supportedOperations(
      const graph::Model& model) override {
    NnapiModel built;
    HEARTH_TRY(buildNnapiModel(model, &built));
    const size_t count = model.main().operations.size();
    const auto supported = std::make_unique<bool[]>(count);
    std::vector<const ANeuralNetworksDevice*> devices = {device_};
    if (device_ == nullptr) devices = allHandles();
    HEARTH_TRY(check(
        ANeuralNetworksModel_getSupportedOperationsForDevices(
            built.main(), devices.data(), static_cast<uint32_t>(devices.size()), supported.get()),
        "getSupportedOperationsForDevices"));
    std::vector<hal::OperationSupport> answer(count);
    for (size_t i = 0; i < count; ++i) {
      answer[i].supported = supported[i];
      if (!supported[i]) answer[i].reason = "The API does not say why.";
    }
    return answer;
  }

  Result<std::shared_ptr<hal::PreparedModel>> prepareModel(
      std::shared_ptr<const graph::Model> model, const hal::PrepareOptions& options,
      hal::Cache /*cache*/) override {
    auto prepared = std::make_shared<NnapiPreparedModel>(std::move(model), mode_);
    HEARTH_TRY(prepared->prepare(device_, options));
    return prepared;
  }

 private:
  static std::vector<const ANeuralNetworksDevice*> allHandles() {
    std::vector<const ANeuralNetworksDevice*> handles;
    uint32_t count = 0;
    ANeuralNetworks_getDeviceCount(&count);
    for (uint32_t i = 0; i < count; ++i) {
      ANeuralNetworksDevice* device = nullptr;
      ANeuralNetworks_getDevice(i, &device);
      handles.push_back(device);
    }
    return handles;
  }

  const std::string name_;
  const ANeuralNetworksDevice* const device_;
  const NnapiMode mode_;
};

}  // namespace

const char* nameOf(NnapiMode mode) {
  for (const ModeName& entry : kModeNames)
    if (entry.mode == mode) return entry.name;
  return "";
}

std::vector<NnapiMode> allNnapiModes() {
  std::vector<NnapiMode> modes;
  for (const ModeName& entry : kModeNames) modes.push_back(entry.mode);
  return modes;
}

Result<NnapiMode> parseNnapiMode(std::string_view name) {
  std::string names;
  for (const ModeName& entry : kModeNames) {
    if (entry.name == name) return entry.mode;
    names += (names.empty() ? "" : ", ") + std::string(entry.name);
  }
  return fail(ErrorCode::kBadData, "There is no mode \"{}\"; there are {}.", name, names);
}

Result<std::shared_ptr<hal::Device>> connectNnapiDevice(const std::string& name, NnapiMode mode) {
  if (name.empty()) return std::make_shared<NnapiDevice>(kDefaultName, nullptr, mode);
  uint32_t count = 0;
  HEARTH_TRY(check(ANeuralNetworks_getDeviceCount(&count), "getDeviceCount"));
  for (uint32_t i = 0; i < count; ++i) {
    ANeuralNetworksDevice* device = nullptr;
    const char* known = nullptr;
    HEARTH_TRY(check(ANeuralNetworks_getDevice(i, &device), "getDevice"));
    HEARTH_TRY(check(ANeuralNetworksDevice_getName(device, &known), "getName"));
    if (known == name) return std::make_shared<NnapiDevice>(name, device, mode);
  }
  return fail(ErrorCode::kNotFound, "The C API lists no device {}.", name);
}

std::vector<DeviceFactory> nnapiDevices(NnapiMode mode) {
  std::vector<DeviceFactory> factories;
  for (const DeviceFactory& device : builtInDevices())
    factories.push_back({device.name, [name = device.name, mode] {
                           return connectNnapiDevice(name, mode);
                         }});
  factories.push_back({kDefaultName, [mode] {
                         return connectNnapiDevice("", mode);
                       }});
  return factories;
}

}  // namespace hearth::conformance
