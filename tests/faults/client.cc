// SPDX-License-Identifier: Apache-2.0
#include "client.h"

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <new>
#include <numeric>

#include "android/NeuralNetworks.h"
#include "frontends/tflite/testing/model_writer.h"

namespace hearth::faults {
namespace {

using tflite::ModelWriter;
namespace schema = tflite::schema;

constexpr int32_t kSide = 8;
constexpr int32_t kChannels = 16;
constexpr int32_t kFilters = 32;
constexpr int32_t kRows = 64;

std::vector<uint8_t> floats(size_t count, uint32_t seed) {
  std::vector<uint8_t> bytes(count * sizeof(float));
  for (size_t i = 0; i < count; ++i) {
    seed = seed * 1664525u + 1013904223u;
    const float value = static_cast<float>(seed >> 8) / (1u << 24) - 0.5f;
    std::memcpy(bytes.data() + i * sizeof value, &value, sizeof value);
  }
  return bytes;
}

template <auto free>
struct Free {
  template <typename Object>
  void operator()(Object* object) const {
    free(object);
  }
};
template <typename Object, auto free>
using Handle = std::unique_ptr<Object, Free<free>>;

// Calls functions and keeps the status and message of the first failure.
class Calls {
 public:
  explicit Calls(Outcome* outcome) : outcome_(outcome) {}
  hearth_error** error() { return &error_; }
  bool operator()(hearth_status status) {
    if (status != HEARTH_OK) {
      outcome_->status = status;
      if (error_ != nullptr) outcome_->message = hearth_error_message(error_);
    }
    hearth_error_free(error_);
    error_ = nullptr;
    return status == HEARTH_OK;
  }

 private:
  Outcome* outcome_;
  hearth_error* error_ = nullptr;
};

}  // namespace

Folder::Folder() {
  std::string name = std::filesystem::temp_directory_path() / "hearth-faults-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) std::abort();
  path_ = name;
}

Folder::~Folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void Folder::clear() const {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(path_, ignored))
    std::filesystem::remove_all(entry.path(), ignored);
}

std::vector<uint8_t> modelBytes(int32_t classCount) {
  ModelWriter writer;
  const auto type = schema::TensorType::FLOAT32;
  const int32_t image = writer.addTensor(type, {1, kSide, kSide, kChannels});
  const int32_t row = writer.addTensor(schema::TensorType::INT32, {1});
  const int32_t filter = writer.addConstantBytes(type, {kFilters, 3, 3, kChannels},
                                                 floats(size_t{kFilters} * 9 * kChannels, 1));
  const int32_t bias = writer.addConstantBytes(type, {kFilters}, floats(kFilters, 2));
  const int32_t features = writer.addTensor(type, {1, kSide, kSide, kFilters});
  schema::Conv2DOptionsT convolution;
  convolution.padding = schema::Padding::SAME;
  convolution.stride_w = convolution.stride_h = 1;
  convolution.dilation_w_factor = convolution.dilation_h_factor = 1;
  writer.addOperator(schema::BuiltinOperator::CONV_2D, {image, filter, bias}, {features},
                     convolution);
  const int32_t width = kSide * kSide * kFilters;
  const int32_t table =
      writer.addConstantBytes(type, {kRows, width}, floats(size_t{kRows} * width, 3));
  const int32_t found = writer.addTensor(type, {1, width});
  writer.addOperator(schema::BuiltinOperator::EMBEDDING_LOOKUP, {row, table}, {found});
  const int32_t flat = writer.addTensor(type, {1, width});
  writer.addOperator(schema::BuiltinOperator::RESHAPE, {features, writer.ints({1, width})}, {flat});
  const int32_t sum = writer.addTensor(type, {1, width});
  writer.addOperator(schema::BuiltinOperator::ADD, {flat, found}, {sum}, schema::AddOptionsT());
  const int32_t weights = writer.addConstantBytes(
      type, {classCount, width}, floats(static_cast<size_t>(classCount) * width, 4));
  const int32_t biases = writer.addConstantBytes(type, {classCount}, floats(classCount, 5));
  const int32_t classes = writer.addTensor(type, {1, classCount});
  writer.addOperator(schema::BuiltinOperator::FULLY_CONNECTED, {sum, weights, biases}, {classes},
                     schema::FullyConnectedOptionsT());
  writer.setArguments({image, row}, {classes});
  return writer.write();
}

