// SPDX-License-Identifier: Apache-2.0
// `hearth devices --probe`: what an external delegate for TensorFlow Lite makes of a model.
#include <stdlib.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/env.h"
#include "base/format.h"
#include "hal/driver_manifest.h"
#include "tools/commands.h"
#include "tools/latency.h"
#include "tools/load_model.h"
#include "tools/media/elements.h"
#include "tools/media/input_file.h"
#include "tools/text_table.h"
#include "tools/watchdog.h"

namespace hearth::tools {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

constexpr char kCpu[] = "hearth-cpu";
constexpr uint64_t kSeed = 1;
constexpr size_t kRuns = 20;
constexpr double kMedian = 50;

// "vx-delegate" for libvx_delegate.so.2.
std::string deviceName(const std::filesystem::path& library) {
  std::string name = library.filename().string();
  name = name.substr(0, name.find(".so"));
  if (name.starts_with("lib")) name = name.substr(3);
  for (char& letter : name)
    if (std::isalnum(static_cast<unsigned char>(letter)) == 0) letter = '-';
  return name.empty() ? "delegate" : name;
}

// The object of "KEY=VALUE" texts.
Outcome<Json> fields(const std::vector<std::string>& texts, const char* option) {
  Json object = Json::object();
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    if (equals == 0 || equals == std::string::npos)
      return usage("The option {} is \"{}\", it must be KEY=VALUE.", option, text);
    object[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return object;
}

Outcome<Json> manifestOf(const ProbeOptions& options) {
  std::error_code error;
  const std::filesystem::path library = std::filesystem::canonical(options.library, error);
  if (error || !std::filesystem::is_regular_file(library, error))
    return usage("There is no library {}.", options.library);
  HEARTH_ASSIGN(const Json given, fields(options.options, "--option"));
  HEARTH_ASSIGN(const Json variables, fields(options.variables, "--variable"));
  Json delegate = {{"library", library.string()}};
  if (!given.empty()) delegate["options"] = given;
  if (!variables.empty()) delegate["variables"] = variables;
  if (!options.version.empty()) delegate["tflite"] = options.version;
  Json needs = {{"code", true}};
  if (!options.devices.empty()) needs["devices"] = options.devices;
  if (!options.folders.empty()) needs["read_write"] = options.folders;
  Json manifest = {{"name", deviceName(library)},
                   {"delegate", std::move(delegate)},
                   {"needs", std::move(needs)}};
  if (!options.customOperators.empty()) manifest["custom_operators"] = options.customOperators;
  return manifest;
}

// A folder with the manifest, which goes with this object.
class ManifestFolder {
 public:
  ManifestFolder() = default;
  ManifestFolder(const ManifestFolder&) = delete;
  ManifestFolder& operator=(const ManifestFolder&) = delete;
  ~ManifestFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }

  // Lets the library find the device of the manifest before all others.
  Status install(const Json& manifest) {
    std::string pattern = base::envString(base::Env::kTemporary) + "/hearth-probe-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr)
      return std::unexpected(base::errnoError(errno, "Making the folder " + pattern));
    path_ = pattern;
    const std::string file = path_ + "/probe.json";
    std::ofstream(file) << manifest.dump();
    HEARTH_TRY(hal::readDriverManifest(file));
    const std::string others = base::envString(base::Env::kDriverPath);
    ::setenv(base::environmentVariable(base::Env::kDriverPath).name,
             (others.empty() ? path_ : path_ + ":" + others).c_str(), 1);
    return {};
  }

 private:
  std::string path_;
};

// What the delegate's device and the processor make of one model.
class Trial {
 public:
  Trial(const Model& model, const std::string& device) : model_(model), device_(device) {}

  // Adds "operations", and where the device takes any "devices", those that the model is divided
  // among; where these are not the processor alone also "ready_ms" and "run_ms", and "results"
  // where the processor can compute the model, too.
  Outcome<void> run(Json* report);

 private:
  struct Side {
    double readyMs = 0;
    double runMs = 0;
    std::string device;
    std::vector<Array> outputs;  // empty where they cannot be compared
  };

  // The first signature of the model, with the shapes that the file has by default in place of
  // unknown ones.
  Outcome<Json> signature();
  Outcome<Json> claims(const Json& signature) const;
  Outcome<Side> measure(const std::string& device) const;
  static Json compared(const std::vector<Array>& own, const std::vector<Array>& right);

