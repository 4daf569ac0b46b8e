// SPDX-License-Identifier: Apache-2.0
// The operations that end object detectors in .tflite files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "ops/testing/operation_builder.h"

namespace hearth::ops {
namespace {

using testing::ElementsAre;
using testing::FloatNear;

std::vector<int32_t> suppress(std::vector<float> scores, int32_t length, float overlap = 0.5f) {
  const auto count = static_cast<uint32_t>(scores.size());
  OperationBuilder builder(OperationType::kNonMaxSuppression);
  builder.input({3, 4}, std::vector<float>{0, 0, 1, 1, 0, 0.1f, 1, 1.1f, 2, 2, 1, 1})
      .input({count}, std::move(scores))
      .input({1}, std::vector<int32_t>{length})
      .input({1}, std::vector<float>{overlap})
      .input({1}, std::vector<float>{0.1f})
      .limitOutput(1000)
      .output(kInt32)
      .output(kInt32);
  if (!builder.run()) return {-99};
  std::vector<int32_t> indices = builder.result<int32_t>();
  indices.push_back(builder.result<int32_t>(1)[0]);
  return indices;
}

// The result is the indices, then their number.
TEST(NonMaxSuppressionTest, KeepsTheBest) {
  EXPECT_THAT(suppress({0.5f, 0.9f, 0.3f}, 3), ElementsAre(1, 2, 0, 2));
  EXPECT_THAT(suppress({0.5f, 0.9f, 0.3f}, 3, 0.9f), ElementsAre(1, 0, 2, 3));
  EXPECT_THAT(suppress({0.5f, 0.9f, 0.3f}, 1), ElementsAre(1, 1));
  EXPECT_THAT(suppress({NAN, 0.05f, 0.3f}, 2), ElementsAre(2, 0, 1));
}

TEST(NonMaxSuppressionTest, RefusesWhatDoesNotFit) {
  EXPECT_THAT(suppress({0.5f, 0.9f}, 3), ElementsAre(-99));
  EXPECT_THAT(suppress({0.5f, 0.9f, 0.3f}, -1), ElementsAre(-99));
  EXPECT_THAT(suppress({0.5f, 0.9f, 0.3f}, INT32_MAX), ElementsAre(-99));
}

struct Suppressed {
  std::vector<int32_t> indices;  // only those that are kept
  std::vector<float> scores;
};

// Boxes 0 and 1 overlap by a half, 2 is apart. Elements after the kept ones must be 0.
Suppressed suppressSoftly(std::vector<float> scores, float deviation, float overlap = 1.0f,
                          float least = 0.1f, int32_t length = 5) {
  std::vector<float> boxes = {0, 0, 1, 1, 0, 0, 0.5f, 1, 2, 2, 3, 3};
  const auto count = static_cast<uint32_t>(scores.size());
  boxes.resize(size_t{4} * count);
  OperationBuilder builder(OperationType::kNonMaxSuppression);
  builder.input({count, 4}, boxes)
      .input({count}, std::move(scores))
      .input({1}, std::vector<int32_t>{length})
      .input({1}, std::vector<float>{overlap})
      .input({1}, std::vector<float>{least})
      .input({1}, std::vector<float>{deviation})
      .inputShapesAreKnown()
      .output(kInt32)
      .output(kInt32)
      .output();
  if (!builder.run()) return {{-99}, {}};
  Suppressed result = {builder.result<int32_t>(), builder.result<float>(2)};
  const auto kept = static_cast<size_t>(builder.result<int32_t>(1)[0]);
  for (size_t i = kept; i < result.indices.size(); ++i) {
    EXPECT_EQ(result.indices[i], 0);
    EXPECT_EQ(result.scores[i], 0);
  }
  EXPECT_EQ(result.indices.size(), static_cast<size_t>(length));
  EXPECT_EQ(result.scores.size(), static_cast<size_t>(length));
  result.indices.resize(kept);
  result.scores.resize(kept);
  return result;
}

TEST(SoftNonMaxSuppressionTest, OverlapsLowerScores) {
  const auto near = [](float value) {
    return FloatNear(value, 1e-6f);
  };
  // exp(-0.5 * 0.5 * 0.5 / deviation)
  const float lowered = 0.8f * std::exp(-0.25f);
  const Suppressed all = suppressSoftly({0.9f, 0.8f, 0.7f}, 0.5f);
  EXPECT_THAT(all.indices, ElementsAre(0, 2, 1));
  EXPECT_THAT(all.scores, ElementsAre(near(0.9f), near(0.7f), near(lowered)));
  EXPECT_THAT(suppressSoftly({0.9f, 0.8f, 0.6f}, 0.5f).indices, ElementsAre(0, 1, 2));
  EXPECT_THAT(suppressSoftly({0.9f, 0.8f, 0.7f}, 0.0f).indices, ElementsAre(0, 1, 2));
  // The box is suppressed, either by its overlap or by its new score.
  EXPECT_THAT(suppressSoftly({0.9f, 0.8f, 0.7f}, 0.5f, 0.5f).indices, ElementsAre(0, 2));
  EXPECT_THAT(suppressSoftly({0.9f, 0.8f, 0.7f}, 0.5f, 1.0f, 0.65f).indices, ElementsAre(0, 2));
  EXPECT_THAT(suppressSoftly({0.9f, 0.8f, 0.7f}, 0.5f, 1.0f, 0.1f, 2).indices, ElementsAre(0, 2));
}

TEST(SoftNonMaxSuppressionTest, EveryDeviation) {
  // A box that overlaps no other keeps its score, however steep the decay.
  EXPECT_THAT(suppressSoftly({0.9f, 0.8f, 0.7f}, 1e-45f).indices, ElementsAre(0, 2));
  EXPECT_THAT(suppressSoftly({0.9f, 0.8f, 0.7f}, INFINITY).indices, ElementsAre(0, 1, 2));
  for (const float deviation : {-0.5f, -INFINITY, NAN})
    EXPECT_THAT(suppressSoftly({0.9f, 0.8f, 0.7f}, deviation).indices, ElementsAre(-99));
}

TEST(NonMaxSuppressionTest, ScoresMustExceedTheThreshold) {
  EXPECT_THAT(suppressSoftly({0.5f, 0.2f, 0.5f}, 0, 1, 0.5f).indices, ElementsAre());
  EXPECT_THAT(suppressSoftly({0.5f, 0.6f, 0.7f}, 0, 1, 0.5f).indices, ElementsAre(2, 1));
  EXPECT_THAT(suppressSoftly({-2, -1, -3}, 0, 1, -INFINITY).indices, ElementsAre(1, 0, 2));
  EXPECT_THAT(suppressSoftly({0.5f, 0.6f, 0.7f}, 0, 1, NAN).indices, ElementsAre());
}

TEST(NonMaxSuppressionTest, NoBoxesOrNoneWanted) {
  EXPECT_THAT(suppressSoftly({}, 0).indices, ElementsAre());
  EXPECT_THAT(suppressSoftly({}, 0.5f).indices, ElementsAre());
  EXPECT_THAT(suppressSoftly({0.9f, 0.8f, 0.7f}, 0, 1, 0.1f, 0).indices, ElementsAre());
}

TEST(NonMaxSuppressionTest, OfEqualScoresTheEarlierBox) {
  EXPECT_THAT(suppressSoftly({0.5f, 0.5f, 0.5f}, 0, 0.5f).indices, ElementsAre(0, 2));
  EXPECT_THAT(suppressSoftly({0.5f, 0.5f, 0.5f}, 0, 0.6f).indices, ElementsAre(0, 1, 2));
}

// Two anchors that do not overlap; the columns are the background and two classes.
std::vector<float> detect(bool isRegular, std::vector<float> scores, size_t output,
                          int32_t classes = 2) {
  OperationBuilder builder(OperationType::kTfliteDetectionPostprocess);
  builder.input({1, 2, 4}, std::vector<float>(8, 0.0f))
      .input({1, 2, 3}, std::move(scores))
      .input({2, 4}, std::vector<float>{0.25f, 0.25f, 0.5f, 0.5f, 0.75f, 0.75f, 0.5f, 0.5f})
      .scalars({2, 1, 100})
      .scalar(isRegular)
      .scalar(0.2f)
      .scalar(0.5f)
      .scalar(classes);
  for (int i = 0; i < 4; ++i) builder.scalar(1.0f);
  for (int i = 0; i < 4; ++i) builder.output();
  return builder.run() ? builder.result<float>(output) : std::vector<float>();
}

TEST(TfliteDetectionPostprocessTest, BothForms) {
  for (const bool isRegular : {false, true}) {
    const std::vector<float> scores = {0.9f, 0.1f, 0.3f, 0.9f, 0.8f, 0.1f};
    EXPECT_THAT(detect(isRegular, scores, 0), ElementsAre(0.5f, 0.5f, 1, 1, 0, 0, 0.5f, 0.5f));
    EXPECT_THAT(detect(isRegular, scores, 1), ElementsAre(0, 1));
    EXPECT_THAT(detect(isRegular, scores, 2), ElementsAre(0.8f, 0.3f));
    EXPECT_THAT(detect(isRegular, scores, 3), ElementsAre(2));
    EXPECT_THAT(detect(isRegular, {NAN, NAN, NAN, 0.9f, 0.8f, NAN}, 2), ElementsAre(0.8f, 0));
  }
}

// Three anchors, two classes, no background; the boxes of the first two anchors are equal.
struct Detector {
  int32_t maxDetections = 2;
  int32_t classesPerDetection = 1;
  int32_t detectionsPerClass = 100;
  bool isRegular = false;
  float least = 0.2f;

