// SPDX-License-Identifier: Apache-2.0
// `hearth bench --api nnapi`: the model of a .tflite file through the C functions of NNAPI.
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "android/NeuralNetworksExtensions.h"
#include "base/descriptor.h"
#include "base/format.h"
#include "base/sha256.h"
#include "frontends/tflite/model_file.h"
#include "graph/rank_zero.h"
#include "hearth/hearth.h"
#include "tools/cache_token.h"
#include "tools/commands.h"
#include "tools/conformance/nnapi_handles.h"
#include "tools/conformance/nnapi_model.h"
#include "tools/latency.h"
#include "tools/text_table.h"
#include "tools/watchdog.h"

namespace hearth::tools {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

constexpr uint64_t kRepeat = 20;

// Reads start reports: NNAPI writes them only to the file of HEARTH_REPORT, here one in memory.
class StartReports {
 public:
  StartReports() : file_(::memfd_create("hearth-report", MFD_CLOEXEC)) {
    ::setenv("HEARTH_REPORT", base::formatText("/proc/self/fd/{}", file_.get()).c_str(), 1);
  }
  // The last report; null if there is none.
  Json last() const {
    const uint64_t size = file_.size().value_or(0);
    std::string text(size, ' ');
    if (::pread(file_.get(), text.data(), text.size(), 0) < 0) return nullptr;
    if (text.ends_with('\n')) text.pop_back();
    const Json line = Json::parse(text.substr(text.rfind('\n') + 1), nullptr, false);
    return line.is_object() ? line.value("start", Json()) : Json();
  }

 private:
  base::Descriptor file_;
};

// NNAPI's functions return a code and log the reason. The command fails with the reason, in one
// line.
class LoggedReason {
 public:
  LoggedReason() { redirect(take, this); }
  ~LoggedReason() {
    redirect(nullptr, nullptr);
    print(last_);
  }
  LoggedReason(const LoggedReason&) = delete;
  LoggedReason& operator=(const LoggedReason&) = delete;

  // What the failure logged; its own sentence when it logged nothing.
  Failure explain(const Error& error) {
    redirect(nullptr, nullptr);
    if (last_.empty()) return error;
    return Failure(kExitFailure, std::exchange(last_, {}));
  }

 private:
  static void redirect(hearth_log_callback callback, void* user) {
    hearth_set_log_callback(HEARTH_LOG_DEFAULT, callback, user, nullptr);
  }
  static void take(hearth_log_level level, const char* message, void* user) {
    auto& last = static_cast<LoggedReason*>(user)->last_;
    if (level < HEARTH_LOG_WARN) return print(message);
    print(std::exchange(last, message));
  }
  static void print(const std::string& message) {
    if (!message.empty()) std::cerr << "hearth: " + message + "\n";
  }

  std::string last_;
};

// Checks that hearth.tflite has the prefix that the codes in the model have.
Status nameExtension() {
  conformance::ModelHandle model;
  HEARTH_TRY(conformance::check(ANeuralNetworksModel_create(conformance::Out(model)), "create"));
  int32_t type = 0;
  HEARTH_TRY(conformance::check(
      ANeuralNetworksModel_getExtensionOperandType(
          model.get(), std::string(graph::kTfliteExtensionName).c_str(), 0, &type),
      "getExtensionOperandType"));
  if (type == graph::tfliteExtensionCode(0)) return {};
  return fail(ErrorCode::kBadState, "The extension {} has another prefix than {}.",
              graph::kTfliteExtensionName, graph::kTfliteExtensionPrefix);
}

// Compiles a small model, so that the work of a process's first model is not measured.
Status startLibraries() {
  HEARTH_TRY(nameExtension());
  ndk::Model model;
  const ndk::Type type = {ANEURALNETWORKS_TENSOR_FLOAT32, {1}, 0, 0};
  const uint32_t a = model.operand(type);
  const uint32_t sum = model.operand(type);
  model.operation(ANEURALNETWORKS_ADD, {a, a, model.int32(0)}, {sum});
  model.finish({a}, {sum});
  ndk::Compilation(model).finish();
  return {};
}

Result<ANeuralNetworksDevice*> findDevice(const std::string& name) {
  for (ANeuralNetworksDevice* device : ndk::devices())
    if (ndk::nameOf(device) == name) return device;
  return fail(ErrorCode::kNotFound, "NNAPI lists no device {}.", name);
}

class NnapiBench {
 public:
  explicit NnapiBench(const RunOptions& options) : options_(options) {}

  Status compile(const graph::Model& graph, const CacheToken& token) {
    auto begin = Clock::now();
    HEARTH_TRY(conformance::buildNnapiModel(graph, &model_));
    json_["model_ms"] = millisecondsSince(begin);
    if (options_.device.empty()) {
      HEARTH_TRY(conformance::check(
          ANeuralNetworksCompilation_create(model_.main(), conformance::Out(compilation_)),
          "Compilation_create"));
    } else {
      HEARTH_ASSIGN(const ANeuralNetworksDevice* device, findDevice(options_.device));
      HEARTH_TRY(conformance::check(ANeuralNetworksCompilation_createForDevices(
                                        model_.main(), &device, 1, conformance::Out(compilation_)),
                                    "createForDevices"));
    }
    if (!options_.cacheDir.empty())
      HEARTH_TRY(
          conformance::check(ANeuralNetworksCompilation_setCaching(
                                 compilation_.get(), options_.cacheDir.c_str(), token.data()),
                             "setCaching"));
    begin = Clock::now();
    HEARTH_TRY(conformance::check(ANeuralNetworksCompilation_finish(compilation_.get()),
                                  "Compilation_finish"));
    json_["finish_ms"] = millisecondsSince(begin);
    return {};
  }

