// SPDX-License-Identifier: Apache-2.0
#include "tools/run_report.h"
#include "base/format.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tools/latency.h"
#include "tools/media/array.h"
#include "tools/media/overlay.h"
#include "tools/text_table.h"

namespace hearth::tools {
namespace {

constexpr unsigned kBarWidth = 30;

using Json = nlohmann::ordered_json;

template <typename T>
Json orNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}
Json orNull(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}
// JSON has no infinity and no NaN.
Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

// The repeats in each stage of a model whose kernels were chosen during the runs.
struct Stages {
  std::vector<double> firstMs, secondMs;
};
std::optional<Stages> stagesOf(const RunReport& report, const Json& tuning) {
  if (tuning["state"] != "measured") return std::nullopt;
  // The very first run is no repeat.
  const auto executions = tuning["executions"].get<size_t>();
  const size_t before = std::min(std::max<size_t>(executions, 1) - 1, report.steadyMs.size());
  const auto border = report.steadyMs.begin() + static_cast<std::ptrdiff_t>(before);
  return Stages{{report.steadyMs.begin(), border}, {border, report.steadyMs.end()}};
}

Json stageJson(const std::vector<double>& times) {
  return {{"runs", times.size()}, {"p50", orNull(percentile(times, 50))}};
}

std::string tuningText(const RunReport& report) {
  const Json tuning = Json::parse(report.startJson)["tuning"];
  const std::string state = tuning["state"];
  if (state != "measured" && state != "recalled") return "";
  const unsigned changed = tuning["changed_steps"];
  std::string text = state == "recalled"
                         ? "chosen by an earlier process"
                         : base::formatText("chosen after {} runs", uint64_t{tuning["executions"]});
  text += changed == 0 ? ", all as in the first stage"
                       : base::formatText(", {} step{} otherwise than in the first stage", changed,
                                          changed == 1 ? "" : "s");
  const std::optional<Stages> stages = stagesOf(report, tuning);
  if (stages && !stages->firstMs.empty() && !stages->secondMs.empty())
    text += base::formatText("; p50 {} before, {} after",
                             millisecondsText(*percentile(stages->firstMs, 50)),
                             millisecondsText(*percentile(stages->secondMs, 50)));
  return text;
}

std::string inferenceText(const RunReport& report) {
  std::string text = "first " + millisecondsText(report.firstMs);
  if (report.steadyMs.empty()) return text;
  return text + base::formatText(", then p50 {}, p90 {}, p99 {} ({} runs)",
                                 millisecondsText(*percentile(report.steadyMs, 50)),
                                 millisecondsText(*percentile(report.steadyMs, 90)),
                                 millisecondsText(*percentile(report.steadyMs, 99)),
                                 report.steadyMs.size());
}

std::string startText(const RunReport& report) {
  static constexpr const char* kNames[] = {"cold", "warm", "uncached"};
  std::string text = base::formatText("{}, ready after {}", kNames[report.start.state],
                                      millisecondsText(report.prepareMs));
  text += base::formatText("; {} of weights packed, {} mapped", bytesText(report.start.packedBytes),
                           bytesText(report.start.mappedBytes));
  if (!report.start.reason.empty()) text += base::formatText(" ({})", report.start.reason);
  return text;
}

std::string topText(const RunReport& report) {
  TextTable table({"class", "label", "score", ""}, "rlrl");
  const double best = report.top.front().score;
  for (const RunReport::Class& one : report.top)
    table.add({std::to_string(one.index), printable(one.label.value_or("")),
               base::formatText("{:.4g}", one.score),
               best > 0 ? bar(one.score / best, kBarWidth) : ""});
  return table.toString();
}

std::string segmentsText(const RunReport& report) {
  uint64_t total = 0;
  for (const RunReport::Segment& segment : report.segments) total += segment.pixels;
  TextTable table({"class", "label", "colour", "pixels", "share", ""}, "rllrrl");
  for (const RunReport::Segment& segment : report.segments) {
    const Colour colour = classColour(static_cast<uint32_t>(segment.index));
    const double share = static_cast<double>(segment.pixels) / static_cast<double>(total);
    table.add({std::to_string(segment.index), printable(segment.label.value_or("")),
               base::formatText("#{:02x}{:02x}{:02x}", colour[0], colour[1], colour[2]),
               std::to_string(segment.pixels), base::formatText("{:.1f} %", share * 100),
               bar(share, kBarWidth)});
  }
  return table.toString();
}

std::string percentText(double fraction) {
  return base::formatText("{:.1f} %", fraction * 100);
}

std::string boxesText(const std::vector<RunReport::Box>& boxes) {
  if (boxes.empty()) return "  Nothing is detected.\n";
  TextTable table({"class", "label", "score", "left", "top", "right", "bottom", "colour"},
                  "rlrrrrrl");
  for (const RunReport::Box& box : boxes) {
    const Colour colour = classColour(static_cast<uint32_t>(box.index + 1));
    table.add({std::to_string(box.index), printable(box.label.value_or("")),
               base::formatText("{:.4g}", box.score), percentText(box.left), percentText(box.top),
               percentText(box.right), percentText(box.bottom),
               base::formatText("#{:02x}{:02x}{:02x}", colour[0], colour[1], colour[2])});
  }
  return table.toString();
}

std::string pointsText(const std::vector<RunReport::Point>& points) {
  constexpr size_t kMost = 40;
  TextTable table({"point", "x", "y", "score"}, "rrrr");
  for (size_t i = 0; i < std::min(points.size(), kMost); ++i)
    table.add({std::to_string(i), percentText(points[i].x), percentText(points[i].y),
               points[i].score ? base::formatText("{:.4g}", *points[i].score) : ""});
  std::string text = table.toString();
  if (points.size() > kMost)
    text += base::formatText("  and {} more points\n", points.size() - kMost);
  return text;
}

std::string framesText(const std::vector<RunReport::Frames>& frames) {
  TextTable table({"frames", "class", "label", "score"}, "rrlr");
  for (const RunReport::Frames& each : frames)
    table.add({each.count == 1 ? std::to_string(each.first)
                               : base::formatText("{}-{}", each.first, each.first + each.count - 1),
               std::to_string(each.best.index), printable(each.best.label.value_or("")),
               base::formatText("{:.4g}", each.best.score)});
  return table.toString();
}

std::string valuesText(const RunReport::Output& output) {
  std::string text;
  for (const std::string& one : output.texts)
    text += (text.empty() ? "\"" : ", \"") + printable(one) + "\"";
  for (const double value : output.first)
    text += (text.empty() ? "" : ", ") + base::formatText("{:.4g}", value);
  return text.empty() ? "" : text + ", …";
}

Json outputJson(const RunReport::Output& output) {
  Json json = {
      {"name", output.name},         {"shape", output.shape}, {"type", typeName(output.type)},
      {"file", orNull(output.file)}, {"range", nullptr},      {"first", Json::array()}};
  if (output.range) json["range"] = {output.range->first, output.range->second};
  for (const double value : output.first) json["first"].push_back(number(value));
  for (const std::string& text : output.texts) json["first"].push_back(text);
  return json;
}

Json boxJson(const RunReport::Box& box) {
  return {{"index", box.index},          {"label", orNull(box.label)}, {"score", number(box.score)},
          {"left", number(box.left)},    {"top", number(box.top)},     {"right", number(box.right)},
          {"bottom", number(box.bottom)}};
}

}  // namespace

