// SPDX-License-Identifier: Apache-2.0
// hearth._hearth: the classes of the Python package.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hearth/hearth.hpp"
#include "python/execution.h"
#include "python/interpreter_lock.h"
#include "python/program_interpreter.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace hearth::python {
namespace {

template <typename Value>
struct Word {
  const char* name;
  Value value;
};

constexpr Word<hearth_cache_policy> kCaches[] = {{"default", HEARTH_CACHE_DEFAULT},
                                                 {"off", HEARTH_CACHE_OFF},
                                                 {"read-only", HEARTH_CACHE_READ_ONLY},
                                                 {"read-write", HEARTH_CACHE_READ_WRITE},
                                                 {"strict", HEARTH_CACHE_STRICT}};
constexpr Word<hearth_preparation> kPreparations[] = {
    {"default", HEARTH_PREPARE_DEFAULT},
    {"whole", HEARTH_PREPARE_WHOLE},
    {"just-in-time", HEARTH_PREPARE_JUST_IN_TIME}};
constexpr Word<hearth_tuning> kTunings[] = {
    {"default", HEARTH_TUNING_DEFAULT}, {"on", HEARTH_TUNING_ON}, {"off", HEARTH_TUNING_OFF}};
constexpr Word<hearth_preference> kPreferences[] = {
    {"low-power", HEARTH_PREFER_LOW_POWER},
    {"fast-single-answer", HEARTH_PREFER_FAST_SINGLE_ANSWER},
    {"sustained-speed", HEARTH_PREFER_SUSTAINED_SPEED}};
constexpr Word<hearth_priority> kPriorities[] = {{"low", HEARTH_PRIORITY_LOW},
                                                 {"medium", HEARTH_PRIORITY_MEDIUM},
                                                 {"high", HEARTH_PRIORITY_HIGH}};
constexpr const char* kDeviceTypes[] = {"unknown", "other", "cpu", "gpu", "accelerator"};

template <typename Value, size_t kCount>
Value valueOf(const char* option, const std::string& word, const Word<Value> (&words)[kCount]) {
  std::string known;
  for (const Word<Value>& each : words) {
    if (word == each.name) return each.value;
    known += (known.empty() ? "'" : ", '") + std::string(each.name) + "'";
  }
  refuse(std::string(option) + " is '" + word + "'. It may be " + known + ".");
}

std::string representationOf(nb::handle object) {
  PyObject* const text = callWithLock([&] { return PyObject_Repr(object.ptr()); });
  if (text == nullptr) throw nb::python_error();
  return nb::cast<std::string>(nb::steal(text));
}

// Bytes of anything with the buffer protocol.
class Buffer {
 public:
  explicit Buffer(nb::handle object) {
    if (callWithLock([&] { return PyObject_GetBuffer(object.ptr(), &view_, PyBUF_SIMPLE); }) != 0)
      throw nb::python_error();
  }
  ~Buffer() { PyBuffer_Release(&view_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  const void* data() const { return view_.buf; }
  size_t size() const { return static_cast<size_t>(view_.len); }

 private:
  Py_buffer view_;
};

// Of seconds that are greater than 0; what is shorter than a nanosecond is one, since 0 has a
// meaning of its own.
std::chrono::nanoseconds durationOf(const char* option, double seconds) {
  if (!(seconds > 0)) refuse(std::string(option) + " is a positive number of seconds.");
  return std::chrono::nanoseconds(
      std::max<int64_t>(1, static_cast<int64_t>(std::min(seconds, 1e9) * 1e9)));
}

// The options of compile() and explain_start(), with their defaults.
struct Options {
  std::string device;
  uint32_t threads = 0;
  std::string cache = "default";
  std::string store;
  uint64_t storeBytes = 0;
  std::string weightCache;
  std::string preparation = "default";
  std::string tuning = "default";
  std::string preference = "fast-single-answer";
  std::string priority = "medium";
  std::string cacheDir;
  std::optional<nb::bytes> cacheToken;
  uint64_t maxActivationBytes = 0;
  std::optional<double> timeout;
  std::optional<double> longestStep;
  std::map<std::string, std::vector<uint32_t>> shapes;
  std::vector<std::string> outputs;

  CompileOptions made() const {
    CompileOptions options;
    options.device = device;
    options.threads = threads;
    options.cache = valueOf("cache", cache, kCaches);
    options.store = store;
    options.storeBytes = storeBytes;
    options.weightCache = weightCache;
    options.preparation = valueOf("preparation", preparation, kPreparations);
    options.tuning = valueOf("tuning", tuning, kTunings);
    options.preference = valueOf("preference", preference, kPreferences);
    options.priority = valueOf("priority", priority, kPriorities);
    options.shapes = shapes;
    options.outputs = outputs;
    options.cacheDir = cacheDir;
    if (cacheToken) {
      if (cacheToken->size() != options.cacheToken.size())
        refuse("cache_token has " + std::to_string(cacheToken->size()) + " bytes. It needs " +
               std::to_string(options.cacheToken.size()) + ".");
      std::memcpy(options.cacheToken.data(), cacheToken->data(), cacheToken->size());
    }
    options.maxActivationBytes = maxActivationBytes;
    if (timeout) options.timeout = durationOf("timeout", *timeout);
    if (longestStep) options.longestStep = durationOf("longest_step", *longestStep);
    return options;
  }
};

[[noreturn]] void refuseClosed(const char* kind) {
  setError(HEARTH_BAD_STATE, ("The " + std::string(kind) + " is closed.").c_str());
  throw nb::python_error();
}

// What each type of option is called in a message.
constexpr const char* kindOf(const std::string&) {
  return "a text";
}
constexpr const char* kindOf(uint32_t) {
  return "an integer from 0 to 4294967295";
}
constexpr const char* kindOf(uint64_t) {
  return "an integer from 0 to 18446744073709551615";
}
constexpr const char* kindOf(const std::optional<double>&) {
  return "a number of seconds";
}
constexpr const char* kindOf(const std::optional<nb::bytes>&) {
  return "bytes";
}

constexpr const char* kindOf(const std::map<std::string, std::vector<uint32_t>>&) {
  return "shapes by the names of inputs";
}
constexpr const char* kindOf(const std::vector<std::string>&) {
  return "the names of outputs";
}

Options optionsOf(const nb::kwargs& given) {
  Options options;
  for (const auto& [key, value] : given) {
    const auto name = nb::cast<std::string>(key);
    const auto set = [&](const char* option, auto& member) {
      if (name != option) return false;
      // None stands for the default.
      if (!value.is_none() && !nb::try_cast(value, member))
        refuse(name + " is " + representationOf(value) + ". It needs " + kindOf(member) + ".");
      return true;
    };
    if (set("device", options.device) || set("threads", options.threads) ||
        set("cache", options.cache) || set("store_bytes", options.storeBytes) ||
        set("preparation", options.preparation) || set("tuning", options.tuning) ||
        set("preference", options.preference) || set("priority", options.priority) ||
        set("max_activation_bytes", options.maxActivationBytes) ||
        set("timeout", options.timeout) || set("longest_step", options.longestStep) ||
        set("store", options.store) || set("weight_cache", options.weightCache) ||
        set("shapes", options.shapes) || set("outputs", options.outputs) ||
        set("cache_dir", options.cacheDir) || set("cache_token", options.cacheToken))
      continue;
    refuse("There is no option '" + name +
           "'. There are signature, device, threads, cache, store, store_bytes, weight_cache, "
           "preparation, tuning, preference, priority, cache_dir, cache_token, "
           "max_activation_bytes, timeout, longest_step, shapes and outputs.");
  }
  return options;
}

// What Python sees of a model and of a compilation. Threads that use them go on when one is closed.
class PyModel {
 public:
  explicit PyModel(std::shared_ptr<const Model> model) : model_(std::move(model)) {}
  std::shared_ptr<const Model> get() const {
    if (model_ == nullptr) refuseClosed("model");
    return model_;
  }
  void close() { model_.reset(); }

 private:
  std::shared_ptr<const Model> model_;
};

class PyCompilation {
 public:
  explicit PyCompilation(Compilation compilation)
      : compiled_(std::make_shared<const Compiled>(std::move(compilation))),
        pool_(std::make_shared<RunnerPool>(compiled_)) {}
  std::shared_ptr<const Compiled> get() const {
    if (compiled_ == nullptr) refuseClosed("compilation");
    return compiled_;
  }
  std::shared_ptr<RunnerPool> pool() const {
    if (pool_ == nullptr) refuseClosed("compilation");
    return pool_;
  }
  void close() {
    const auto compiled = std::move(compiled_);
    const auto pool = std::move(pool_);
  }

 private:
  std::shared_ptr<const Compiled> compiled_;
  std::shared_ptr<RunnerPool> pool_;
};

nb::tuple shapeOf(const std::vector<uint32_t>& dimensions) {
  nb::list shape;
  for (const uint32_t dimension : dimensions)
    shape.append(dimension == 0 ? nb::object(nb::none()) : nb::object(nb::int_(dimension)));
  return nb::tuple(shape);
}

nb::tuple tensorsOf(const std::vector<TensorInfo>& tensors) {
  nb::list list;
  for (const TensorInfo& tensor : tensors) list.append(nb::cast(tensor));
  return nb::tuple(list);
}

// `shape`: as the tensor has it, in place of None with any size.
nb::object emptyArray(const TensorInfo& tensor, const std::vector<uint64_t>& shape) {
  const std::string wanted =
      "The tensor '" + tensor.name + "' has the shape " + shapeText(tensor) + ", not ";
  std::vector<uint32_t> dimensions;
  bool fits = shape.size() == tensor.dimensions.size();
  for (size_t i = 0; fits && i < shape.size(); ++i) {
    fits = shape[i] <= std::numeric_limits<uint32_t>::max() &&
           (tensor.dimensions[i] == 0 || shape[i] == tensor.dimensions[i]);
    dimensions.push_back(static_cast<uint32_t>(shape[i]));
  }
  if (!fits) refuse(wanted + arrayShapeText(shape) + ".");
  if (tensor.type == HEARTH_TYPE_STRING) return emptyStrings(shape);
  AlignedMemory memory(tensor, bytesOf(tensor.type, dimensions));
  std::memset(memory.data(), 0, memory.bytes());
  return memory.take(dimensions);
}

void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Exception& exception) {
    setError(exception.code(), exception.what());
  }
}

NB_MODULE(_hearth, module) {
  nb::register_exception_translator(translate);
  // Threads that the interpreter does not wait for hold objects to the end.
  nb::set_leak_warnings(false);

  nb::class_<TensorInfo>(module, "Tensor", "An input or output of a compilation.")
      .def_ro("name", &TensorInfo::name)
      .def_prop_ro(
          "dtype", [](const TensorInfo& tensor) { return elementTypeName(tensor.type); },
          "NumPy's name of the elements' type.")
      .def_prop_ro(
          "shape", [](const TensorInfo& tensor) { return shapeOf(tensor.dimensions); },
          "None stands for a dimension that only a run knows.")
      .def_prop_ro(
          "default_shape",
          [](const TensorInfo& tensor) { return shapeOf(tensor.defaultDimensions); },
          "`shape`, with what the model file was written with in place of None, often 1.")
      .def_prop_ro("_shape_text", shapeText)
      .def_ro("scale", &TensorInfo::scale, "0 = not quantised.")
      .def_ro("zero_point", &TensorInfo::zeroPoint)
      .def_ro("alignment", &TensorInfo::alignment)
      .def_ro("padding", &TensorInfo::padding)
      .def("_empty", emptyArray);

  nb::class_<Device>(module, "Device")
      .def_ro("name", &Device::name)
      .def_ro("version", &Device::version)
      .def_prop_ro("type",
                   [](const Device& device) {
                     const auto type = static_cast<size_t>(device.type);
                     return type < std::size(kDeviceTypes) ? kDeviceTypes[type] : "unknown";
                   })
      .def_ro("feature_level", &Device::featureLevel)
      .def_ro("extensions", &Device::extensions);

  nb::class_<Statistics>(module, "Statistics")
      .def_ro("runs", &Statistics::runs)
      .def_ro("last_ns", &Statistics::lastNs)
      .def_ro("copied_bytes", &Statistics::copiedBytes);

  nb::class_<Run>(module, "Run", "A run in flight. It can be awaited.")
      .def("_wait", &Run::wait, nb::arg().none())
      .def_prop_ro("is_done", &Run::isDone);

  nb::class_<Runner>(module, "Execution",
                     "Runs a compilation any number of times and keeps its state tensors.")
      .def(
          "_run",
          [](Runner& runner, nb::handle inputs, nb::handle outputs, std::optional<double> timeout) {
            return runner.run(inputs, outputs, timeout, Runner::From::kPresentState);
          },
          nb::arg().none(), nb::arg().none(), nb::arg().none())
      .def(
          "_start",
          [](const std::shared_ptr<Runner>& runner, nb::handle inputs, nb::handle outputs,
             std::optional<double> timeout) {
            return std::make_unique<Run>(runner, inputs, outputs, timeout);
          },
          nb::arg().none(), nb::arg().none(), nb::arg().none())
      .def("_bind", &Runner::bind)
      .def("_run_bound", &Runner::runBound)
      .def("_reset_state", &Runner::resetState)
      .def("_close", &Runner::close)
      .def_prop_ro("statistics", &Runner::statistics);

  nb::class_<PyCompilation>(module, "Compilation",
                            "A signature of a model, ready to run. `with` closes it at the end; "
                            "executions made of it go on.",
                            nb::dynamic_attr())
      .def_prop_ro("device",
                   [](const PyCompilation& self) { return self.get()->compilation.device(); })
      .def_prop_ro("inputs",
                   [](const PyCompilation& self) { return tensorsOf(self.get()->inputs); })
      .def_prop_ro("outputs",
                   [](const PyCompilation& self) { return tensorsOf(self.get()->outputs); })
      .def("_start_report_json",
           [](const PyCompilation& self) {
             const auto compiled = self.get();
             const Unlocked unlocked;
             return compiled->compilation.startReportJson();
           })
      .def("_create_execution",
           [](const PyCompilation& self) { return std::make_shared<Runner>(self.get()); })
      .def("_close", &PyCompilation::close)
      .def(
          "_run",
          [](const PyCompilation& self, nb::handle inputs, nb::handle outputs,
             std::optional<double> timeout) { return self.pool()->run(inputs, outputs, timeout); },
          nb::arg().none(), nb::arg().none(), nb::arg().none());

  nb::class_<PyModel>(module, "Model")
      .def("__init__",
           [](PyModel* self, const std::string& path, const std::string& part) {
             std::shared_ptr<const Model> model;
             {
               const Unlocked unlocked;
               model = std::make_shared<const Model>(path, part);
             }
             new (self) PyModel(std::move(model));
           })
      .def("__init__",
           [](PyModel* self, const nb::object& content, const std::string& part) {
             const Buffer buffer(content);
             std::shared_ptr<const Model> model;
             {
               const Unlocked unlocked;
               model = std::make_shared<const Model>(buffer.data(), buffer.size(), part);
             }
             new (self) PyModel(std::move(model));
           })
      .def("_close", &PyModel::close)
      .def_prop_ro("signatures", [](const PyModel& self) { return self.get()->signatureKeys(); })
      .def("_inspect",
           [](const PyModel& self, nb::kwargs given) {
             const auto model = self.get();
             const CompileOptions options = optionsOf(given).made();
             const Unlocked unlocked;
             return model->inspect(options);
           })
      .def("_describe_signature",
           [](const PyModel& self) {
             const auto model = self.get();
             const Unlocked unlocked;
             return model->describeSignature();
           })
      .def("_metadata",
           [](const PyModel& self) {
             const auto model = self.get();
             const Unlocked unlocked;
             return model->metadata();
           })
      .def("_labels",
           [](const PyModel& self, size_t output, const std::string& locale) {
             const auto model = self.get();
             const Unlocked unlocked;
             return model->labels(output, locale);
           })
      .def("_packed_file",
           [](const PyModel& self, const std::string& name) {
             const auto model = self.get();
             std::string content;
             {
               const Unlocked unlocked;
               content = model->packedFile(name);
             }
             return nb::bytes(content.data(), content.size());
           })
      .def("_compile",
           [](const PyModel& self, const std::string& signature, nb::kwargs given) {
             const auto model = self.get();
             CompileOptions options = optionsOf(given).made();
             options.signature = signature;
             std::optional<Compilation> compilation;
             {
               const Unlocked unlocked;
               compilation.emplace(model->compile(options));
             }
             return std::make_unique<PyCompilation>(*std::move(compilation));
           })
      .def("_compile_signatures",
           [](const PyModel& self, const std::vector<std::string>& signatures, nb::kwargs given) {
             const auto model = self.get();
             const CompileOptions options = optionsOf(given).made();
             std::vector<Compilation> compilations;
             {
               const Unlocked unlocked;
               compilations = model->compileSignatures(signatures, options);
             }
             nb::list list;
             for (Compilation& compilation : compilations)
               list.append(nb::cast(std::make_unique<PyCompilation>(std::move(compilation))));
             return list;
           })
      .def("_explain_start",
           [](const PyModel& self, const std::string& signature, nb::kwargs given) {
             const auto model = self.get();
             CompileOptions options = optionsOf(given).made();
             options.signature = signature;
             const Unlocked unlocked;
             return model->explainStart(options);
           });

  nb::class_<ProgramInterpreter>(module, "ProgramInterpreter")
      .def(nb::init<nb::bytes, int32_t>())
      .def(nb::init<const std::string&, int32_t>())
      .def("apply_delegate", &ProgramInterpreter::applyDelegate)
      .def("reset_variables", &ProgramInterpreter::resetVariables);

  nb::class_<ProgramSubgraph>(module, "ProgramSubgraph")
      .def(nb::init<std::shared_ptr<ProgramInterpreter>, const std::string&>())
      .def("resize_input", &ProgramSubgraph::resizeInput)
      .def("allocate", &ProgramSubgraph::allocate)
      .def("invoke", &ProgramSubgraph::invoke)
      .def("array",
           [](nb::handle self, int32_t index, const std::string& name) {
             return nb::cast<const ProgramSubgraph&>(self).array(self, index, name);
           })
      .def("shape", &ProgramSubgraph::shape)
      .def("strings", &ProgramSubgraph::strings)
      .def("set_strings", &ProgramSubgraph::setStrings);

  module.def("_describe_container", &describeContainer, nb::call_guard<Unlocked>());
  module.def("_devices", &devices, nb::call_guard<Unlocked>());
  module.def("_has_delegate_device", &hasDelegateDevice, nb::call_guard<Unlocked>());
  module.def("_version", &hearth_version);
  module.def(
      "_flush",
      [](std::optional<double> timeout) {
        const Unlocked unlocked;
        if (!timeout) return flush();
        flush(std::chrono::nanoseconds(static_cast<int64_t>(std::clamp(*timeout, 0.0, 1e9) * 1e9)));
      },
      nb::arg().none());
}

}  // namespace
}  // namespace hearth::python
