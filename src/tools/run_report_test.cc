// SPDX-License-Identifier: Apache-2.0
// The JSON keys are an interface: docs/cli.md.
#include "tools/run_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace hearth::tools {
namespace {

using ::testing::HasSubstr;

RunReport report() {
  RunReport made;
  made.model = "a/model.tflite";
  made.device = "hearth-cpu";
  made.startJson =
      R"({"state":"uncached","reason":"none","prepare_ms":1,"packed_bytes":5,"tuning":{"state":"off"}})";
  made.prepareMs = 2.5;
  made.start.activationBytes = 77;
  made.copiedBytes = 4096;
  made.firstMs = 3;
  made.firstResultMs = 4;
  made.memory = {1, 2, 3};
  made.outputs = {
      {"probs", {1, 2}, HEARTH_TYPE_UINT8, "d/output_0.npy", std::pair(-1.5, 2.0), {2, -1.5}}};
  made.boxes = {{3, "dog", 0.75, 0.1, 0.2, 0.3, 0.4}};
  made.points = {{0.5, 0.25, std::nullopt}};
  made.frames = {{4, 2, {1, "rain", 0.5}}};
  made.notes = {"Something does not fit."};
  made.top = {{1, "cat", 0.5}, {0, std::nullopt, NAN}};
  return made;
}

TEST(RunReportTest, HasEveryKey) {
  const nlohmann::json json = nlohmann::json::parse(toJson(report()));
  EXPECT_EQ(json["model"], "a/model.tflite");
  EXPECT_TRUE(json["part"].is_null());
  EXPECT_EQ(json["device"], "hearth-cpu");
  EXPECT_EQ(json["start"]["state"], "uncached");
  EXPECT_EQ(json["start"]["prepare_ms"], 2.5);
  EXPECT_EQ(json["start"]["packed_bytes"], 5);
  EXPECT_EQ(json["inference_ms"]["first"], 3);
  EXPECT_EQ(json["inference_ms"]["first_result"], 4);
  EXPECT_TRUE(json["inference_ms"]["p50"].is_null());
  EXPECT_TRUE(json["inference_ms"]["processor_p50"].is_null());
  EXPECT_EQ(json["memory"]["peak_rss_kib"], 1);
  EXPECT_EQ(json["memory"]["anonymous_rss_kib"], 2);
  EXPECT_EQ(json["memory"]["pss_kib"], 3);
  EXPECT_EQ(json["memory"]["activation_bytes"], 77);
  EXPECT_EQ(json["memory"]["copied_bytes"], 4096);
  EXPECT_EQ(json["outputs"][0], (nlohmann::json{{"name", "probs"},
                                                {"shape", {1, 2}},
                                                {"type", "uint8"},
                                                {"file", "d/output_0.npy"},
                                                {"range", {-1.5, 2}},
                                                {"first", {2, -1.5}}}));
  EXPECT_EQ(json["top"][0], (nlohmann::json{{"index", 1}, {"label", "cat"}, {"score", 0.5}}));
  EXPECT_TRUE(json["top"][1]["label"].is_null());
  EXPECT_TRUE(json["top"][1]["score"].is_null());
  EXPECT_TRUE(json["segments"].empty());
  EXPECT_EQ(json["detections"],
            nlohmann::json::parse(R"([{"index": 3, "label": "dog", "score": 0.75, "left": 0.1,
                                       "top": 0.2, "right": 0.3, "bottom": 0.4}])"));
  EXPECT_EQ(json["key_points"], nlohmann::json::parse(R"([{"x": 0.5, "y": 0.25, "score": null}])"));
  EXPECT_EQ(json["frames"],
            nlohmann::json::parse(
                R"([{"first": 4, "count": 2, "index": 1, "label": "rain", "score": 0.5}])"));
  EXPECT_EQ(json["notes"], nlohmann::json::parse(R"(["Something does not fit."])"));
  EXPECT_TRUE(json["overlay"].is_null());
}

TEST(RunReportTest, ReportsSteadyRuns) {
  RunReport made = report();
  made.steadyMs = {2, 1, 4, 3};
  made.processorMs = {5, 8, 6, 7};
  const nlohmann::json json = nlohmann::json::parse(toJson(made));
  EXPECT_EQ(json["inference_ms"]["p50"], 2);
  EXPECT_EQ(json["inference_ms"]["p99"], 4);
  EXPECT_EQ(json["inference_ms"]["processor_p50"], 6);
  EXPECT_THAT(toText(made, true), HasSubstr("(4 runs)"));
}

TEST(RunReportTest, TellsTheStagesApart) {
  RunReport made = report();
  made.startJson =
      R"({"state":"warm","tuning":{"state":"measured","executions":4,"changed_steps":2}})";
  made.steadyMs = {5, 6, 7, 1, 2, 3, 2};
  const nlohmann::json json = nlohmann::json::parse(toJson(made));
  // Four executions are the first run and three repeats.
  const nlohmann::json stages = json["inference_ms"]["stages"];
  EXPECT_EQ(stages["first"], (nlohmann::json{{"runs", 3}, {"p50", 6}}));
  EXPECT_EQ(stages["second"], (nlohmann::json{{"runs", 4}, {"p50", 2}}));
  EXPECT_THAT(toText(made, true), HasSubstr("chosen after 4 runs, 2 steps otherwise"));
  EXPECT_FALSE(nlohmann::json::parse(toJson(report()))["inference_ms"].contains("stages"));
  EXPECT_THAT(toText(report(), true), testing::Not(HasSubstr("kernels")));
}

TEST(RunReportTest, SurvivesNamesThatAreNoText) {
  RunReport made = report();
  made.outputs[0].name = "\xff\x1b[0m";
  EXPECT_TRUE(nlohmann::json::accept(toJson(made)));
  EXPECT_EQ(toText(made, false).find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace hearth::tools