std::string toJson(const RunReport& report) {
  Json start = Json::parse(report.startJson);
  start["prepare_ms"] = report.prepareMs;
  const std::optional<Stages> stages = stagesOf(report, start["tuning"]);
  const uint64_t activationBytes = report.start.activationBytes;
  Json json = {{"model", report.model},
               {"part", report.part.empty() ? Json(nullptr) : Json(report.part)},
               {"device", report.device},
               {"start", std::move(start)},
               {"inference_ms",
                {{"first", report.firstMs},
                 {"first_result", report.firstResultMs},
                 {"p50", orNull(percentile(report.steadyMs, 50))},
                 {"p90", orNull(percentile(report.steadyMs, 90))},
                 {"p99", orNull(percentile(report.steadyMs, 99))},
                 {"processor_p50", orNull(percentile(report.processorMs, 50))},
                 {"runs", report.steadyMs.size()}}},
               {"memory",
                {{"start_peak_rss_kib", report.startPeakRssKib},
                 {"peak_rss_kib", report.memory.peakRssKib},
                 {"anonymous_rss_kib", report.memory.anonymousRssKib},
                 {"pss_kib", report.memory.pssKib},
                 {"activation_bytes", activationBytes},
                 {"copied_bytes", report.copiedBytes}}},
               {"outputs", Json::array()},
               {"top", Json::array()},
               {"segments", Json::array()},
               {"detections", nullptr},
               {"key_points", Json::array()},
               {"frames", Json::array()},
               {"overlay", orNull(report.overlay)},
               {"notes", report.notes}};
  if (stages)
    json["inference_ms"]["stages"] = {{"first", stageJson(stages->firstMs)},
                                      {"second", stageJson(stages->secondMs)}};
  for (const RunReport::Output& output : report.outputs)
    json["outputs"].push_back(outputJson(output));
  if (report.boxes) {
    json["detections"] = Json::array();
    for (const RunReport::Box& box : *report.boxes) json["detections"].push_back(boxJson(box));
  }
  for (const RunReport::Point& point : report.points)
    json["key_points"].push_back({{"x", number(point.x)},
                                  {"y", number(point.y)},
                                  {"score", point.score ? number(*point.score) : Json(nullptr)}});
  for (const RunReport::Frames& each : report.frames)
    json["frames"].push_back({{"first", each.first},
                              {"count", each.count},
                              {"index", each.best.index},
                              {"label", orNull(each.best.label)},
                              {"score", number(each.best.score)}});
  for (const RunReport::Class& one : report.top)
    json["top"].push_back(
        {{"index", one.index}, {"label", orNull(one.label)}, {"score", number(one.score)}});
  for (const RunReport::Segment& segment : report.segments)
    json["segments"].push_back(
        {{"index", segment.index}, {"label", orNull(segment.label)}, {"pixels", segment.pixels}});
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string toText(const RunReport& report, bool isBench) {
  std::string text = base::formatText(
      "{} on {}\n\n", printable(std::filesystem::path(report.model).filename().string()),
      report.device);
  text += "  start       " + startText(report) + "\n";
  text += "  inference   " + inferenceText(report) + "\n";
  if (const std::string tuning = tuningText(report); !tuning.empty())
    text += "  kernels     " + tuning + "\n";
  text += base::formatText(
      "  memory      peak {}, private {}, proportional {}, activations {}\n",
      bytesText(report.memory.peakRssKib * 1024), bytesText(report.memory.anonymousRssKib * 1024),
      bytesText(report.memory.pssKib * 1024), bytesText(report.start.activationBytes));
  if (isBench) return text;
  TextTable outputs({"output", "type", "shape", "file"}, "llll");
  for (const RunReport::Output& output : report.outputs)
    outputs.add({printable(output.name), typeName(output.type), shapeText(output.shape),
                 printable(output.file)});
  text += "\n" + outputs.toString();
  if (!report.top.empty()) text += "\n" + topText(report);
  if (!report.segments.empty()) text += "\n" + segmentsText(report);
  if (report.boxes) text += "\n" + boxesText(*report.boxes);
  if (!report.points.empty()) text += "\n" + pointsText(report.points);
  if (!report.frames.empty()) text += "\n" + framesText(report.frames);
  TextTable values({"output", "least", "most", "first values"}, "lrrl");
  for (const RunReport::Output& output : report.outputs)
    if (!output.isShown && output.range)
      values.add({printable(output.name), base::formatText("{:.4g}", output.range->first),
                  base::formatText("{:.4g}", output.range->second), valuesText(output)});
    else if (!output.texts.empty())
      values.add({printable(output.name), "", "", valuesText(output)});
  if (!values.empty()) text += "\n" + values.toString();
  for (const std::string& note : report.notes) text += "\n  " + printable(note) + "\n";
  if (!report.overlay.empty()) text += "\n  overlay     " + printable(report.overlay) + "\n";
  return text;
}

}  // namespace hearth::tools
