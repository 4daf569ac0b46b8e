// SPDX-License-Identifier: Apache-2.0
// `hearth run` and `hearth bench`.
#include <chrono>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/format.h"
#include "tools/cache_token.h"
#include "tools/classification.h"
#include "tools/commands.h"
#include "tools/load_model.h"
#include "tools/media/file.h"
#include "tools/media/input_file.h"
#include "tools/media/npy.h"
#include "tools/media/overlay.h"
#include "tools/run_report.h"
#include "tools/watchdog.h"

namespace hearth::tools {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kBenchRepeat = 20;
constexpr size_t kDefaultTop = 5;
constexpr uint64_t kBenchSeed = 0;
// Kernels are chosen after about 100 runs. A quick model runs many more times while the kernels are
// being built, but these take little time.
constexpr uint64_t kMostTuningRuns = 400;
constexpr double kTuningRunsMs = 30'000;

double millisecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

// Processor time of all threads of this process so far.
double processorMs() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return 1e3 * static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_nsec);
}

hearth_cache_policy cachePolicy(const std::string& mode) {
  if (mode == "off") return HEARTH_CACHE_OFF;
  if (mode == "read-only") return HEARTH_CACHE_READ_ONLY;
  if (mode == "read-write") return HEARTH_CACHE_READ_WRITE;
  if (mode == "strict") return HEARTH_CACHE_STRICT;
  return HEARTH_CACHE_DEFAULT;
}

bool isMeasuring(const Compilation& compilation) {
  return nlohmann::json::parse(compilation.startReportJson())["tuning"]["state"] == "measuring";
}

// A compiled model with the memory of its inputs and outputs.
class Session {
 public:
  Session(const RunOptions& options, Watchdog& watchdog) : options_(options), watchdog_(watchdog) {}

  Outcome<void> prepare(RunReport* report);
  Outcome<void> readInputs();
  Outcome<void> run(RunReport* report);
  Outcome<void> writeOutputs(RunReport* report);

 private:
  Outcome<void> setUpOutputs();
  Outcome<void> growOutputs();
  Outcome<void> runFirst();
  void runAgain(RunReport* report);
  void runUntilTuned(RunReport* report);
  void addClasses(const Labels& labels, RunReport* report) const;
  Outcome<void> addSegments(const Labels& labels, RunReport* report) const;

  const RunOptions& options_;
  Watchdog& watchdog_;
  std::vector<TensorInfo> inputInfos_;
  std::vector<TensorInfo> outputInfos_;
  std::vector<Array> inputs_;
  std::vector<Array> outputs_;
  std::optional<Picture> picture_;
  Clock::time_point prepared_;
  std::optional<Compilation> compilation_;
  // The last member, so that it is destroyed before the memory that it uses.
  std::optional<Execution> execution_;
};

Outcome<void> Session::prepare(RunReport* report) {
  watchdog_.beginStage("preparing the model");
  const Clock::time_point begin = Clock::now();
  CompileOptions options;
  options.signature = options_.signature;
  options.device = options_.device;
  options.threads = options_.threads;
  if (!options_.preparation.empty())
    options.preparation =
        options_.preparation == "whole" ? HEARTH_PREPARE_WHOLE : HEARTH_PREPARE_JUST_IN_TIME;
  if (options_.isUntilTuned)
    options.tuning = HEARTH_TUNING_ON;
  else if (!options_.tuning.empty())
    options.tuning = options_.tuning == "on" ? HEARTH_TUNING_ON : HEARTH_TUNING_OFF;
  options.maxActivationBytes = options_.maxActivationBytes;
  options.store = options_.store.path;
  options.cache = cachePolicy(options_.store.mode);
  options.storeBytes = options_.store.maxBytes;
  options.weightCache = options_.store.weightCache;
  options.cacheDir = options_.cacheDir;
  HEARTH_ASSIGN(options.cacheToken, parseCacheToken(options_.token));
  try {
    HEARTH_ASSIGN(const Model model, loadModel(options_.model, options_.part));
    try {
      compilation_.emplace(model.compile(options));
    } catch (const Exception& exception) {
      Failure failure(exception);
      // Only a device or a signature of the command line can be missing here.
      if (exception.code() == HEARTH_NOT_FOUND) failure.exitCode = kExitUsage;
      return std::unexpected(std::move(failure));
    }
    execution_.emplace(compilation_->createExecution());
  } catch (const Exception& exception) {
    return std::unexpected(Failure(exception));
  }
  prepared_ = Clock::now();
  report->prepareMs = std::chrono::duration<double, std::milli>(prepared_ - begin).count();
  report->startPeakRssKib = readPeakRssKib();
  report->model = options_.model;
  report->part = options_.part;
  report->device = compilation_->device();
  inputInfos_ = compilation_->inputs();
  outputInfos_ = compilation_->outputs();
  return {};
}