  // All outputs, in their order.
  std::vector<std::vector<float>> run(std::vector<float> scores) const {
    OperationBuilder builder(OperationType::kTfliteDetectionPostprocess);
    builder.input({1, 3, 4}, std::vector<float>(12, 0.0f))
        .input({1, 3, 2}, std::move(scores))
        .input({3, 4}, std::vector<float>{0.5f, 0.5f, 1, 1, 0.5f, 0.5f, 1, 1, 2.5f, 2.5f, 1, 1})
        .scalars({maxDetections, classesPerDetection, detectionsPerClass})
        .scalar(isRegular)
        .scalar(least)
        .scalar(0.5f)
        .scalar(2);
    for (int i = 0; i < 4; ++i) builder.scalar(1.0f);
    for (int i = 0; i < 4; ++i) builder.output();
    std::vector<std::vector<float>> results;
    if (!builder.run()) return results;
    for (size_t i = 0; i < 4; ++i) results.push_back(builder.result<float>(i));
    return results;
  }
};

// A box that is suppressed by its best class is suppressed for its other classes, too.
TEST(TfliteDetectionPostprocessTest, FastFormHasClassesOfEachBox) {
  const Detector detector = {.maxDetections = 3, .classesPerDetection = 2};
  EXPECT_THAT(detector.run({0.9f, 0.6f, 0.7f, 0.8f, 0.3f, 0.5f}),
              ElementsAre(ElementsAre(0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3, 2, 2, 3, 3, 0, 0, 0, 0, 0,
                                      0, 0, 0),
                          ElementsAre(0, 1, 1, 0, 0, 0), ElementsAre(0.9f, 0.6f, 0.5f, 0.3f, 0, 0),
                          ElementsAre(2)));
  // More classes are requested than exist: each box keeps its slots.
  const auto spare = Detector{.classesPerDetection = 3}.run({0.9f, 0.6f, 0.7f, 0.8f, 0.3f, 0.5f});
  ASSERT_EQ(spare.size(), 4u);
  EXPECT_THAT(spare[2], ElementsAre(0.9f, 0.6f, 0, 0.5f, 0.3f, 0));
}

// Suppression is by class, so the second anchor is kept for the second class.
TEST(TfliteDetectionPostprocessTest, RegularFormGoesClassByClass) {
  Detector detector = {.maxDetections = 3, .classesPerDetection = 2, .isRegular = true};
  const std::vector<float> scores = {0.9f, 0.6f, 0.7f, 0.8f, 0.3f, 0.5f};
  const auto results = detector.run(scores);
  ASSERT_EQ(results.size(), 4u);
  EXPECT_THAT(results[0],
              ElementsAre(0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0));
  EXPECT_THAT(results[1], ElementsAre(0, 1, 1, 0, 0, 0));
  EXPECT_THAT(results[2], ElementsAre(0.9f, 0.8f, 0.5f, 0, 0, 0));
  EXPECT_THAT(results[3], ElementsAre(3));
  detector.detectionsPerClass = 1;
  const auto fewer = detector.run(scores);
  ASSERT_EQ(fewer.size(), 4u);
  EXPECT_THAT(fewer[2], ElementsAre(0.9f, 0.8f, 0, 0, 0, 0));
  EXPECT_THAT(fewer[3], ElementsAre(2));
}

TEST(TfliteDetectionPostprocessTest, AScoreAtTheThresholdCounts) {
  for (const bool isRegular : {false, true}) {
    const auto results =
        Detector{.isRegular = isRegular, .least = 0.5f}.run({0.5f, 0.1f, 0.1f, 0.1f, 0.49f, 0.1f});
    ASSERT_EQ(results.size(), 4u);
    EXPECT_THAT(results[2], ElementsAre(0.5f, 0));
    EXPECT_THAT(results[3], ElementsAre(1));
  }
}

TEST(TfliteDetectionPostprocessTest, NoDetection) {
  for (const bool isRegular : {false, true})
    for (const float score : {0.1f, NAN}) {
      const auto results = Detector{.isRegular = isRegular}.run(std::vector<float>(6, score));
      ASSERT_EQ(results.size(), 4u);
      EXPECT_EQ(results[0], std::vector<float>(8, 0.0f));
      EXPECT_EQ(results[1], std::vector<float>(2, 0.0f));
      EXPECT_EQ(results[2], std::vector<float>(2, 0.0f));
      EXPECT_THAT(results[3], ElementsAre(0));
    }
}

TEST(TfliteDetectionPostprocessTest, RefusesWhatDoesNotFit) {
  for (const int32_t classes : {-1, 0, 1, 4})
    EXPECT_THAT(detect(false, std::vector<float>(6, 0.5f), 3, classes), ElementsAre());
}

// Many overlapping boxes; OperationBuilder compares with the reference kernels.
TEST(RandomDetectionsTest, AgreeWithTheReference) {
  std::mt19937 random(1);
  const auto reals = [&](size_t count, float least, float most) {
    std::vector<float> values(count);
    std::uniform_real_distribution<float> distribution(least, most);
    for (float& value : values) value = distribution(random);
    return values;
  };
  for (int round = 0; round < 200; ++round) {
    const uint32_t count = 1 + random() % 60;
    // Some scores are equal.
    std::vector<float> scores = reals(count, 0, 1);
    for (float& score : scores)
      if (random() % 3 == 0) score = static_cast<float>(random() % 5) / 4;
    OperationBuilder suppression(OperationType::kNonMaxSuppression);
    suppression.input({count, 4}, reals(size_t{4} * count, 0, 3))
        .input({count}, scores)
        .input({1}, std::vector<int32_t>{static_cast<int32_t>(1 + random() % 40)})
        .input({1}, reals(1, 0.1f, 1))
        .input({1}, reals(1, -0.1f, 0.5f))
        .input({1}, random() % 2 == 0 ? std::vector<float>{0} : reals(1, 0.1f, 1))
        .output(kInt32)
        .output(kInt32)
        .output();
    const Status suppressed = suppression.run();
    EXPECT_TRUE(suppressed) << suppressed.error().toString();

    const uint32_t classes = 1 + random() % 5;
    const uint32_t columns = classes + random() % 2;
    OperationBuilder detector(OperationType::kTfliteDetectionPostprocess);
    if (random() % 2 == 0) {
      const auto add = [&](Dimensions shape, float scale, int32_t zeroPoint) {
        std::vector<uint8_t> bytes(size_t{count} * shape.back());
        for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
        detector.input(OperationBuilder::tensor(OperandType::kTensorQuant8Asymm, std::move(shape),
                                                scale, zeroPoint),
                       std::move(bytes));
      };
      add({1, count, 4}, 0.05f, 128);
      add({1, count, columns}, 1.0f / 256, 0);
      add({count, 4}, 0.01f, 0);
    } else {
      detector.input({1, count, 4}, reals(size_t{4} * count, -5, 5))
          .input({1, count, columns}, reals(size_t{columns} * count, 0, 1))
          .input({count, 4}, reals(size_t{4} * count, 0, 2));
    }
    for (const uint32_t most : {20u, 4u, 10u})
      detector.scalar(static_cast<int32_t>(1 + random() % most));
    detector.scalar(random() % 2 == 0)
        .scalar(reals(1, 0, 0.9f)[0])
        .scalar(reals(1, 0.1f, 1)[0])
        .scalar(static_cast<int32_t>(classes));
    for (const float scale : {10.0f, 10.0f, 5.0f, 5.0f}) detector.scalar(scale);
    for (int i = 0; i < 4; ++i) detector.output();
    const Status detected = detector.run();
    EXPECT_TRUE(detected) << detected.error().toString();
  }
}

}  // namespace
}  // namespace hearth::ops
