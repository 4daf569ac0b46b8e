// SPDX-License-Identifier: Apache-2.0
// The compilation functions of hearth.h.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "api/given_shapes.h"
#include "api/handles.h"
#include "api/inspection.h"
#include "base/env.h"
#include "base/helper_thread.h"
#include "base/sha256.h"
#include "frontends/tflite/chosen_outputs.h"
#include "frontends/tflite/other_shapes.h"
#include "hal/longest_step.h"
#include "runtime/cache_explanation.h"
#include "runtime/compilation.h"
#include "runtime/device_manager.h"

using hearth::ErrorCode;
using hearth::fail;
using hearth::Result;
using hearth::Status;
using hearth::api::CompiledSignature;
using hearth::api::fillSized;
using hearth::api::guarded;
using hearth::api::nullArgument;
using hearth::api::Tensor;
using hearth::base::caught;
using hearth::runtime::CacheRequest;
using hearth::runtime::Compilation;
using hearth::runtime::CompilationOptions;
using hearth::runtime::DeviceManager;

namespace {

Result<hearth_compile_options> readOptions(const hearth_compile_options* given) {
  hearth_compile_options options = HEARTH_COMPILE_OPTIONS_INIT;
  if (given == nullptr) return options;
  HEARTH_TRY(hearth::api::readSized(*given, offsetof(hearth_compile_options, preference),
                                    "compile options", &options));
  switch (options.preference) {
    case HEARTH_PREFER_LOW_POWER:
    case HEARTH_PREFER_FAST_SINGLE_ANSWER:
    case HEARTH_PREFER_SUSTAINED_SPEED:
      break;
    default:
      return fail(ErrorCode::kBadData, "There is no preference {}.", options.preference);
  }
  switch (options.priority) {
    case HEARTH_PRIORITY_LOW:
    case HEARTH_PRIORITY_MEDIUM:
    case HEARTH_PRIORITY_HIGH:
      break;
    default:
      return fail(ErrorCode::kBadData, "There is no priority {}.", options.priority);
  }
  if (options.cache < HEARTH_CACHE_DEFAULT || options.cache > HEARTH_CACHE_STRICT)
    return fail(ErrorCode::kBadData, "There is no cache policy {}.", options.cache);
  if (options.preparation < HEARTH_PREPARE_DEFAULT ||
      options.preparation > HEARTH_PREPARE_JUST_IN_TIME)
    return fail(ErrorCode::kBadData, "There is no preparation {}.", options.preparation);
  if (options.tuning < HEARTH_TUNING_DEFAULT || options.tuning > HEARTH_TUNING_OFF)
    return fail(ErrorCode::kBadData, "There is no tuning {}.", options.tuning);
  if (options.kv_layout < HEARTH_KV_AS_IN_FILE || options.kv_layout > HEARTH_KV_BY_TOKEN)
    return fail(ErrorCode::kBadData, "There is no layout of keys and values {}.",
                options.kv_layout);
  if (options.cache_dir != nullptr && options.cache_token == nullptr)
    return nullArgument("cache_token");
  if (options.shape_count != 0 && options.shapes == nullptr) return nullArgument("shapes");
  if (options.output_count != 0 &&
      (options.outputs == nullptr ||
       std::ranges::any_of(std::span(options.outputs, options.output_count),
                           [](const char* name) { return name == nullptr; })))
    return nullArgument("outputs");
  return options;
}

Result<std::vector<Tensor>> describeTensors(const std::vector<hearth::tflite::TensorInfo>& infos) {
  std::vector<Tensor> tensors;
  for (const hearth::tflite::TensorInfo& info : infos) {
    Tensor tensor;
    tensor.name = info.name;
    HEARTH_ASSIGN(tensor.type, hearth::api::publicType(info.type));
    tensor.dimensions = info.dimensions;
    tensor.defaultDimensions = info.defaultDimensions();
    tensor.scale = info.scale;
    tensor.zeroPoint = info.zeroPoint;
    hearth::graph::Operand operand;
    operand.type = info.type;
    operand.dimensions = info.dimensions;
    operand.isRankZeroTensor = info.isRankZeroTensor;
    if (hearth::graph::isFullySpecified(operand)) {
      HEARTH_ASSIGN(tensor.byteSize, hearth::graph::byteSize(operand));
    }
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

// The shapes that the file has for its inputs. Empty for a model with known shapes.
std::vector<hearth::graph::Dimensions> expectedInputs(const hearth::graph::Model& model,
                                                      std::span<const Tensor> inputs) {
  std::vector<hearth::graph::Dimensions> shapes;
  const auto& main = model.main();
  if (std::ranges::all_of(main.inputs, [&](uint32_t input) {
        return hearth::graph::isFullySpecified(main.operands[input]);
      }))
    return shapes;
  for (const Tensor& input : inputs) shapes.push_back(input.defaultDimensions);
  // States follow the inputs of the signature; their shapes are known.
  for (size_t i = shapes.size(); i < main.inputs.size(); ++i)
    shapes.push_back(main.operands[main.inputs[i]].dimensions);
  return shapes;
}

// The driver's options about the weight store; the environment decides those that are not set.
std::map<std::string, std::string> storeOptions(const hearth_compile_options& options) {
  std::map<std::string, std::string> texts;
  switch (options.cache) {
    case HEARTH_CACHE_DEFAULT:
      break;
    case HEARTH_CACHE_OFF:
      texts["store_mode"] = "off";
      break;
    case HEARTH_CACHE_READ_ONLY:
      texts["store_mode"] = "read-only";
      break;
    case HEARTH_CACHE_READ_WRITE:
      texts["store_mode"] = "read-write";
      break;
    case HEARTH_CACHE_STRICT:
      texts["store_mode"] = "strict";
      break;
  }
  if (options.store != nullptr) texts["store"] = options.store;
  if (options.store_bytes != 0) texts["store_bytes"] = std::to_string(options.store_bytes);
  if (options.weight_cache != nullptr) texts["bundle"] = options.weight_cache;
  return texts;
}

std::optional<hearth::hal::Preparation> preparationOf(const hearth_compile_options& options) {
  if (options.preparation == HEARTH_PREPARE_DEFAULT) return std::nullopt;
  return options.preparation == HEARTH_PREPARE_WHOLE ? hearth::hal::Preparation::kWhole
                                                     : hearth::hal::Preparation::kJustInTime;
}

std::optional<bool> isTuned(const hearth_compile_options& options) {
  if (options.tuning == HEARTH_TUNING_DEFAULT) return std::nullopt;
  return options.tuning == HEARTH_TUNING_ON;
}

// A signature of a model, with the shapes and the outputs that the options give it.
struct Imported {
  hearth::tflite::ImportedGraph graph;
  bool hasOtherShapes = false;   // than the file
  bool hasFewerOutputs = false;  // than the signature
};

// NNAPI's token stands for one model, so every signature but the first gets a token derived from
// it, and so does each choice of shapes and outputs.
std::shared_ptr<const CacheRequest> cacheRequest(const hearth_model& model,
                                                 const Imported& imported, const char* folder,
                                                 const uint8_t* token) {
  const std::string& signature = imported.graph.signatureKey;
  CacheRequest request;
  request.folder = folder;
  std::copy_n(token, request.token.size(), request.token.begin());
  const auto derive = [&](const std::string& text) {
    hearth::base::Sha256 hash;
    hash.update(request.token);
    hash.update(text.data(), text.size());
    request.token = hash.finish();
  };
  if (!signature.empty() && signature != model.signatureKeys.front()) derive(signature);
  if (imported.hasOtherShapes) {
    std::string shapes;
    for (const hearth::tflite::TensorInfo& input : imported.graph.inputs)
      shapes += hearth::graph::describeDimensions(input.dimensions);
    derive(shapes);
  }
  if (imported.hasFewerOutputs) {
    std::string names = "outputs";
    for (const hearth::tflite::TensorInfo& output : imported.graph.outputs)
      names += '\n' + output.name;
    derive(names);
  }
  return std::make_shared<const CacheRequest>(std::move(request));
}

Result<CompilationOptions> runtimeOptions(const hearth_compile_options& options) {
  CompilationOptions made;
  if (options.device != nullptr) {
    HEARTH_ASSIGN(made.devices, DeviceManager::shared().select(options.device));
  }
  made.preparation = preparationOf(options);
  made.isTuned = isTuned(options);
  made.prepare.preference = static_cast<hearth::hal::Preference>(options.preference);
  made.prepare.priority = static_cast<hearth::hal::Priority>(options.priority);
  made.prepare.threads = options.threads;
  made.prepare.maxActivationBytes = options.max_activation_bytes;
  made.prepare.deadline = hearth::api::deadlineAfter(options.timeout_ns);
  made.prepare.driverOptions = storeOptions(options);
  if (options.longest_step_ns != 0) {
    constexpr uint64_t kMost = std::numeric_limits<int64_t>::max();
    made.prepare.driverOptions[hearth::hal::kLongestStepOption] =
        std::to_string(std::min(options.longest_step_ns, kMost));
  }
  return made;
}

Result<Imported> import(const hearth_model& model, const hearth_compile_options& options) {
  using hearth::tflite::Shapes;
  Imported made;
  HEARTH_ASSIGN(made.graph, model.file->importSignature(
                                options.signature == nullptr ? "" : options.signature,
                                options.shape_count == 0 ? Shapes::kAsInFile : Shapes::kOpen));
  if (options.output_count != 0) {
    HEARTH_ASSIGN(made.hasFewerOutputs,
                  hearth::tflite::chooseOutputs(std::span(options.outputs, options.output_count),
                                                &made.graph));
  }
  if (options.shape_count != 0) {
    auto given = hearth::api::giveShapes(options, &made.graph);
    if (!given)
      return std::unexpected(
          std::move(given.error()).addContext("while giving the inputs other shapes"));
    made.hasOtherShapes = *given;
  }
  if (options.kv_layout == HEARTH_KV_BY_TOKEN) {
    HEARTH_ASSIGN(const bool isExchanged, hearth::tflite::layOutCachesByToken(&made.graph));
    made.hasOtherShapes = made.hasOtherShapes || isExchanged;
  }
  return made;
}

Status compile(const hearth_model& model, const hearth_compile_options& options,
               hearth_compilation** out) {
  const auto begin = std::chrono::steady_clock::now();
  HEARTH_ASSIGN(Imported all, import(model, options));
  hearth::tflite::ImportedGraph& imported = all.graph;
  auto made = std::make_shared<CompiledSignature>();
  HEARTH_ASSIGN(made->inputs, describeTensors(imported.inputs));
  HEARTH_ASSIGN(made->outputs, describeTensors(imported.outputs));
  HEARTH_ASSIGN(CompilationOptions wanted, runtimeOptions(options));
  wanted.prepare.expectedInputs = expectedInputs(*imported.model, made->inputs);
  if (options.cache_dir != nullptr)
    wanted.cache = cacheRequest(model, all, options.cache_dir, options.cache_token);
  HEARTH_ASSIGN(made->compilation, Compilation::create(imported.model, std::move(imported.states),
                                                       wanted, DeviceManager::shared()));
  made->device = made->compilation->deviceNames();
  made->startSoFar.model = model.path;
  made->startSoFar.part = model.part;
  made->startSoFar.device = made->device;
  made->startSoFar.cache = made->compilation->cacheOutcome();
  made->startSoFar.choice = made->compilation->parts().reason;
  made->startSoFar.prepareMs = model.loadMs + hearth::api::millisecondsSince(begin);
  if (hearth::runtime::isReportWanted()) {
    hearth::runtime::StartRecord record = made->startSoFar;
    record.setReport(made->compilation->preparedModel().startReportSoFar());
    hearth::runtime::appendToReport(record);
  }
  *out = new hearth_compilation{std::move(made)};
  return {};
}

// How many signatures are compiled at once.
Result<size_t> threadLimit(const hearth_compile_options& options) {
  if (options.threads != 0) return options.threads;
  HEARTH_ASSIGN(const int64_t threads, hearth::base::envInteger(hearth::base::Env::kThreads));
  if (threads != 0) return static_cast<size_t>(threads);
  return std::max(1u, std::thread::hardware_concurrency());
}

using OwnedCompilation = std::unique_ptr<hearth_compilation, void (*)(hearth_compilation*)>;

Status compileSignatures(const hearth_model& model, const hearth_compile_options& options,
                         std::span<const char* const> signatures, hearth_compilation** out) {
  std::vector<OwnedCompilation> made;
  std::vector<Status> statuses(signatures.size());
  for (const char* signature : signatures) {
    if (signature == nullptr) return nullArgument("signatures");
    made.emplace_back(nullptr, hearth_compilation_free);
  }
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < signatures.size(); i = next++) {
      hearth_compile_options own = options;
      own.signature = signatures[i];
      hearth_compilation* compilation = nullptr;
      statuses[i] = caught([&] { return compile(model, own, &compilation); });
      made[i].reset(compilation);
    }
  };
  HEARTH_ASSIGN(const size_t limit, threadLimit(options));
  const size_t threads = std::min(limit, signatures.size());
  hearth::base::HelperThreads helpers("hearth-compile", std::max<size_t>(threads, 1) - 1, work);
  work();
  helpers.join();
  for (size_t i = 0; i < signatures.size(); ++i)
    HEARTH_TRY_CONTEXT(statuses[i], "while compiling the signature \"{}\"", signatures[i]);
  for (size_t i = 0; i < signatures.size(); ++i) out[i] = made[i].release();
  return {};
}

Status explainStart(const hearth_model& model, const hearth_compile_options& options, char** json) {
  const auto begin = std::chrono::steady_clock::now();
  HEARTH_ASSIGN(const Imported imported, import(model, options));
  HEARTH_ASSIGN(CompilationOptions wanted, runtimeOptions(options));
  HEARTH_ASSIGN(const std::vector<Tensor> inputs, describeTensors(imported.graph.inputs));
  wanted.prepare.expectedInputs = expectedInputs(*imported.graph.model, inputs);
  hearth::runtime::StartRecord record;
  HEARTH_ASSIGN(record.report,
                Compilation::explainStart(imported.graph.model, wanted, DeviceManager::shared()));
  record.prepareMs = hearth::api::millisecondsSince(begin);
  *json = hearth::api::copyString(hearth::runtime::startJson(record, 2));
  return {};
}

Status explainCache(const hearth_model& model, const hearth_compile_options& options,
                    const char* folder, const uint8_t* token, char** json) {
  HEARTH_ASSIGN(const Imported imported, import(model, options));
  HEARTH_ASSIGN(CompilationOptions wanted, runtimeOptions(options));
  wanted.cache = cacheRequest(model, imported, folder, token);
  HEARTH_ASSIGN(const std::vector<hearth::runtime::CacheExplanation> parts,
                Compilation::explainCaches(imported.graph.model, wanted, DeviceManager::shared()));
  *json = hearth::api::copyString(hearth::runtime::explanationJson(parts));
  return {};
}

Status describe(const std::vector<Tensor>& tensors, size_t index, const char* kind,
                hearth_tensor_info* info) {
  if (index >= tensors.size())
    return fail(ErrorCode::kNotFound, "There is no {} {}; the model has {}.", kind, index,
                tensors.size());
  const Tensor& tensor = tensors[index];
  hearth_tensor_info made{};
  made.name = tensor.name.c_str();
  made.type = tensor.type;
  made.rank = static_cast<uint32_t>(tensor.dimensions.size());
  made.dimensions = tensor.dimensions.data();
  made.scale = tensor.scale;
  made.zero_point = tensor.zeroPoint;
  made.byte_size = tensor.byteSize;
  made.default_dimensions = tensor.defaultDimensions.data();
  made.alignment = hearth::runtime::kPreferredAlignment;
  made.padding = hearth::runtime::kPreferredPadding;
  return fillSized(info, made);
}

uint64_t sum(const std::map<std::string, uint64_t>& bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), uint64_t{0},
                         [](uint64_t total, const auto& entry) { return total + entry.second; });
}