Outcome<void> Session::readInputs() {
  watchdog_.beginStage("reading the inputs");
  std::optional<uint64_t> seed = options_.randomSeed;
  if (options_.inputs.empty() && options_.isBench && !seed) seed = kBenchSeed;
  if (!seed && options_.inputs.size() != inputInfos_.size())
    return usage("The model takes {} input{}; {} {} given.", inputInfos_.size(),
                 inputInfos_.size() == 1 ? "" : "s", options_.inputs.size(),
                 options_.inputs.size() == 1 ? "is" : "are");
  for (size_t i = 0; i < inputInfos_.size(); ++i) {
    const TensorInfo& info = inputInfos_[i];
    if (seed) {
      TensorInfo sized = info;
      if (sized.byteSize == 0) {
        sized.dimensions = info.defaultDimensions;
        sized.byteSize = typeSize(info.type);
        for (const uint32_t dimension : sized.dimensions)
          if (__builtin_mul_overflow(sized.byteSize, uint64_t{dimension}, &sized.byteSize))
            sized.byteSize = 0;
      }
      HEARTH_ASSIGN(Array array, randomInput(sized, *seed, i));
      inputs_.push_back(std::move(array));
    } else {
      HEARTH_ASSIGN(InputValue value,
                    readInputFile(options_.inputs[i], info, options_.normalization));
      inputs_.push_back(std::move(value.array));
      if (value.picture && !picture_) picture_ = std::move(value.picture);
    }
  }
  try {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const std::vector<uint32_t> dimensions(inputs_[i].shape.begin(), inputs_[i].shape.end());
      execution_->setInput(i, inputs_[i].bytes.data(), inputs_[i].bytes.size(), dimensions);
    }
  } catch (const Exception& exception) {
    return std::unexpected(Failure(exception));
  }
  return setUpOutputs();
}

Outcome<void> Session::setUpOutputs() {
  try {
    for (size_t i = 0; i < outputInfos_.size(); ++i) {
      Array array;
      array.type = outputInfos_[i].type;
      // A buffer of unknown size starts small and grows after the first try.
      array.bytes.resize(std::max<uint64_t>(outputInfos_[i].byteSize, 64));
      outputs_.push_back(std::move(array));
      execution_->setOutput(i, outputs_[i].bytes.data(), outputs_[i].bytes.size());
    }
  } catch (const Exception& exception) {
    return std::unexpected(Failure(exception));
  }
  return {};
}

uint64_t bytesOf(hearth_type type, const std::vector<uint32_t>& shape) {
  uint64_t count = 1;
  for (const uint32_t dimension : shape) count *= dimension;
  return type == HEARTH_TYPE_INT4 ? (count + 1) / 2 : count * typeSize(type);
}

Outcome<void> Session::growOutputs() {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const uint64_t needed = bytesOf(outputs_[i].type, execution_->outputShape(i));
    if (needed <= outputs_[i].bytes.size()) continue;
    outputs_[i].bytes.assign(needed, 0);
    execution_->setOutput(i, outputs_[i].bytes.data(), outputs_[i].bytes.size());
  }
  return {};
}

Outcome<void> Session::runFirst() {
  // Each failure makes at least one buffer larger. Outputs that depend on one another may need one
  // try each.
  for (size_t tries = 0;; ++tries) {
    try {
      execution_->run();
      return {};
    } catch (const Exception& exception) {
      if (exception.code() != HEARTH_OUTPUT_INSUFFICIENT_SIZE || tries > outputs_.size())
        return std::unexpected(Failure(exception));
    }
    HEARTH_TRY(growOutputs());
  }
}

void Session::runAgain(RunReport* report) {
  const double processorStart = processorMs();
  const Clock::time_point start = Clock::now();
  execution_->run();
  report->steadyMs.push_back(millisecondsSince(start));
  report->processorMs.push_back(processorMs() - processorStart);
}

// Runs the model until its kernels are chosen. The compilation keeps the choice when it ends.
void Session::runUntilTuned(RunReport* report) {
  watchdog_.beginStage("running the model until its kernels are chosen");
  const Clock::time_point begin = Clock::now();
  while (isMeasuring(*compilation_) &&
         (report->steadyMs.size() < kMostTuningRuns || millisecondsSince(begin) < kTuningRunsMs))
    runAgain(report);
}

