// SPDX-License-Identifier: Apache-2.0
// C++17 over hearth.h, header only: handles that free themselves, exceptions for errors. The rules
// of hearth.h hold. Link with libhearth.so.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "hearth/hearth.h"

namespace hearth {

// Every function here throws this when the library reports a failure; what() is the error message.
class Exception : public std::runtime_error {
 public:
  Exception(hearth_status code, const std::string& message)
      : std::runtime_error(message), code_(code) {}
  hearth_status code() const noexcept { return code_; }

 private:
  hearth_status code_;
};

namespace detail {

inline void check(hearth_status status, hearth_error* error) {
  if (status == HEARTH_OK) return;
  std::string message = error != nullptr ? hearth_error_message(error) : "The call fails.";
  hearth_error_free(error);
  throw Exception(status, message);
}

// Calls a function of hearth.h whose last parameter is the error.
template <typename Function, typename... Args>
void call(Function function, Args... args) {
  hearth_error* error = nullptr;
  const hearth_status status = function(args..., &error);
  check(status, error);
}

inline std::string takeString(char* string) {
  const std::unique_ptr<char, void (*)(char*)> owner(string, hearth_string_free);
  return owner.get();
}

inline uint64_t nanoseconds(std::chrono::nanoseconds duration) {
  // 0 means "none" in the C API, so a time-out that has passed already becomes 1 ns.
  return duration.count() > 0 ? static_cast<uint64_t>(duration.count()) : 1;
}

}  // namespace detail

// Version of the library in use: see hearth_version_number.
inline uint32_t versionNumber() {
  return hearth_version_number();
}

// Sets where messages go: see hearth_set_log_callback. The callback must not throw.
inline void setLogCallback(hearth_log_level level, hearth_log_callback callback,
                           void* user = nullptr) {
  detail::call(hearth_set_log_callback, level, callback, user);
}

// Waits until packed weights are written for the next start: see hearth_flush.
inline void flush() {
  detail::call(hearth_flush, uint64_t{0});
}
// Throws an Exception with HEARTH_MISSED_DEADLINE_TRANSIENT when that takes longer.
inline void flush(std::chrono::nanoseconds timeout) {
  detail::call(hearth_flush, detail::nanoseconds(timeout));
}

// Sets whether exit() waits like flush(): see hearth_set_work_at_exit.
inline void setWorkAtExit(bool works) {
  hearth_set_work_at_exit(works ? 1 : 0);
}

// Registers an operator for the life of the process: see hearth_custom_operator_register.
inline void registerCustomOperator(const hearth_custom_operator& custom) {
  detail::call(hearth_custom_operator_register, &custom);
}

// NumPy's name of an element type, for example "uint8".
inline const char* typeName(hearth_type type) {
  switch (type) {
    case HEARTH_TYPE_FLOAT32:
      return "float32";
    case HEARTH_TYPE_FLOAT16:
      return "float16";
    case HEARTH_TYPE_FLOAT64:
      return "float64";
    case HEARTH_TYPE_INT8:
      return "int8";
    case HEARTH_TYPE_UINT8:
      return "uint8";
    case HEARTH_TYPE_INT16:
      return "int16";
    case HEARTH_TYPE_UINT16:
      return "uint16";
    case HEARTH_TYPE_INT32:
      return "int32";
    case HEARTH_TYPE_UINT32:
      return "uint32";
    case HEARTH_TYPE_INT64:
      return "int64";
    case HEARTH_TYPE_UINT64:
      return "uint64";
    case HEARTH_TYPE_BOOL:
      return "bool";
    case HEARTH_TYPE_INT4:
      return "int4";
    case HEARTH_TYPE_COMPLEX64:
      return "complex64";
    case HEARTH_TYPE_STRING:
      return "string";
  }
  return "unknown";
}

// Bytes of one element; 0 for int4, where two elements share a byte.
inline size_t typeSize(hearth_type type) {
  switch (type) {
    case HEARTH_TYPE_INT8:
    case HEARTH_TYPE_UINT8:
    case HEARTH_TYPE_BOOL:
      return 1;
    case HEARTH_TYPE_FLOAT16:
    case HEARTH_TYPE_INT16:
    case HEARTH_TYPE_UINT16:
      return 2;
    case HEARTH_TYPE_FLOAT32:
    case HEARTH_TYPE_INT32:
    case HEARTH_TYPE_UINT32:
      return 4;
    case HEARTH_TYPE_FLOAT64:
    case HEARTH_TYPE_INT64:
    case HEARTH_TYPE_UINT64:
    case HEARTH_TYPE_COMPLEX64:
    case HEARTH_TYPE_STRING:
      return 8;
    case HEARTH_TYPE_INT4:
      return 0;
  }
  return 0;
}

// An input or output of a compilation.
struct TensorInfo {
  std::string name;
  hearth_type type = HEARTH_TYPE_FLOAT32;
  std::vector<uint32_t> dimensions;  // 0 = not known before a run
  float scale = 0.0f;                // 0 = not quantised
  int32_t zeroPoint = 0;
  uint64_t byteSize = 0;                    // 0 = not known before a run
  std::vector<uint32_t> defaultDimensions;  // `dimensions` with the file's for the unknown ones
  uint32_t alignment = 1;                   // of memory that is used in place, and the bytes that
  uint32_t padding = 0;                     // must follow it: see hearth_execution_set_input

