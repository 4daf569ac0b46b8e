// SPDX-License-Identifier: Apache-2.0
// `hearth run` and `hearth bench`.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <system_error>

#include "base/format.h"
#include "tools/cache_token.h"
#include "tools/classification.h"
#include "tools/commands.h"
#include "tools/detection.h"
#include "tools/input_shapes.h"
#include "tools/key_points.h"
#include "tools/latency.h"
#include "tools/load_model.h"
#include "tools/media/drawing.h"
#include "tools/media/elements.h"
#include "tools/media/file.h"
#include "tools/media/input_file.h"
#include "tools/media/npy.h"
#include "tools/media/overlay.h"
#include "tools/model_facts.h"
#include "tools/run_report.h"
#include "tools/text_input.h"
#include "tools/watchdog.h"

namespace hearth::tools {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kBenchRepeat = 20;
constexpr size_t kDefaultTop = 5;
constexpr double kScoreThreshold = 0.3;  // of detected things, where the model says none
constexpr size_t kFirstValues = 4;
constexpr uint64_t kBenchSeed = 0;
// Kernels are chosen after about 100 runs. A quick model runs many more times while the kernels are
// being built, but these take little time.
constexpr uint64_t kMostTuningRuns = 400;
constexpr double kTuningRunsMs = 30'000;

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

// Where the first signature of the model has these outputs, which are all or, in the same order,
// some of its own.
std::vector<size_t> placesOf(const std::vector<TensorInfo>& outputs, bool areAll,
                             const Model& model) {
  std::vector<size_t> places;
  if (areAll) {
    places.resize(outputs.size());
    std::ranges::iota(places, size_t{0});
    return places;
  }
  const nlohmann::json all = nlohmann::json::parse(model.describeSignature())["outputs"];
  for (size_t i = 0; i < all.size() && places.size() < outputs.size(); ++i)
    if (all[i]["name"] == outputs[places.size()].name) places.push_back(i);
  return places;
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
  Outcome<void> setStrings(size_t input, const TextInput& text);
  Outcome<void> setUpOutputs();
  void readTexts(size_t output);
  Outcome<void> growOutputs();
  Outcome<void> runFirst();
  void runAgain(RunReport* report);
  void runUntilTuned(RunReport* report);
  // The labels of an output: those of the command line, else the model's own.
  const Labels& labelsOf(size_t output) const;
  std::vector<double> scoresOf(size_t output) const;
  RunReport::Class classOf(size_t output, const ScoredClass& one, uint64_t classCount) const;
  // Each shows outputs that mean what it shows, and returns whether there are any.
  bool addClasses(RunReport* report) const;
  bool addFrames(RunReport* report) const;
  bool addDetections(RunReport* report) const;
  bool addKeyPoints(RunReport* report) const;
  std::optional<ClassMap> addSegments(RunReport* report) const;
  Outcome<void> writeOverlay(const std::optional<ClassMap>& map, RunReport* report) const;

  const RunOptions& options_;
  Watchdog& watchdog_;
  std::vector<TensorInfo> inputInfos_;
  std::vector<TensorInfo> outputInfos_;
  std::vector<Array> inputs_;  // without a value for an input of strings
  std::vector<Array> outputs_;
  std::vector<std::vector<std::string>> texts_;  // of outputs of strings
  std::optional<Picture> picture_;
  PictureLayout pictureLayout_;  // of the input that takes the picture
  ModelFacts facts_;
  Labels labels_;  // of the command line
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
  // A year is as good as no limit, and does not leave the range of nanoseconds.
  options.longestStep = std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(std::min(options_.longestStepSeconds, 365.0 * 24 * 3600)));
  options.store = options_.store.path;
  options.cache = cachePolicy(options_.store.mode);
  options.storeBytes = options_.store.maxBytes;
  options.weightCache = options_.store.weightCache;
  HEARTH_ASSIGN(options.shapes, parseInputShapes(options_.shapes));
  options.outputs = options_.outputs;
  options.cacheDir = options_.cacheDir;
  HEARTH_ASSIGN(options.cacheToken, parseCacheToken(options_.token));
  try {
    HEARTH_ASSIGN(const Model model, loadModel(options_.model, options_.part));
    try {
      compilation_.emplace(model.compile(options));
    } catch (const Exception& exception) {
      Failure failure(exception);
      // Only what the command line names can be missing here: a device, a signature, an output.
      if (exception.code() == HEARTH_NOT_FOUND) failure.exitCode = kExitUsage;
      return std::unexpected(std::move(failure));
    }
    execution_.emplace(compilation_->createExecution());
    const std::vector<std::string> keys = model.signatureKeys();
    if (options_.signature.empty() || options_.signature == keys.front())
      facts_ = ModelFacts(model, options_.locale,
                          placesOf(compilation_->outputs(), options_.outputs.empty(), model));
  } catch (const Exception& exception) {
    return std::unexpected(Failure(exception));
  }
  prepared_ = Clock::now();
  report->prepareMs = std::chrono::duration<double, std::milli>(prepared_ - begin).count();
  report->startPeakRssKib = base::readPeakRssKib();
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
    if (info.type == HEARTH_TYPE_STRING) {
      if (seed) return usage("The input \"{}\" is of strings, which are never random.", info.name);
      HEARTH_ASSIGN(const TextInput text, textInput(options_.inputs[i], info));
      HEARTH_TRY(setStrings(i, text));
      inputs_.emplace_back();
      continue;
    }
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
      const auto normalization =
          options_.normalization ? options_.normalization : facts_.normalization(i, info);
      HEARTH_ASSIGN(InputValue value, readInputFile(options_.inputs[i], info, normalization,
                                                    facts_.sampleRate(i).value_or(kSpeechRate)));
      if (value.picture && !picture_) {
        HEARTH_ASSIGN(pictureLayout_, pictureLayout(info));
        picture_ = std::move(value.picture);
      }
      inputs_.push_back(std::move(value.array));
    }
  }
  try {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (inputInfos_[i].type == HEARTH_TYPE_STRING) continue;
      const std::vector<uint32_t> dimensions(inputs_[i].shape.begin(), inputs_[i].shape.end());
      execution_->setInput(i, inputs_[i].bytes.data(), inputs_[i].bytes.size(), dimensions);
    }
  } catch (const Exception& exception) {
    return std::unexpected(Failure(exception));
  }
  return setUpOutputs();
}