  Status run(const graph::Model& graph) {
    const graph::Subgraph& main = graph.main();
    std::mt19937 random(static_cast<unsigned>(options_.randomSeed.value_or(0)));
    conformance::ExecutionHandle execution;
    HEARTH_TRY(conformance::check(
        ANeuralNetworksExecution_create(compilation_.get(), conformance::Out(execution)),
        "Execution_create"));
    HEARTH_TRY(conformance::check(ANeuralNetworksExecution_setReusable(execution.get(), true),
                                  "setReusable"));
    std::vector<std::vector<uint8_t>> arguments;
    for (const bool isInput : {true, false}) {
      const std::vector<uint32_t>& indices = isInput ? main.inputs : main.outputs;
      for (size_t i = 0; i < indices.size(); ++i) {
        const graph::Operand& operand = main.operands[indices[i]];
        HEARTH_ASSIGN(const uint64_t bytes, graph::byteSize(operand));
        arguments.emplace_back(bytes);
        if (isInput) fill(operand.type, random, arguments.back());
        const auto index = static_cast<int32_t>(i);
        const auto set = isInput
                             ? ANeuralNetworksExecution_setInput(execution.get(), index, nullptr,
                                                                 arguments.back().data(), bytes)
                             : ANeuralNetworksExecution_setOutput(execution.get(), index, nullptr,
                                                                  arguments.back().data(), bytes);
        HEARTH_TRY(conformance::check(set, isInput ? "setInput" : "setOutput"));
      }
    }
    std::vector<double> times;
    for (uint64_t i = 0; i <= options_.repeat.value_or(kRepeat); ++i) {
      const auto begin = Clock::now();
      HEARTH_TRY(conformance::check(ANeuralNetworksExecution_compute(execution.get()), "compute"));
      times.push_back(millisecondsSince(begin));
      if (i != 0) continue;
      json_["first_inference_ms"] = times.front();
      base::Sha256 hash;
      for (size_t o = main.inputs.size(); o < arguments.size(); ++o) hash.update(arguments[o]);
      json_["outputs_sha256"] = base::toHex(hash.finish());
    }
    times.erase(times.begin());
    json_["inferences"] = times.size();
    const std::optional<double> median = percentile(std::move(times), 50);
    json_["median_ms"] = median ? Json(*median) : Json();
    return {};
  }

  Json& json() { return json_; }

 private:
  // Fills with small numbers: indices in range, floats of a sensible size.
  static void fill(graph::OperandType type, std::mt19937& random, std::vector<uint8_t>& bytes) {
    if (type == graph::OperandType::kTensorFloat32) {
      const std::span values(reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float));
      for (float& value : values) value = static_cast<float>(random() >> 8) / (1u << 24) - 0.5f;
    } else if (graph::isQuantized(type)) {
      for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random() >> 24);
    }
  }

  const RunOptions& options_;
  conformance::NnapiModel model_;
  conformance::CompilationHandle compilation_;
  Json json_ = Json::object();
};

std::string describe(const Json& json) {
  TextTable table({"step", "time"}, "lr");
  const auto add = [&](const char* name, const char* key) {
    if (json[key].is_number()) table.add({name, millisecondsText(json[key].get<double>())});
  };
  add("libraries", "libraries_ms");
  add("model file", "file_ms");
  add("NNAPI model", "model_ms");
  add("Compilation_finish", "finish_ms");
  add("first inference", "first_inference_ms");
  add("then (median)", "median_ms");
  std::string text = printable(json["model"].get<std::string>()) + "\n\n" + table.toString();
  if (json["start"].is_object()) {
    const std::string cache = json["start"].value("cache", "");
    text += base::formatText("\n  {}{}{}\n", json["start"].value("state", ""),
                             cache.empty() ? "" : "; compilation cache: ", printable(cache));
  }
  return text;
}

}  // namespace

Outcome<void> nnapiBenchCommand(const RunOptions& options) {
  const auto token = parseCacheToken(options.token);
  if (!token) return std::unexpected(token.error());
  Watchdog watchdog(options.timeoutSeconds);
  const StartReports reports;
  NnapiBench bench(options);
  Json& json = bench.json();
  json = {{"model", options.model},
          {"part", options.part.empty() ? Json(nullptr) : Json(options.part)},
          {"api", "nnapi"}};
  const auto work = [&]() -> Status {
    watchdog.beginStage("starting the libraries");
    auto begin = Clock::now();
    HEARTH_TRY(startLibraries());
    json["libraries_ms"] = millisecondsSince(begin);
    watchdog.beginStage("reading the model");
    begin = Clock::now();
    HEARTH_ASSIGN(const std::shared_ptr<tflite::ModelFile> file,
                  tflite::ModelFile::open(options.model, options.part));
    HEARTH_ASSIGN(const tflite::ImportedGraph imported, file->importSignature(options.signature));
    graph::Model graph = *imported.model;
    HEARTH_TRY_CONTEXT(graph::liftRankZeroTensors(&graph), "while making it a model of NNAPI");
    json["file_ms"] = millisecondsSince(begin);
    watchdog.beginStage("compiling the model");
    HEARTH_TRY(bench.compile(graph, *token));
    json["start"] = reports.last();
    watchdog.beginStage("running the model");
    return bench.run(graph);
  };
  LoggedReason reason;
  try {
    if (const Status status = work(); !status)
      return std::unexpected(reason.explain(status.error()));
  } catch (const ndk::Exception& exception) {
    return std::unexpected(reason.explain(Error(ErrorCode::kOpFailed, exception.what())));
  }
  watchdog.beginStage("");
  std::cout << (options.isJson ? json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"
                               : describe(json));
  return {};
}

}  // namespace hearth::tools