  // The real number that a stored one stands for.
  double dequantize(double stored) const {
    return scale == 0.0f ? stored : static_cast<double>(scale) * (stored - zeroPoint);
  }
};

struct Device {
  std::string name;
  std::string version;
  hearth_device_type type = HEARTH_DEVICE_UNKNOWN;
  int64_t featureLevel = 0;
  std::string extensions;
};

// All devices, in the order of hearth_device_get().
inline std::vector<Device> devices() {
  std::vector<Device> list(hearth_device_count());
  for (size_t i = 0; i < list.size(); ++i) {
    hearth_device_info info{};
    info.size = sizeof(info);
    detail::call(hearth_device_get, i, &info);
    list[i] = {info.name, info.version, static_cast<hearth_device_type>(info.type),
               info.feature_level, info.extensions};
  }
  return list;
}

// Where the driver of a device runs: see hearth_host_info.
struct DeviceHost {
  hearth_host_kind kind = HEARTH_HOST_NONE;
  int32_t process = 0;
  uint32_t clients = 0;
  uint64_t memoryBytes = 0;
  uint64_t restarts = 0;
};

// `index`: in the order of devices().
inline DeviceHost deviceHost(size_t index) {
  hearth_host_info info{};
  info.size = sizeof(info);
  detail::call(hearth_device_host, index, &info);
  return {static_cast<hearth_host_kind>(info.kind), info.process, info.clients, info.memory_bytes,
          info.restarts};
}

// How fast a device is, in seconds: see hearth_speed_info.
struct DeviceSpeed {
  double execution = 0;
  double operation = 0;
  double argumentByte = 0;
  double movedByte = 0;
  double float32Product = 0;
  double float16Product = 0;
  double quantizedProduct = 0;
};

// `index`: in the order of devices().
inline DeviceSpeed deviceSpeed(size_t index) {
  hearth_speed_info info{};
  info.size = sizeof(info);
  detail::call(hearth_device_speed, index, &info);
  return {info.execution,       info.operation,       info.argument_byte,    info.moved_byte,
          info.float32_product, info.float16_product, info.quantized_product};
}

// Measures the device again. Throws HEARTH_UNSUPPORTED for one that is not measured.
inline void measureDevice(size_t index) {
  detail::call(hearth_device_measure, index);
}

struct StartReport {
  hearth_start_state state = HEARTH_START_UNCACHED;
  std::string reason;
  double prepareMs = 0;
  uint64_t packedBytes = 0;
  uint64_t mappedBytes = 0;
  uint64_t activationBytes = 0;
  uint64_t sharedBytes = 0;
  uint64_t hashedBytes = 0;
  uint32_t shapes = 0;
};

struct Statistics {
  uint64_t runs = 0;
  uint64_t lastNs = 0;
  uint64_t onDeviceNs = UINT64_MAX;
  uint64_t inDriverNs = UINT64_MAX;
  uint64_t copiedBytes = 0;
};

// Options of Model::compile; the defaults are the library's.
struct CompileOptions {
  std::string signature;  // empty = the first
  std::string device;     // empty = all devices: see hearth_compile_options
  hearth_preference preference = HEARTH_PREFER_FAST_SINGLE_ANSWER;
  hearth_priority priority = HEARTH_PRIORITY_MEDIUM;
  uint32_t threads = 0;  // 0 = what HEARTH_THREADS sets, else the device's choice
  hearth_cache_policy cache = HEARTH_CACHE_DEFAULT;
  uint64_t maxActivationBytes = 0;      // 0 = half of the machine's memory
  std::chrono::nanoseconds timeout{0};  // 0 = none
  std::string store;                    // folder of the store; empty = what HEARTH_STORE sets
  uint64_t storeBytes = 0;              // its largest size; 0 = what HEARTH_STORE_SIZE sets
  std::string weightCache;              // one file in place of the store; empty = none
  hearth_preparation preparation = HEARTH_PREPARE_DEFAULT;
  hearth_tuning tuning = HEARTH_TUNING_DEFAULT;
  std::string cacheDir;  // folder for compilation caching; empty = none
  std::array<uint8_t, HEARTH_CACHE_TOKEN_BYTES> cacheToken{};
  // Other shapes of inputs than the file has, by name; "" = the only input. Errors: see
  // hearth_compile_options.
  std::map<std::string, std::vector<uint32_t>> shapes;
  hearth_kv_layout kvLayout = HEARTH_KV_AS_IN_FILE;
  std::chrono::nanoseconds longestStep{0};  // 0 = not known: see hearth_compile_options
  std::vector<std::string> outputs;         // that are wanted, by name; empty = all
};

// A run in flight. Does not own the execution, whose destructor waits for the run. Thread-safe.
class Event {
 public:
  // Waits for the run and throws its failure.
  void wait() const { detail::call(hearth_event_wait, get(), uint64_t{0}); }
  // False when the run still goes on after `timeout`; throws the run's failure.
  bool waitFor(std::chrono::nanoseconds timeout) const {
    hearth_error* error = nullptr;
    const hearth_status status = hearth_event_wait(get(), detail::nanoseconds(timeout), &error);
    if (status != HEARTH_MISSED_DEADLINE_TRANSIENT) {
      detail::check(status, error);
      return true;
    }
    // It may have ended since, and may itself have failed for want of time.
    hearth_error_free(error);
    if (!isDone()) return false;
    wait();
    return true;
  }
  bool isDone() const { return hearth_event_is_done(get()) != 0; }
  hearth_event* get() const { return handle_.get(); }