Outcome<void> Session::setStrings(size_t input, const TextInput& text) {
  try {
    execution_->setInputStrings(input, text.texts, text.dimensions);
  } catch (const Exception& exception) {
    return std::unexpected(Failure(exception));
  }
  return {};
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

// Takes the strings of an output.
void Session::readTexts(size_t output) {
  std::vector<uint64_t> elements(outputs_[output].bytes.size() / sizeof(uint64_t));
  std::memcpy(elements.data(), outputs_[output].bytes.data(), elements.size() * sizeof(uint64_t));
  texts_.resize(outputs_.size());
  for (const uint64_t element : elements) texts_[output].push_back(execution_->string(element));
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
  report->copiedBytes = execution_->statistics().copiedBytes;
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
    report->memory = base::readProcessMemory();
    report->start = compilation_->startReport();
    report->startJson = compilation_->startReportJson();
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const std::vector<uint32_t> shape = execution_->outputShape(i);
      outputs_[i].shape.assign(shape.begin(), shape.end());
      outputs_[i].bytes.resize(bytesOf(outputs_[i].type, shape));
      if (outputs_[i].type == HEARTH_TYPE_STRING) readTexts(i);
    }
  } catch (const Exception& exception) {
    return std::unexpected(Failure(exception));
  }
  return {};
}

const Labels& Session::labelsOf(size_t output) const {
  return options_.labels.empty() ? facts_.labels(output) : labels_;
}

std::vector<double> Session::scoresOf(size_t output) const {
  std::vector<double> scores = toNumbers(outputs_[output]);
  for (double& score : scores) score = outputInfos_[output].dequantize(score);
  if (const ScoreCalibration* const calibration = facts_.calibration(output))
    for (size_t i = 0; i < scores.size(); ++i) scores[i] = calibration->apply(i, scores[i]);
  return scores;
}

RunReport::Class Session::classOf(size_t output, const ScoredClass& one,
                                  uint64_t classCount) const {
  std::string label = labelsOf(output).name(one.index, classCount);
  return {one.index, label.empty() ? std::nullopt : std::optional(std::move(label)), one.score};
}