void writeFile(const std::string& path, const std::vector<uint8_t>& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

namespace {

Outcome liveOnce(const Life& life, const std::function<void()>& between) {
  Outcome outcome;
  Calls ok(&outcome);
  static const std::vector<uint8_t> image = floats(size_t{kSide} * kSide * kChannels, 6);
  static const int32_t row = kRows - 3;
  std::vector<float> result;

  hearth_model* rawModel = nullptr;
  if (!ok(hearth_model_load_file(life.model.c_str(), &rawModel, ok.error()))) return outcome;
  const Handle<hearth_model, hearth_model_free> model(rawModel);
  hearth_compile_options options = HEARTH_COMPILE_OPTIONS_INIT;
  options.threads = life.threads;
  options.cache = life.cache;
  options.preparation = life.preparation;
  if (!life.store.empty()) options.store = life.store.c_str();
  if (!life.bundle.empty()) options.weight_cache = life.bundle.c_str();
  constexpr std::array<uint8_t, HEARTH_CACHE_TOKEN_BYTES> token{1};
  if (!life.cacheFolder.empty()) {
    options.cache_dir = life.cacheFolder.c_str();
    options.cache_token = token.data();
  }
  if (!life.device.empty()) options.device = life.device.c_str();
  hearth_compilation* rawCompilation = nullptr;
  if (!ok(hearth_compile(model.get(), &options, &rawCompilation, ok.error()))) return outcome;
  const Handle<hearth_compilation, hearth_compilation_free> compilation(rawCompilation);
  hearth_tensor_info output{};
  output.size = sizeof output;
  if (!ok(hearth_compilation_output(compilation.get(), 0, &output, ok.error()))) return outcome;
  result.resize(output.byte_size / sizeof(float));
  hearth_execution* rawExecution = nullptr;
  if (!ok(hearth_execution_create(compilation.get(), &rawExecution, ok.error()))) return outcome;
  const Handle<hearth_execution, hearth_execution_free> execution(rawExecution);
  if (!ok(hearth_execution_set_input(execution.get(), 0, image.data(), image.size(), nullptr, 0,
                                     ok.error())) ||
      !ok(hearth_execution_set_input(execution.get(), 1, &row, sizeof row, nullptr, 0,
                                     ok.error())) ||
      !ok(hearth_execution_set_output(execution.get(), 0, result.data(),
                                      result.size() * sizeof(float), ok.error())))
    return outcome;
  if (between) between();
  if (life.isStarted) {
    hearth_event* rawEvent = nullptr;
    if (!ok(hearth_execution_start(execution.get(), 0, &rawEvent, ok.error()))) return outcome;
    const Handle<hearth_event, hearth_event_free> event(rawEvent);
    if (!ok(hearth_event_wait(event.get(), 0, ok.error()))) return outcome;
  } else if (!ok(hearth_execution_run(execution.get(), 0, ok.error()))) {
    return outcome;
  }
  hearth_start_report report{};
  report.size = sizeof report;
  if (!ok(hearth_compilation_start_report(compilation.get(), &report, ok.error()))) return outcome;
  outcome.state = static_cast<hearth_start_state>(report.state);
  outcome.reason = report.reason;
  outcome.result = std::move(result);
  return outcome;
}

NnapiOutcome liveOnceWithNnapi() {
  constexpr uint32_t kIn = 96;
  constexpr uint32_t kOut = 64;
  static const std::vector<uint8_t> weights = floats(size_t{kIn} * kOut, 7);
  static const std::vector<uint8_t> biases = floats(kOut, 8);
  static const std::vector<uint8_t> input = floats(kIn, 9);
  NnapiOutcome outcome;
  const auto ok = [&](int code) {
    if (outcome.code == 0) outcome.code = code;
    return code == ANEURALNETWORKS_NO_ERROR;
  };
  const std::array<uint32_t, 2> inShape{1, kIn};
  const std::array<uint32_t, 2> weightShape{kOut, kIn};
  const std::array<uint32_t, 1> biasShape{kOut};
  const std::array<uint32_t, 2> outShape{1, kOut};
  const auto tensor = [](const auto& shape) {
    return ANeuralNetworksOperandType{ANEURALNETWORKS_TENSOR_FLOAT32,
                                      static_cast<uint32_t>(shape.size()), shape.data(), 0, 0};
  };
  const ANeuralNetworksOperandType in = tensor(inShape);
  const ANeuralNetworksOperandType weight = tensor(weightShape);
  const ANeuralNetworksOperandType bias = tensor(biasShape);
  const ANeuralNetworksOperandType out = tensor(outShape);
  const ANeuralNetworksOperandType fuse{ANEURALNETWORKS_INT32, 0, nullptr, 0, 0};
  const int32_t none = ANEURALNETWORKS_FUSED_NONE;
  const std::array<uint32_t, 4> inputs{0, 1, 2, 3};
  const uint32_t graphInput = 0;
  const uint32_t graphOutput = 4;

  ANeuralNetworksModel* rawModel = nullptr;
  if (!ok(ANeuralNetworksModel_create(&rawModel))) return outcome;
  const Handle<ANeuralNetworksModel, ANeuralNetworksModel_free> model(rawModel);
  for (const ANeuralNetworksOperandType* type : {&in, &weight, &bias, &fuse, &out})
    if (!ok(ANeuralNetworksModel_addOperand(rawModel, type))) return outcome;
  if (!ok(ANeuralNetworksModel_setOperandValue(rawModel, 1, weights.data(), weights.size())) ||
      !ok(ANeuralNetworksModel_setOperandValue(rawModel, 2, biases.data(), biases.size())) ||
      !ok(ANeuralNetworksModel_setOperandValue(rawModel, 3, &none, sizeof none)) ||
      !ok(ANeuralNetworksModel_addOperation(rawModel, ANEURALNETWORKS_FULLY_CONNECTED, 4,
                                            inputs.data(), 1, &graphOutput)) ||
      !ok(ANeuralNetworksModel_identifyInputsAndOutputs(rawModel, 1, &graphInput, 1,
                                                        &graphOutput)) ||
      !ok(ANeuralNetworksModel_finish(rawModel)))
    return outcome;
  ANeuralNetworksCompilation* rawCompilation = nullptr;
  if (!ok(ANeuralNetworksCompilation_create(rawModel, &rawCompilation))) return outcome;
  const Handle<ANeuralNetworksCompilation, ANeuralNetworksCompilation_free> compilation(
      rawCompilation);
  if (!ok(ANeuralNetworksCompilation_finish(rawCompilation))) return outcome;

  // Events must be freed before the executions, and these before the memory that they write to.
  std::array<std::vector<float>, 3> results;
  for (std::vector<float>& result : results) result.resize(kOut);
  std::array<Handle<ANeuralNetworksExecution, ANeuralNetworksExecution_free>, 3> executions;
  std::array<Handle<ANeuralNetworksEvent, ANeuralNetworksEvent_free>, 2> events;
  for (size_t i = 0; i < executions.size(); ++i) {
    ANeuralNetworksExecution* rawExecution = nullptr;
    if (!ok(ANeuralNetworksExecution_create(rawCompilation, &rawExecution))) return outcome;
    executions[i].reset(rawExecution);
    if (!ok(ANeuralNetworksExecution_setInput(rawExecution, 0, nullptr, input.data(),
                                              input.size())) ||
        !ok(ANeuralNetworksExecution_setOutput(rawExecution, 0, nullptr, results[i].data(),
                                               kOut * sizeof(float))))
      return outcome;
  }
  if (!ok(ANeuralNetworksExecution_compute(executions[0].get()))) return outcome;
  ANeuralNetworksEvent* rawEvent = nullptr;
  if (!ok(ANeuralNetworksExecution_startCompute(executions[1].get(), &rawEvent))) return outcome;
  events[0].reset(rawEvent);
  rawEvent = nullptr;
  const ANeuralNetworksEvent* const dependency = events[0].get();
  if (!ok(ANeuralNetworksExecution_startComputeWithDependencies(executions[2].get(), &dependency, 1,
                                                                0, &rawEvent)))
    return outcome;
  events[1].reset(rawEvent);
  for (const auto& event : events)
    if (!ok(ANeuralNetworksEvent_wait(event.get()))) return outcome;
  for (const std::vector<float>& result : results)
    outcome.results.push_back(std::accumulate(result.begin(), result.end(), 0.0f));
  return outcome;
}

}  // namespace

Outcome live(const Life& life, const std::function<void()>& between) {
  try {
    return liveOnce(life, between);
  } catch (const std::bad_alloc&) {
    // A failed allocation of one of this file's own functions.
    Outcome outcome;
    outcome.status = HEARTH_OUT_OF_MEMORY;
    return outcome;
  }
}

NnapiOutcome liveWithNnapi() {
  try {
    return liveOnceWithNnapi();
  } catch (const std::bad_alloc&) {
    NnapiOutcome outcome;
    outcome.code = ANEURALNETWORKS_OUT_OF_MEMORY;
    return outcome;
  }
}

}  // namespace hearth::faults