 private:
  friend class Execution;
  explicit Event(hearth_event* handle) : handle_(handle, hearth_event_free) {}
  std::unique_ptr<hearth_event, void (*)(hearth_event*)> handle_;
};

// Runs a compilation any number of times and keeps its state tensors. Used by one thread at a time.
// Keeps alive what it needs of the compilation and the model; the destructor waits for a run.
class Execution {
 public:
  // The memory must outlive its binding. The library uses it in place if its alignment allows: see
  // hearth_execution_set_input. Empty `dimensions` = the default dimensions.
  void setInput(size_t index, const void* data, size_t bytes,
                const std::vector<uint32_t>& dimensions = {}) {
    detail::call(hearth_execution_set_input, get(), index, data, bytes,
                 dimensions.empty() ? nullptr : dimensions.data(), dimensions.size());
  }
  void setOutput(size_t index, void* data, size_t bytes) {
    detail::call(hearth_execution_set_output, get(), index, data, bytes);
  }
  template <typename T>
  void setInput(size_t index, const std::vector<T>& data) {
    setInput(index, data.data(), data.size() * sizeof(T));
  }
  template <typename T>
  void setOutput(size_t index, std::vector<T>& data) {
    setOutput(index, data.data(), data.size() * sizeof(T));
  }
  // Whether `padding` bytes can be read behind all memory that is bound from now on: see
  // hearth_execution_promise_padding.
  void promisePadding(bool isPromised) {
    detail::call(hearth_execution_promise_padding, get(), isPromised ? 1 : 0);
  }