Outcome<void> Session::run(RunReport* report) {
  watchdog_.beginStage("running the model");
  const uint64_t repeat = options_.repeat.value_or(options_.isBench ? kBenchRepeat : 0);
  try {
    const Clock::time_point begin = Clock::now();
    HEARTH_TRY(runFirst());
    report->firstMs = millisecondsSince(begin);
    report->firstResultMs = millisecondsSince(prepared_);
    for (uint64_t i = 0; i < repeat; ++i) runAgain(report);
    if (options_.isUntilTuned) runUntilTuned(report);
    report->memory = readProcessMemory();
    report->start = compilation_->startReport();
    report->startJson = compilation_->startReportJson();
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const std::vector<uint32_t> shape = execution_->outputShape(i);
      outputs_[i].shape.assign(shape.begin(), shape.end());
      outputs_[i].bytes.resize(bytesOf(outputs_[i].type, shape));
    }
  } catch (const Exception& exception) {
    return std::unexpected(Failure(exception));
  }
  return {};
}

void Session::addClasses(const Labels& labels, RunReport* report) const {
  const bool isAsked = options_.top.has_value() || !options_.labels.empty();
  for (const bool isLenient : {false, true}) {
    if (isLenient && !isAsked) return;
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (!isClassification(outputs_[i], isLenient)) continue;
      uint64_t classCount = 1;
      for (const uint64_t dimension : outputs_[i].shape) classCount *= dimension;
      for (const ScoredClass& one :
           topClasses(outputs_[i], outputInfos_[i], options_.top.value_or(kDefaultTop))) {
        std::string label = labels.name(one.index, classCount);
        report->top.push_back(
            {one.index, label.empty() ? std::nullopt : std::optional(std::move(label)), one.score});
      }
      return;
    }
  }
}

Outcome<void> Session::addSegments(const Labels& labels, RunReport* report) const {
  std::string path = options_.overlay;
  if (path.empty() && !options_.outputDir.empty() && picture_)
    path = options_.outputDir + "/overlay.png";
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (!picture_ && options_.overlay.empty()) break;
    const std::optional<ClassMap> map = classMapOf(outputs_[i], outputInfos_[i]);
    if (!map) continue;
    // A map of class numbers does not tell how many classes there are.
    const uint64_t classCount = outputs_[i].shape.size() == 4 ? outputs_[i].shape[3] : 0;
    for (const auto& [index, pixels] : countClasses(*map)) {
      std::string label = labels.name(index, classCount);
      report->segments.push_back(
          {index, label.empty() ? std::nullopt : std::optional(std::move(label)), pixels});
    }
    if (path.empty()) return {};
    HEARTH_ASSIGN(const std::vector<uint8_t> png, encodePng(drawOverlay(*map, picture_)));
    HEARTH_TRY(writeFile(path, png));
    report->overlay = path;
    return {};
  }
  if (!options_.overlay.empty())
    return std::unexpected(Failure(
        kExitFailure, "No output of the model is a map of classes, so there is no overlay."));
  return {};
}

Outcome<void> Session::writeOutputs(RunReport* report) {
  watchdog_.beginStage("writing the outputs");
  Labels labels;
  if (!options_.labels.empty()) {
    HEARTH_ASSIGN(labels, Labels::read(options_.labels));
  }
  for (size_t i = 0; i < outputs_.size(); ++i) {
    std::string path;
    if (!options_.outputDir.empty()) {
      path = base::formatText("{}/output_{}.npy", options_.outputDir, i);
      HEARTH_TRY(writeFile(path, formatNpy(outputs_[i])));
    }
    report->outputs.push_back(
        {outputInfos_[i].name, outputs_[i].shape, outputs_[i].type, std::move(path)});
  }
  addClasses(labels, report);
  return addSegments(labels, report);
}

// Checks files that could fail the command after it has spent minutes on the model.
Outcome<void> checkFiles(const RunOptions& options) {
  if (!options.labels.empty()) HEARTH_TRY(Labels::read(options.labels));
  if (options.outputDir.empty()) return {};
  std::error_code problem;
  std::filesystem::create_directories(options.outputDir, problem);
  if (problem)
    return std::unexpected(
        Failure(kExitFailure, base::formatText("The output folder {} cannot be made: {}.",
                                               options.outputDir, problem.message())));
  const std::string probe = options.outputDir + "/.hearth_probe";
  if (const Status writable = writeFile(probe, {}); !writable) {
    return std::unexpected(
        Failure(kExitFailure, base::formatText("The output folder {} cannot be written: {}",
                                               options.outputDir, writable.error().message())));
  }
  std::filesystem::remove(probe, problem);
  return {};
}

}  // namespace

Outcome<void> runCommand(const RunOptions& options) {
  Watchdog watchdog(options.timeoutSeconds);
  HEARTH_TRY(checkFiles(options));
  RunReport report;
  Session session(options, watchdog);
  HEARTH_TRY(session.prepare(&report));
  HEARTH_TRY(session.readInputs());
  HEARTH_TRY(session.run(&report));
  HEARTH_TRY(session.writeOutputs(&report));
  watchdog.beginStage("");
  std::cout << (options.isJson ? toJson(report) : toText(report, options.isBench));
  return {};
}

}  // namespace hearth::tools