bool Session::addClasses(RunReport* report) const {
  const bool isAsked = options_.top.has_value() || !options_.labels.empty();
  for (const bool isLenient : {false, true}) {
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const bool isScores = facts_.hasScores(i) || facts_.isUnknown() || isAsked;
      if (!isScores || !isClassification(outputs_[i], isLenient)) continue;
      if (isLenient && !isAsked && facts_.labels(i).empty()) continue;
      const std::vector<double> scores = scoresOf(i);
      for (const ScoredClass& one : topClasses(scores, options_.top.value_or(kDefaultTop)))
        report->top.push_back(classOf(i, one, scores.size()));
      if (std::string note = labelsOf(i).misfit(scores.size()); !note.empty())
        report->notes.push_back(std::move(note));
      report->outputs[i].isShown = true;
      return true;
    }
  }
  return false;
}

// Scores of classes at each of several moments: [T,C] or [1,T,C].
bool Session::addFrames(RunReport* report) const {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const std::vector<uint64_t>& shape = outputs_[i].shape;
    const size_t rank = shape.size();
    if (!facts_.hasScores(i) || picture_ || rank < 2 || rank > 3 || (rank == 3 && shape[0] != 1) ||
        shape[rank - 2] < 2 || shape[rank - 1] < 2)
      continue;
    const size_t classes = shape[rank - 1];
    const std::vector<double> scores = scoresOf(i);
    for (uint64_t frame = 0; frame < shape[rank - 2]; ++frame) {
      const auto begin = scores.begin() + static_cast<ptrdiff_t>(frame * classes);
      const ScoredClass best =
          topClasses(std::vector<double>(begin, begin + static_cast<ptrdiff_t>(classes)), 1)
              .front();
      std::vector<RunReport::Frames>& frames = report->frames;
      if (!frames.empty() && frames.back().best.index == best.index) {
        ++frames.back().count;
        frames.back().best.score = std::max(frames.back().best.score, best.score);
      } else {
        frames.push_back({frame, 1, classOf(i, best, classes)});
      }
    }
    if (std::string note = labelsOf(i).misfit(classes); !note.empty())
      report->notes.push_back(std::move(note));
    report->outputs[i].isShown = true;
    return true;
  }
  return false;
}

bool Session::addDetections(RunReport* report) const {
  const auto detections =
      detectionsOf(outputs_, outputInfos_, facts_, std::max(pictureLayout_.width, 1u),
                   std::max(pictureLayout_.height, 1u));
  if (!detections) return false;
  const size_t most = options_.top.value_or(2 * kDefaultTop);
  const double threshold = options_.top ? 0 : detections->threshold.value_or(kScoreThreshold);
  report->boxes.emplace();
  for (const Detection& one : detections->found) {
    if (report->boxes->size() == most || !(one.score >= threshold)) break;
    std::string label = labelsOf(detections->classOutput).detectedName(one.index);
    report->boxes->push_back({one.index,
                              label.empty() ? std::nullopt : std::optional(std::move(label)),
                              one.score, one.left, one.top, one.right, one.bottom});
  }
  for (RunReport::Output& output : report->outputs) output.isShown = true;
  return true;
}

bool Session::addKeyPoints(RunReport* report) const {
  if (!picture_) return false;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (facts_.hasScores(i)) continue;
    const auto points =
        keyPointsOf(outputs_[i], outputInfos_[i], facts_.name(i),
                    std::max(pictureLayout_.width, 1u), std::max(pictureLayout_.height, 1u));
    if (!points) continue;
    for (const KeyPoint& point : *points) report->points.push_back({point.x, point.y, point.score});
    report->outputs[i].isShown = true;
    return true;
  }
  return false;
}