  // The strings of an input of HEARTH_TYPE_STRING, in row-major order. They are copied.
  void setInputStrings(size_t index, const std::vector<std::string>& strings,
                       const std::vector<uint32_t>& dimensions = {}) {
    std::vector<const char*> texts;
    std::vector<size_t> lengths;
    for (const std::string& text : strings) {
      texts.push_back(text.data());
      lengths.push_back(text.size());
    }
    detail::call(hearth_execution_set_input_strings, get(), index, texts.data(), lengths.data(),
                 strings.size(), dimensions.empty() ? nullptr : dimensions.data(),
                 dimensions.size());
  }
  // The string of an element of an output of HEARTH_TYPE_STRING, whose elements are uint64_t.
  std::string string(uint64_t element) const {
    const char* text = nullptr;
    size_t bytes = 0;
    detail::call(hearth_execution_string, get(), element, &text, &bytes);
    return std::string(text, bytes);
  }

  void run() { detail::call(hearth_execution_run, get(), uint64_t{0}); }
  void run(std::chrono::nanoseconds timeout) {
    detail::call(hearth_execution_run, get(), detail::nanoseconds(timeout));
  }
  Event start() {
    hearth_event* event = nullptr;
    detail::call(hearth_execution_start, get(), uint64_t{0}, &event);
    return Event(event);
  }
  Event start(std::chrono::nanoseconds timeout) {
    hearth_event* event = nullptr;
    detail::call(hearth_execution_start, get(), detail::nanoseconds(timeout), &event);
    return Event(event);
  }

  // Dimensions after the last run: see hearth_execution_output_shape.
  std::vector<uint32_t> outputShape(size_t index) const {
    std::vector<uint32_t> shape(8);
    size_t rank = shape.size();
    hearth_error* error = nullptr;
    hearth_status status = hearth_execution_output_shape(get(), index, shape.data(), &rank, &error);
    if (status != HEARTH_OK && rank > shape.size()) {
      hearth_error_free(std::exchange(error, nullptr));
      shape.resize(rank);
      status = hearth_execution_output_shape(get(), index, shape.data(), &rank, &error);
    }
    detail::check(status, error);
    shape.resize(rank);
    return shape;
  }
  void resetState() { detail::call(hearth_execution_reset_state, get()); }
  Statistics statistics() const {
    hearth_statistics statistics{};
    statistics.size = sizeof(statistics);
    detail::call(hearth_execution_statistics, static_cast<const hearth_execution*>(get()),
                 &statistics);
    return {statistics.runs, statistics.last_ns, statistics.on_device_ns, statistics.in_driver_ns,
            statistics.copied_bytes};
  }
  hearth_execution* get() const { return handle_.get(); }

 private:
  friend class Compilation;
  explicit Execution(hearth_execution* handle) : handle_(handle, hearth_execution_free) {}
  std::unique_ptr<hearth_execution, void (*)(hearth_execution*)> handle_;
};

// A signature of a model, ready to run. Thread-safe.
class Compilation {
 public:
  // Names of the devices, with ", " between them.
  std::string device() const { return hearth_compilation_device(get()); }
  std::vector<TensorInfo> inputs() const {
    return tensors(hearth_compilation_input_count(get()), hearth_compilation_input);
  }
  std::vector<TensorInfo> outputs() const {
    return tensors(hearth_compilation_output_count(get()), hearth_compilation_output);
  }
  StartReport startReport() const {
    hearth_start_report report{};
    report.size = sizeof(report);
    detail::call(hearth_compilation_start_report, get(), &report);
    return {static_cast<hearth_start_state>(report.state),
            report.reason,
            report.prepare_ms,
            report.packed_bytes,
            report.mapped_bytes,
            report.activation_bytes,
            report.shared_bytes,
            report.hashed_bytes,
            report.shapes};
  }
  std::string startReportJson() const {
    char* json = nullptr;
    detail::call(hearth_compilation_start_report_json, get(), &json);
    return detail::takeString(json);
  }
  Execution createExecution() const {
    hearth_execution* execution = nullptr;
    detail::call(hearth_execution_create, get(), &execution);
    return Execution(execution);
  }
  const hearth_compilation* get() const { return handle_.get(); }

 private:
  friend class Model;
  explicit Compilation(hearth_compilation* handle) : handle_(handle, hearth_compilation_free) {}