hearth_start_state publicState(hearth::hal::StartReport::State state) {
  switch (state) {
    case hearth::hal::StartReport::State::kCold:
      return HEARTH_START_COLD;
    case hearth::hal::StartReport::State::kWarm:
      return HEARTH_START_WARM;
    case hearth::hal::StartReport::State::kUncached:
      break;
  }
  return HEARTH_START_UNCACHED;
}

// Runs the body of a function that takes a model and options.
template <typename Body>
hearth_status withOptions(hearth_error** error, const hearth_model* model,
                          const hearth_compile_options* options, Body body) noexcept {
  return guarded(error, [&]() -> Status {
    if (model == nullptr) return nullArgument("model");
    HEARTH_ASSIGN(const hearth_compile_options read, readOptions(options));
    return body(read);
  });
}

}  // namespace

const hearth::runtime::StartRecord& CompiledSignature::start() const {
  std::call_once(startOnce_, [this] {
    start_ = startSoFar;
    start_.setReport(compilation->preparedModel().startReport());
  });
  return start_;
}

extern "C" {

void hearth_compile_options_init(hearth_compile_options* options, size_t size) {
  if (options == nullptr || size < sizeof(options->size)) return;
  const hearth_compile_options standard = HEARTH_COMPILE_OPTIONS_INIT;
  std::memset(options, 0, size);
  std::memcpy(options, &standard, std::min(size, sizeof(standard)));
  options->size = size;
}

hearth_status hearth_compile(const hearth_model* model, const hearth_compile_options* options,
                             hearth_compilation** compilation, hearth_error** error) {
  return withOptions(error, model, options, [&](const hearth_compile_options& read) -> Status {
    if (compilation == nullptr) return nullArgument("compilation");
    return compile(*model, read, compilation);
  });
}

hearth_status hearth_compile_signatures(const hearth_model* model,
                                        const hearth_compile_options* options,
                                        const char* const* signatures, size_t count,
                                        hearth_compilation** compilations, hearth_error** error) {
  return withOptions(error, model, options, [&](const hearth_compile_options& read) -> Status {
    if (signatures == nullptr && count != 0) return nullArgument("signatures");
    if (compilations == nullptr && count != 0) return nullArgument("compilations");
    return compileSignatures(*model, read, {signatures, count}, compilations);
  });
}

hearth_status hearth_model_explain_start(const hearth_model* model,
                                         const hearth_compile_options* options, char** json,
                                         hearth_error** error) {
  return withOptions(error, model, options, [&](const hearth_compile_options& read) -> Status {
    if (json == nullptr) return nullArgument("json");
    return explainStart(*model, read, json);
  });
}

hearth_status hearth_model_inspect_shapes(const hearth_model* model,
                                          const hearth_compile_options* options, char** json,
                                          hearth_error** error) {
  return withOptions(error, model, options, [&](const hearth_compile_options& read) -> Status {
    if (json == nullptr) return nullArgument("json");
    HEARTH_ASSIGN(const std::string text,
                  hearth::api::inspectModel(*model->file, DeviceManager::shared(), read));
    *json = hearth::api::copyString(text);
    return {};
  });
}

hearth_status hearth_model_explain_cache(const hearth_model* model,
                                         const hearth_compile_options* options, const char* folder,
                                         const uint8_t* token, char** json, hearth_error** error) {
  return withOptions(error, model, options, [&](const hearth_compile_options& read) -> Status {
    if (folder == nullptr) return nullArgument("folder");
    if (token == nullptr) return nullArgument("token");
    if (json == nullptr) return nullArgument("json");
    return explainCache(*model, read, folder, token, json);
  });
}

hearth_status hearth_cache_folder_describe(const char* folder, char** json, hearth_error** error) {
  return guarded(error, [&]() -> Status {
    if (folder == nullptr) return nullArgument("folder");
    if (json == nullptr) return nullArgument("json");
    HEARTH_ASSIGN(const hearth::runtime::CacheListing listing,
                  hearth::runtime::listCacheFolder(
                      folder, hearth::runtime::DeviceManager::shared().devices()));
    *json = hearth::api::copyString(hearth::runtime::listingJson(listing));
    return {};
  });
}

void hearth_compilation_free(hearth_compilation* compilation) {
  delete compilation;
}

const char* hearth_compilation_device(const hearth_compilation* compilation) {
  return compilation == nullptr ? "" : compilation->signature->device.c_str();
}

size_t hearth_compilation_input_count(const hearth_compilation* compilation) {
  return compilation == nullptr ? 0 : compilation->signature->inputs.size();
}

size_t hearth_compilation_output_count(const hearth_compilation* compilation) {
  return compilation == nullptr ? 0 : compilation->signature->outputs.size();
}

hearth_status hearth_compilation_input(const hearth_compilation* compilation, size_t index,
                                       hearth_tensor_info* info, hearth_error** error) {
  return guarded(error, [&]() -> Status {
    if (compilation == nullptr) return nullArgument("compilation");
    return describe(compilation->signature->inputs, index, "input", info);
  });
}

hearth_status hearth_compilation_output(const hearth_compilation* compilation, size_t index,
                                        hearth_tensor_info* info, hearth_error** error) {
  return guarded(error, [&]() -> Status {
    if (compilation == nullptr) return nullArgument("compilation");
    return describe(compilation->signature->outputs, index, "output", info);
  });
}

hearth_status hearth_compilation_start_report(const hearth_compilation* compilation,
                                              hearth_start_report* report, hearth_error** error) {
  return guarded(error, [&]() -> Status {
    if (compilation == nullptr) return nullArgument("compilation");
    const CompiledSignature& signature = *compilation->signature;
    const hearth::hal::StartReport& source = signature.start().report;
    hearth_start_report made{};
    made.state = publicState(source.state);
    made.reason = source.reason.c_str();
    made.prepare_ms = signature.start().prepareMs;
    made.packed_bytes = sum(source.packedBytes);
    made.mapped_bytes = source.mappedBytes;
    made.activation_bytes = source.activationBytes;
    made.shared_bytes = source.sharedBytes;
    made.hashed_bytes = source.hashedBytes;
    made.shapes = source.shapes;
    return fillSized(report, made);
  });
}

hearth_status hearth_compilation_start_report_json(const hearth_compilation* compilation,
                                                   char** json, hearth_error** error) {
  return guarded(error, [&]() -> Status {
    if (compilation == nullptr) return nullArgument("compilation");
    if (json == nullptr) return nullArgument("json");
    // Asks the driver again: the start is settled, but the report also has what happened since.
    hearth::runtime::StartRecord record = compilation->signature->startSoFar;
    record.setReport(compilation->signature->compilation->preparedModel().startReport());
    *json = hearth::api::copyString(hearth::runtime::startJson(record, 2));
    return {};
  });
}

}  // extern "C"