  const Model& model_;
  const std::string& device_;
  std::map<std::string, std::vector<uint32_t>> shapes_;
};

Outcome<Json> Trial::signature() {
  const auto first = [](const Json& told) -> Outcome<Json> {
    const Json& signatures = told.at("signatures");
    if (signatures.empty())
      return std::unexpected(Failure(kExitFailure, "The model has no entry."));
    const Json& problem = signatures[0]["problem"];
    if (!problem.is_null())
      return std::unexpected(Failure(kExitFailure, problem.get<std::string>()));
    return signatures[0];
  };
  HEARTH_ASSIGN(Json told, first(Json::parse(model_.inspect())));
  for (const Json& input : told["inputs"])
    if (std::ranges::contains(input["shape"].get<std::vector<uint32_t>>(), 0u))
      shapes_[input["name"].get<std::string>()] =
          input["default_shape"].get<std::vector<uint32_t>>();
  if (shapes_.empty()) return told;
  CompileOptions options;
  options.shapes = shapes_;
  return first(Json::parse(model_.inspect(options)));
}

Outcome<Json> Trial::claims(const Json& signature) const {
  size_t all = 0;
  size_t taken = 0;
  Json refused = Json::array();
  std::map<std::pair<std::string, std::string>, size_t> places;
  for (const Json& device : signature["devices"])
    if (device["device"] == device_ && !device["problem"].is_null())
      return std::unexpected(Failure(kExitFailure, device["problem"].get<std::string>()));
  for (const Json& operation : signature["operations"])
    for (const Json& answer : operation["devices"]) {
      if (answer["device"] != device_) continue;
      ++all;
      if (answer["supported"].get<bool>()) {
        ++taken;
        continue;
      }
      const auto key =
          std::pair(operation["type"].get<std::string>(), answer["reason"].get<std::string>());
      const auto [place, isNew] = places.emplace(key, refused.size());
      if (isNew)
        refused.push_back({{"type", key.first}, {"count", 1}, {"reason", key.second}});
      else
        refused[place->second]["count"] = refused[place->second]["count"].get<size_t>() + 1;
    }
  return Json{{"count", all}, {"taken", taken}, {"refused", std::move(refused)}};
}

Outcome<Trial::Side> Trial::measure(const std::string& device) const {
  Side side;
  CompileOptions options;
  options.device = device;
  options.cache = HEARTH_CACHE_OFF;
  options.shapes = shapes_;
  const Clock::time_point begin = Clock::now();
  const Compilation compilation = model_.compile(options);
  Execution execution = compilation.createExecution();
  side.readyMs = millisecondsSince(begin);
  side.device = compilation.device();
  const std::vector<TensorInfo> inputs = compilation.inputs();
  const std::vector<TensorInfo> outputs = compilation.outputs();
  std::vector<Array> values;
  for (size_t i = 0; i < inputs.size(); ++i) {
    HEARTH_ASSIGN(Array value, randomInput(inputs[i], kSeed, i));
    values.push_back(std::move(value));
    execution.setInput(i, values[i].bytes.data(), values[i].bytes.size());
  }
  for (const TensorInfo& output : outputs) {
    if (output.byteSize == 0)
      return usage(
          "The size of the output \"{}\" is not known before a run; hearth run runs such "
          "a model.",
          output.name);
    Array array;
    array.type = output.type;
    array.shape.assign(output.dimensions.begin(), output.dimensions.end());
    array.bytes.resize(output.byteSize);
    side.outputs.push_back(std::move(array));
  }
  for (size_t i = 0; i < side.outputs.size(); ++i)
    execution.setOutput(i, side.outputs[i].bytes.data(), side.outputs[i].bytes.size());
  execution.run();
  std::vector<double> times;
  for (size_t i = 0; i < kRuns; ++i) {
    // A model with a state begins anew, so that both sides compute the same.
    execution.resetState();
    const Clock::time_point start = Clock::now();
    execution.run();
    times.push_back(millisecondsSince(start));
  }
  side.runMs = *percentile(std::move(times), kMedian);
  return side;
}

Json Trial::compared(const std::vector<Array>& own, const std::vector<Array>& right) {
  double greatest = 0;
  size_t different = 0;
  bool hasNumbers = true;
  for (size_t i = 0; i < own.size(); ++i) {
    if (own[i].bytes == right[i].bytes) continue;
    const std::vector<double> left = toNumbers(own[i]);
    const std::vector<double> other = toNumbers(right[i]);
    for (size_t k = 0; k < left.size(); ++k) {
      const double distance = std::abs(left[k] - other[k]);
      different += left[k] == other[k] ? 0 : 1;
      hasNumbers &= !std::isnan(distance);
      greatest = std::max(greatest, std::isnan(distance) ? 0.0 : distance);
    }
  }
  Json result = {{"different_elements", different}, {"greatest_difference", greatest}};
  if (!hasNumbers) result["has_nan"] = true;
  return result;
}

Outcome<void> Trial::run(Json* report) {
  HEARTH_ASSIGN(const Json told, signature());
  HEARTH_ASSIGN((*report)["operations"], claims(told));
  const Json& operations = (*report)["operations"];
  if (operations["taken"] == 0) return {};
  // Custom operations that only the delegate knows have nothing to be compared with.
  const bool isComparable = std::ranges::any_of(told["devices"], [&](const Json& device) {
    return device["device"] == kCpu && device["operations_taken"] == operations["count"];
  });
  if (!isComparable) {
    HEARTH_ASSIGN(const Side alone, measure(""));
    (*report)["devices"] = alone.device;
    (*report)["ready_ms"] = {{"delegate", alone.readyMs}};
    (*report)["run_ms"] = {{"delegate", alone.runMs}};
    return {};
  }
  HEARTH_ASSIGN(const Side right, measure(kCpu));
  HEARTH_ASSIGN(const Side own, measure(operations["taken"] == operations["count"] ? device_ : ""));
  (*report)["devices"] = own.device;
  if (own.device == kCpu) return {};
  (*report)["ready_ms"] = {{"delegate", own.readyMs}, {"cpu", right.readyMs}};
  (*report)["run_ms"] = {{"delegate", own.runMs}, {"cpu", right.runMs}};
  (*report)["results"] = compared(own.outputs, right.outputs);
  return {};
}

std::string trialText(const Json& report) {
  const Json& operations = report["operations"];
  std::string out =
      base::formatText("  operations  it takes {} of {}\n", operations["taken"].get<size_t>(),
                       operations["count"].get<size_t>());
  for (const Json& refused : operations["refused"])
    out += base::formatText("              not {} {}: {}\n", refused["count"].get<size_t>(),
                            printable(refused["type"].get<std::string>()),
                            printable(refused["reason"].get<std::string>()));
  if (!report.contains("devices")) return out;
  if (!report.contains("ready_ms"))
    return out +
           base::formatText("  runs on     {} alone: the parts are not worth the copies\n", kCpu);
  const auto row = [&](const char* name, const Json& times) {
    out += base::formatText("  {:<11} {}", name, millisecondsText(times["delegate"].get<double>()));
    if (times.contains("cpu"))
      out += base::formatText("; {} takes {}", kCpu, millisecondsText(times["cpu"].get<double>()));
    out += "\n";
  };
  out += base::formatText("  runs on     {}\n", printable(report["devices"].get<std::string>()));
  row("ready in", report["ready_ms"]);
  row("inference", report["run_ms"]);
  if (!report.contains("results"))
    return out +
           base::formatText("  results     not compared: {} cannot compute all of it\n", kCpu);
  const Json& results = report["results"];
  const auto different = results["different_elements"].get<size_t>();
  out += different == 0 ? base::formatText("  results     those of {}, to the last bit\n", kCpu)
                        : base::formatText(
                              "  results     {} elements differ from {}'s, by at most "
                              "{:.6g}{}\n",
                              different, kCpu, results["greatest_difference"].get<double>(),
                              results.contains("has_nan") ? "; some are no numbers" : "");
  return out;
}

}  // namespace