  template <typename Getter>
  std::vector<TensorInfo> tensors(size_t count, Getter getter) const {
    std::vector<TensorInfo> list(count);
    for (size_t i = 0; i < count; ++i) {
      hearth_tensor_info info{};
      info.size = sizeof(info);
      detail::call(getter, get(), i, &info);
      list[i].name = info.name;
      list[i].type = static_cast<hearth_type>(info.type);
      list[i].dimensions.assign(info.dimensions, info.dimensions + info.rank);
      list[i].scale = info.scale;
      list[i].zeroPoint = info.zero_point;
      list[i].byteSize = info.byte_size;
      list[i].defaultDimensions.assign(info.default_dimensions,
                                       info.default_dimensions + info.rank);
      list[i].alignment = info.alignment;
      list[i].padding = info.padding;
    }
    return list;
  }

  std::unique_ptr<hearth_compilation, void (*)(hearth_compilation*)> handle_;
};

// Lists a folder of NNAPI's compilation caching as JSON: see hearth_cache_folder_describe.
inline std::string describeCacheFolder(const std::string& folder) {
  char* json = nullptr;
  detail::call(hearth_cache_folder_describe, folder.c_str(), &json);
  return detail::takeString(json);
}

// Describes a container as JSON: see hearth_container_describe.
inline std::string describeContainer(const std::string& path) {
  char* json = nullptr;
  detail::call(hearth_container_describe, path.c_str(), &json);
  return detail::takeString(json);
}

// A .tflite file, or the model in a container that `part` names (empty = the only one).
// Thread-safe.
class Model {
 public:
  explicit Model(const std::string& path, const std::string& part = {})
      : handle_(nullptr, hearth_model_free) {
    hearth_model* model = nullptr;
    detail::call(hearth_model_load_file_part, path.c_str(), part.c_str(), &model);
    handle_.reset(model);
  }
  // The bytes are copied.
  Model(const void* data, size_t size, const std::string& part = {})
      : handle_(nullptr, hearth_model_free) {
    hearth_model* model = nullptr;
    detail::call(hearth_model_load_memory_part, data, size, part.c_str(), &model);
    handle_.reset(model);
  }

  std::vector<std::string> signatureKeys() const {
    std::vector<std::string> keys;
    for (size_t i = 0; i < hearth_model_signature_count(get()); ++i)
      keys.emplace_back(hearth_model_signature_key(get(), i));
    return keys;
  }
  std::string inspect() const {
    char* json = nullptr;
    detail::call(hearth_model_inspect, get(), &json);
    return detail::takeString(json);
  }
  // Inputs and outputs of one signature: see hearth_model_signature_describe.
  std::string describeSignature(size_t index = 0) const {
    char* json = nullptr;
    detail::call(hearth_model_signature_describe, get(), index, &json);
    return detail::takeString(json);
  }
  // With the shapes of the options: see hearth_model_inspect_shapes.
  std::string inspect(const CompileOptions& options) const {
    const RawOptions raw(options);
    char* json = nullptr;
    detail::call(hearth_model_inspect_shapes, get(), raw.get(), &json);
    return detail::takeString(json);
  }
  // What the file says about itself, as JSON: see hearth_model_metadata.
  std::string metadata() const {
    char* json = nullptr;
    detail::call(hearth_model_metadata, get(), &json);
    return detail::takeString(json);
  }
  // The labels of an output, in the language `locale` (empty = the first ones); none for an output
  // without labels.
  std::vector<std::string> labels(size_t output = 0, const std::string& locale = {}) const {
    char* text = nullptr;
    hearth_error* error = nullptr;
    const hearth_status status = hearth_model_labels(
        get(), output, locale.empty() ? nullptr : locale.c_str(), &text, &error);
    if (status == HEARTH_NOT_FOUND && locale.empty()) {
      hearth_error_free(error);
      return {};
    }
    detail::check(status, error);
    std::vector<std::string> labels;
    std::istringstream lines(detail::takeString(text));
    for (std::string line; std::getline(lines, line);) {
      while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
      labels.push_back(line);
    }
    return labels;
  }
  // A file that is packed behind the model: see hearth_model_packed_file.
  std::string packedFile(const std::string& name) const {
    const void* data = nullptr;
    size_t size = 0;
    detail::call(hearth_model_packed_file, get(), name.c_str(), &data, &size);
    return {static_cast<const char*>(data), size};
  }
  Compilation compile(const CompileOptions& options = {}) const {
    const RawOptions raw(options);
    hearth_compilation* compilation = nullptr;
    detail::call(hearth_compile, get(), raw.get(), &compilation);
    return Compilation(compilation);
  }
  // Several signatures at once, in this order: see hearth_compile_signatures.
  std::vector<Compilation> compileSignatures(const std::vector<std::string>& signatures,
                                             const CompileOptions& options = {}) const {
    const RawOptions raw(options);
    std::vector<const char*> keys;
    for (const std::string& signature : signatures) keys.push_back(signature.c_str());
    std::vector<hearth_compilation*> handles(keys.size());
    std::vector<Compilation> compilations;
    compilations.reserve(handles.size());
    detail::call(hearth_compile_signatures, get(), raw.get(), keys.data(), keys.size(),
                 handles.data());
    for (hearth_compilation* handle : handles) compilations.push_back(Compilation(handle));
    return compilations;
  }
  // Tells how compile() would start now: see hearth_model_explain_start.
  std::string explainStart(const CompileOptions& options = {}) const {
    const RawOptions raw(options);
    char* json = nullptr;
    detail::call(hearth_model_explain_start, get(), raw.get(), &json);
    return detail::takeString(json);
  }
  // Tells what an NNAPI compilation would do with its cache files: see hearth_model_explain_cache.
  std::string explainCache(const std::string& folder,
                           const std::array<uint8_t, HEARTH_CACHE_TOKEN_BYTES>& token,
                           const CompileOptions& options = {}) const {
    const RawOptions raw(options);
    char* json = nullptr;
    detail::call(hearth_model_explain_cache, get(), raw.get(), folder.c_str(), token.data(), &json);
    return detail::takeString(json);
  }
  const hearth_model* get() const { return handle_.get(); }