std::optional<ClassMap> Session::addSegments(RunReport* report) const {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (!picture_ && options_.overlay.empty()) break;
    std::optional<ClassMap> map = classMapOf(outputs_[i], outputInfos_[i]);
    if (!map) continue;
    // A map of class numbers does not tell how many classes there are.
    const uint64_t classCount = outputs_[i].shape.size() == 4 ? outputs_[i].shape[3] : 0;
    for (const auto& [index, pixels] : countClasses(*map)) {
      std::string label = labelsOf(i).name(index, classCount);
      report->segments.push_back(
          {index, label.empty() ? std::nullopt : std::optional(std::move(label)), pixels});
    }
    if (std::string note = classCount == 0 ? "" : labelsOf(i).misfit(classCount); !note.empty())
      report->notes.push_back(std::move(note));
    report->outputs[i].isShown = true;
    return map;
  }
  return std::nullopt;
}

Outcome<void> Session::writeOverlay(const std::optional<ClassMap>& map, RunReport* report) const {
  std::string path = options_.overlay;
  if (path.empty() && !options_.outputDir.empty() && picture_)
    path = options_.outputDir + "/overlay.png";
  if (path.empty()) return {};
  const bool hasShapes = picture_ && (report->boxes || !report->points.empty());
  if (!map && !hasShapes) {
    if (options_.overlay.empty()) return {};
    return std::unexpected(
        Failure(kExitFailure,
                "No output of the model is a map of classes, and none has boxes or key points in a "
                "picture, so there is no overlay."));
  }
  Picture drawn = map ? drawOverlay(*map, picture_) : toRgb(*picture_);
  if (report->boxes)
    for (const RunReport::Box& box : *report->boxes)
      drawBox(box.left, box.top, box.right, box.bottom,
              classColour(static_cast<uint32_t>(box.index + 1)), &drawn);
  for (size_t i = 0; i < report->points.size(); ++i) {
    const RunReport::Point& point = report->points[i];
    if (point.score.value_or(1) >= kScoreThreshold)
      drawDot(point.x, point.y, classColour(static_cast<uint32_t>(i + 1)), &drawn);
  }
  HEARTH_ASSIGN(const std::vector<uint8_t> png, encodePng(drawn));
  HEARTH_TRY(writeFile(path, png));
  report->overlay = path;
  return {};
}

Outcome<void> Session::writeOutputs(RunReport* report) {
  watchdog_.beginStage("writing the outputs");
  if (!options_.labels.empty()) {
    HEARTH_ASSIGN(labels_, Labels::read(options_.labels));
  }
  for (size_t i = 0; i < outputs_.size(); ++i) {
    std::string path;
    const bool isText = outputs_[i].type == HEARTH_TYPE_STRING;
    if (!options_.outputDir.empty() && isText) {
      path = base::formatText("{}/output_{}.txt", options_.outputDir, i);
      const std::string lines = linesOf(texts_[i]);
      HEARTH_TRY(writeFile(path, {reinterpret_cast<const uint8_t*>(lines.data()), lines.size()}));
    } else if (!options_.outputDir.empty()) {
      path = base::formatText("{}/output_{}.npy", options_.outputDir, i);
      HEARTH_TRY(writeFile(path, formatNpy(outputs_[i])));
    }
    RunReport::Output output{outputInfos_[i].name, outputs_[i].shape, outputs_[i].type,
                             std::move(path)};
    if (isText) {
      const size_t shown = std::min(texts_[i].size(), kFirstValues);
      output.texts.assign(texts_[i].begin(), texts_[i].begin() + static_cast<ptrdiff_t>(shown));
      report->outputs.push_back(std::move(output));
      // What looks for scores, boxes and classes finds none.
      outputs_[i].shape = {0};
      outputs_[i].bytes.clear();
      continue;
    }
    std::vector<double> numbers = toNumbers(outputs_[i]);
    for (double& number : numbers) number = outputInfos_[i].dequantize(number);
    output.first.assign(numbers.begin(), numbers.begin() + static_cast<ptrdiff_t>(std::min(
                                                               numbers.size(), kFirstValues)));
    if (!numbers.empty() &&
        std::ranges::all_of(numbers, [](double number) { return std::isfinite(number); })) {
      const auto [least, most] = std::ranges::minmax(numbers);
      output.range = {least, most};
    }
    report->outputs.push_back(std::move(output));
  }
  std::optional<ClassMap> map;
  if (!addDetections(report) && !addKeyPoints(report)) {
    if (!addClasses(report)) addFrames(report);
    map = addSegments(report);
  }
  return writeOverlay(map, report);
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
