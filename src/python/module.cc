// SPDX-License-Identifier: Apache-2.0
// hearth._hearth: the classes of the Python package.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hearth/hearth.hpp"
#include "python/execution.h"

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

// A path as os.fspath() has it.
std::string pathOf(nb::handle path) {
  return nb::cast<std::string>(nb::module_::import_("os").attr("fsdecode")(path));
}

nb::object parsed(const std::string& json) {
  return nb::module_::import_("json").attr("loads")(json);
}

// The options of compile() and explain_start(), with their defaults.
struct Options {
  std::string device;
  uint32_t threads;
  std::string cache;
  nb::object store;
  uint64_t storeBytes;
  nb::object weightCache;
  std::string preparation;
  std::string tuning;
  std::string preference;
  std::string priority;
  nb::object cacheDir;
  nb::object cacheToken;
  uint64_t maxActivationBytes;
  std::optional<double> timeout;

  CompileOptions made() const {
    CompileOptions options;
    options.device = device;
    options.threads = threads;
    options.cache = valueOf("cache", cache, kCaches);
    if (!store.is_none()) options.store = pathOf(store);
    options.storeBytes = storeBytes;
    if (!weightCache.is_none()) options.weightCache = pathOf(weightCache);
    options.preparation = valueOf("preparation", preparation, kPreparations);
    options.tuning = valueOf("tuning", tuning, kTunings);
    options.preference = valueOf("preference", preference, kPreferences);
    options.priority = valueOf("priority", priority, kPriorities);
    if (!cacheDir.is_none()) options.cacheDir = pathOf(cacheDir);
    if (!cacheToken.is_none()) {
      const auto token = nb::cast<nb::bytes>(cacheToken);
      if (token.size() != options.cacheToken.size())
        refuse("cache_token has " + std::to_string(token.size()) + " bytes. It needs " +
               std::to_string(options.cacheToken.size()) + ".");
      std::memcpy(options.cacheToken.data(), token.data(), token.size());
    }
    options.maxActivationBytes = maxActivationBytes;
    if (timeout) {
      if (!(*timeout > 0)) refuse("timeout is a positive number of seconds.");
      options.timeout =
          std::chrono::nanoseconds(static_cast<int64_t>(std::min(*timeout, 1e9) * 1e9));
    }
    return options;
  }
};

Options optionsOf(const nb::kwargs& given) {
  Options options{"",         0,          "default",
                  nb::none(), 0,          nb::none(),
                  "default",  "default",  "fast-single-answer",
                  "medium",   nb::none(), nb::none(),
                  0,          {}};
  for (const auto& [key, value] : given) {
    const auto name = nb::cast<std::string>(key);
    const auto set = [&](const char* option, auto& member) {
      if (name != option) return false;
      // None stands for the default.
      if (!value.is_none()) member = nb::cast<std::remove_reference_t<decltype(member)>>(value);
      return true;
    };
    if (set("device", options.device) || set("threads", options.threads) ||
        set("cache", options.cache) || set("store_bytes", options.storeBytes) ||
        set("preparation", options.preparation) || set("tuning", options.tuning) ||
        set("preference", options.preference) || set("priority", options.priority) ||
        set("max_activation_bytes", options.maxActivationBytes) ||
        set("timeout", options.timeout) || set("store", options.store) ||
        set("weight_cache", options.weightCache) || set("cache_dir", options.cacheDir) ||
        set("cache_token", options.cacheToken))
      continue;
    refuse("There is no option '" + name +
           "'. There are signature, device, threads, cache, store, store_bytes, weight_cache, "
           "preparation, tuning, preference, priority, cache_dir, cache_token, "
           "max_activation_bytes and timeout.");
  }
  return options;
}

// What Python sees of a compilation.
struct PyCompilation {
  explicit PyCompilation(Compilation compilation)
      : compiled(std::make_shared<const Compiled>(std::move(compilation))),
        pool(std::make_shared<RunnerPool>(compiled)) {}
  std::shared_ptr<const Compiled> compiled;
  std::shared_ptr<RunnerPool> pool;
};

nb::tuple shapeOf(const TensorInfo& tensor) {
  nb::list shape;
  for (const uint32_t dimension : tensor.dimensions)
    shape.append(dimension == 0 ? nb::object(nb::none()) : nb::object(nb::int_(dimension)));
  return nb::tuple(shape);
}