 private:
  // Points into the options that it is made of.
  class RawOptions {
   public:
    explicit RawOptions(const CompileOptions& options) {
      raw_.signature = options.signature.empty() ? nullptr : options.signature.c_str();
      raw_.device = options.device.empty() ? nullptr : options.device.c_str();
      raw_.preference = options.preference;
      raw_.priority = options.priority;
      raw_.threads = options.threads;
      raw_.cache = options.cache;
      raw_.max_activation_bytes = options.maxActivationBytes;
      raw_.timeout_ns = options.timeout.count() == 0 ? 0 : detail::nanoseconds(options.timeout);
      raw_.store = options.store.empty() ? nullptr : options.store.c_str();
      raw_.store_bytes = options.storeBytes;
      raw_.weight_cache = options.weightCache.empty() ? nullptr : options.weightCache.c_str();
      raw_.preparation = options.preparation;
      raw_.tuning = options.tuning;
      raw_.kv_layout = options.kvLayout;
      raw_.longest_step_ns =
          options.longestStep.count() == 0 ? 0 : detail::nanoseconds(options.longestStep);
      if (!options.cacheDir.empty()) {
        raw_.cache_dir = options.cacheDir.c_str();
        raw_.cache_token = options.cacheToken.data();
      }
      for (const auto& [name, dimensions] : options.shapes)
        shapes_.push_back(
            {sizeof(hearth_input_shape), name.c_str(), dimensions.data(), dimensions.size()});
      raw_.shapes = shapes_.data();
      raw_.shape_count = shapes_.size();
      for (const std::string& output : options.outputs) outputs_.push_back(output.c_str());
      raw_.outputs = outputs_.data();
      raw_.output_count = outputs_.size();
    }
    RawOptions(const RawOptions&) = delete;
    RawOptions& operator=(const RawOptions&) = delete;
    const hearth_compile_options* get() const { return &raw_; }

   private:
    hearth_compile_options raw_ = HEARTH_COMPILE_OPTIONS_INIT;
    std::vector<hearth_input_shape> shapes_;
    std::vector<const char*> outputs_;
  };

  std::unique_ptr<hearth_model, void (*)(hearth_model*)> handle_;
};

}  // namespace hearth