Outcome<void> probeCommand(const DevicesOptions& options) {
  HEARTH_ASSIGN(const Json manifest, manifestOf(options.probe));
  ManifestFolder folder;
  HEARTH_TRY(folder.install(manifest));
  const auto name = manifest["name"].get<std::string>();
  Json report;
  Watchdog watchdog(0);
  watchdog.beginStage("trying the delegate");
  try {
    const std::vector<Device> all = devices();
    const auto device = std::ranges::find(all, name, &Device::name);
    if (device == all.end())
      return std::unexpected(Failure(
          kExitFailure, base::formatText("{} makes no device; the log says why.",
                                         manifest["delegate"]["library"].get<std::string>())));
    report = {{"device", name}, {"version", device->version}, {"manifest", manifest}};
    if (!options.probe.model.empty()) {
      HEARTH_ASSIGN(const Model model, loadModel(options.probe.model, ""));
      HEARTH_TRY(Trial(model, name).run(&report));
    }
  } catch (const Exception& exception) {
    return std::unexpected(Failure(exception));
  }
  watchdog.beginStage("");
  if (options.isJson) {
    std::cout << report.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
    return {};
  }
  std::cout << printable(report["version"].get<std::string>()) << "\n\n";
  if (report.contains("operations")) std::cout << trialText(report) << "\n";
  std::cout << "Its manifest, for a file " << name << ".json in a folder of HEARTH_DRIVER_PATH:\n\n"
            << manifest.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
  return {};
}

}  // namespace hearth::tools