nb::tuple tensorsOf(const std::vector<TensorInfo>& tensors) {
  nb::list list;
  for (const TensorInfo& tensor : tensors) list.append(nb::cast(tensor));
  return nb::tuple(list);
}

nb::object emptyArray(const TensorInfo& tensor, std::optional<std::vector<uint32_t>> shape) {
  if (!shape) {
    if (std::ranges::count(tensor.dimensions, 0u) != 0)
      refuse("The shape of '" + tensor.name + "' is " + shapeText(tensor.dimensions) +
             ": give one without None.");
    shape = tensor.dimensions;
  }
  AlignedMemory memory(tensor, bytesOf(tensor.type, *shape));
  std::memset(memory.data(), 0, memory.bytes());
  return memory.take(*shape);
}

void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Exception& exception) {
    const nb::object made = nb::module_::import_("hearth.errors")
                                .attr("made")(static_cast<int>(exception.code()), exception.what());
    PyErr_SetObject(made.type().ptr(), made.ptr());
  }
}

NB_MODULE(_hearth, module) {
  nb::register_exception_translator(translate);

  nb::class_<TensorInfo>(module, "Tensor", "An input or output of a compilation.")
      .def_ro("name", &TensorInfo::name)
      .def_prop_ro(
          "dtype", [](const TensorInfo& tensor) { return elementTypeName(tensor.type); },
          "NumPy's name of the elements' type.")
      .def_prop_ro("shape", shapeOf, "None stands for a dimension that only a run knows.")
      .def_ro("scale", &TensorInfo::scale, "0 = not quantised.")
      .def_ro("zero_point", &TensorInfo::zeroPoint)
      .def_ro("alignment", &TensorInfo::alignment)
      .def_ro("padding", &TensorInfo::padding)
      .def("empty", emptyArray, "shape"_a = nb::none(),
           "A new array, filled with zeros, that runs use in place.")
      .def("__repr__", [](const TensorInfo& tensor) {
        return "<hearth.Tensor '" + tensor.name + "' " + elementTypeName(tensor.type) + " " +
               shapeText(tensor.dimensions) + ">";
      });

  nb::class_<Device>(module, "Device")
      .def_ro("name", &Device::name)
      .def_ro("version", &Device::version)
      .def_prop_ro("type",
                   [](const Device& device) {
                     const auto type = static_cast<size_t>(device.type);
                     return type < std::size(kDeviceTypes) ? kDeviceTypes[type] : "unknown";
                   })
      .def_ro("feature_level", &Device::featureLevel)
      .def_ro("extensions", &Device::extensions)
      .def("__repr__",
           [](const Device& device) { return "<hearth.Device '" + device.name + "'>"; });

  nb::class_<Statistics>(module, "Statistics")
      .def_ro("runs", &Statistics::runs)
      .def_ro("last_ns", &Statistics::lastNs)
      .def_ro("copied_bytes", &Statistics::copiedBytes)
      .def("__repr__", [](const Statistics& statistics) {
        return "<hearth.Statistics runs=" + std::to_string(statistics.runs) +
               " last_ns=" + std::to_string(statistics.lastNs) +
               " copied_bytes=" + std::to_string(statistics.copiedBytes) + ">";
      });

  nb::class_<Run>(module, "Run", "A run in flight. It can be awaited.")
      .def("wait", &Run::wait, "timeout"_a = nb::none(),
           "The outputs by name; None when the run still goes on after `timeout` seconds.")
      .def_prop_ro("is_done", &Run::isDone);

  nb::class_<Runner>(module, "Execution",
                     "Runs a compilation any number of times and keeps its state tensors.")
      .def("run", &Runner::run, "inputs"_a = nb::none(), nb::kw_only(), "outputs"_a = nb::none(),
           "timeout"_a = nb::none(), "Runs and returns the outputs by name.")
      .def(
          "start",
          [](const std::shared_ptr<Runner>& runner, nb::object inputs, nb::object outputs,
             std::optional<double> timeout) {
            return std::make_unique<Run>(runner, inputs, outputs, timeout);
          },
          "inputs"_a = nb::none(), nb::kw_only(), "outputs"_a = nb::none(),
          "timeout"_a = nb::none(), "Begins a run in a thread of the library.")
      .def("reset_state", &Runner::resetState, "Sets state tensors to their initial values.")
      .def_prop_ro("statistics", &Runner::statistics);

  nb::class_<PyCompilation>(module, "Compilation", "A signature of a model, ready to run.")
      .def_prop_ro("device",
                   [](const PyCompilation& self) { return self.compiled->compilation.device(); })
      .def_prop_ro("inputs",
                   [](const PyCompilation& self) { return tensorsOf(self.compiled->inputs); })
      .def_prop_ro("outputs",
                   [](const PyCompilation& self) { return tensorsOf(self.compiled->outputs); })
      .def_prop_ro(
          "start_report",
          [](const PyCompilation& self) {
            std::string json;
            {
              const nb::gil_scoped_release released;
              json = self.compiled->compilation.startReportJson();
            }
            return parsed(json);
          },
          "How the compilation started, as `hearth bench --json` has it.")
      .def("create_execution",
           [](const PyCompilation& self) { return std::make_shared<Runner>(self.compiled); })
      .def(
          "run",
          [](const PyCompilation& self, nb::object inputs, nb::object outputs,
             std::optional<double> timeout) { return self.pool->run(inputs, outputs, timeout); },
          "inputs"_a = nb::none(), nb::kw_only(), "outputs"_a = nb::none(),
          "timeout"_a = nb::none(),
          "Runs on an execution of its own, with the initial state. Any number of threads may.");

  nb::class_<Model>(module, "Model",
                    "A .tflite file, or the model `part` of a .task or .litertlm file.")
      .def(
          "__init__",
          [](Model* self, nb::object path, const std::optional<std::string>& part) {
            const std::string text = pathOf(path);
            const nb::gil_scoped_release released;
            new (self) Model(text, part.value_or(""));
          },
          "path"_a, "part"_a = nb::none())
      .def_static(
          "from_bytes",
          [](const nb::bytes& content, const std::optional<std::string>& part) {
            return std::make_unique<Model>(content.data(), content.size(), part.value_or(""));
          },
          "content"_a, "part"_a = nb::none(), "A model in memory, which is copied.")
      .def_prop_ro("signatures", &Model::signatureKeys)
      .def(
          "inspect", [](const Model& self) { return parsed(self.inspect()); },
          "What `hearth inspect --json` says.")
      .def(
          "compile",
          [](const Model& self, const std::optional<std::string>& signature, nb::kwargs given) {
            CompileOptions options = optionsOf(given).made();
            options.signature = signature.value_or("");
            std::optional<Compilation> compilation;
            {
              const nb::gil_scoped_release released;
              compilation.emplace(self.compile(options));
            }
            return std::make_unique<PyCompilation>(*std::move(compilation));
          },
          "signature"_a = nb::none(), "options"_a)
      .def(
          "compile_signatures",
          [](const Model& self, const std::vector<std::string>& signatures, nb::kwargs given) {
            const CompileOptions options = optionsOf(given).made();
            std::vector<Compilation> compilations;
            {
              const nb::gil_scoped_release released;
              compilations = self.compileSignatures(signatures, options);
            }
            nb::list list;
            for (Compilation& compilation : compilations)
              list.append(nb::cast(std::make_unique<PyCompilation>(std::move(compilation))));
            return list;
          },
          "signatures"_a, "options"_a)
      .def(
          "explain_start",
          [](const Model& self, const std::optional<std::string>& signature, nb::kwargs given) {
            CompileOptions options = optionsOf(given).made();
            options.signature = signature.value_or("");
            return parsed(self.explainStart(options));
          },
          "signature"_a = nb::none(), "options"_a, "How compile() would start now.");

  module.def(
      "describe_container",
      [](const nb::object& path) { return parsed(describeContainer(pathOf(path))); }, "path"_a,
      "What `hearth inspect --json` says of a .task or .litertlm file.");
  module.def("devices", &devices, "All devices, in the order of preference.");
  module.def("version", &hearth_version, "The version of the library, for example '0.1.0'.");
  module.def(
      "flush",
      [](std::optional<double> timeout) {
        const nb::gil_scoped_release released;
        if (!timeout) return flush();
        flush(std::chrono::nanoseconds(static_cast<int64_t>(std::clamp(*timeout, 0.0, 1e9) * 1e9)));
      },
      "timeout"_a = nb::none(), "Waits until packed weights are written for the next start.");
}

}  // namespace
}  // namespace hearth::python
