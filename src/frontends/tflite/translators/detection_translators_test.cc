// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontends/tflite/testing/import_testing.h"

namespace hearth::tflite {
namespace {

using schema::BuiltinOperator;
using schema::TensorType;
using testing::ElementsAre;
using testing::HasSubstr;

using Options = std::vector<std::pair<std::string, double>>;

Options detectorOptions() {
  return {{"max_detections", 5},
          {"max_classes_per_detection", 2},
          {"num_classes", 3},
          {"nms_score_threshold", 0.25},
          {"nms_iou_threshold", 0.5},
          {"y_scale", 10},
          {"x_scale", 10},
          {"h_scale", 5},
          {"w_scale", 5}};
}

FloatModel detector(const Options& options) {
  FloatModel model({{1, 6, 4}, {1, 6, 4}, {6, 4}}, {{}, {}, {}, {}});
  model.addOperator(BuiltinOperator::CUSTOM, {0, 1, 2}, {3, 4, 5, 6}).custom_options =
      flexMap(options);
  model.model.operator_codes[0]->custom_code = "TFLite_Detection_PostProcess";
  return model;
}

TEST(DetectionTranslators, PostProcess) {
  const ImportedGraph imported = import(detector(detectorOptions()));
  EXPECT_THAT(linesOf(*imported.model),
              ElementsAre("TFLITE_DETECTION_POSTPROCESS t0 t1 t2 5 2 100 false 0.25f 0.5f 3 10f "
                          "10f 5f 5f -> t3 t4 t5 t6"));
  const graph::Subgraph& main = imported.model->main();
  EXPECT_EQ(main.operands[main.outputs[0]].dimensions, (graph::Dimensions{1, 10, 4}));
  EXPECT_EQ(main.operands[main.outputs[3]].dimensions, (graph::Dimensions{1}));
}

TEST(DetectionTranslators, WrongOptions) {
  for (size_t i = 0; i < detectorOptions().size(); ++i) {
    Options options = detectorOptions();
    const std::string name = options[i].first;
    options.erase(options.begin() + static_cast<ptrdiff_t>(i));
    EXPECT_THAT(errorOf(detector(options)), HasSubstr(name));
  }
  for (const double value : {-1.0, 0.0, 1.5, 1e12}) {
    Options options = detectorOptions();
    options[0].second = value;
    EXPECT_THAT(errorOf(detector(options)), HasSubstr("max_detections"));
  }
  FloatModel model = detector({});
  model.subgraph().operators[0]->custom_options = {1, 2, 3};
  EXPECT_NE(errorOf(model), "imported");
}

// NON_MAX_SUPPRESSION_V5 or V4. The number of boxes is a constant unless it is 0.
ModelWriter suppression(bool isSoft, int32_t length) {
  ModelWriter model;
  const auto add = [&](TensorType type, ModelWriter::Shape shape) {
    return model.addTensor(type, std::move(shape));
  };
  std::vector<int32_t> inputs = {add(TensorType::FLOAT32, {6, 4}), add(TensorType::FLOAT32, {6})};
  std::vector<int32_t> arguments = inputs;
  inputs.push_back(length != 0 ? model.addConstant<int32_t>(TensorType::INT32, {}, {length})
                               : add(TensorType::INT32, {}));
  if (length == 0) arguments.push_back(inputs.back());
  for (int i = 0; i < (isSoft ? 3 : 2); ++i)
    inputs.push_back(model.addConstant<float>(TensorType::FLOAT32, {}, {0.5f}));
  std::vector<int32_t> outputs = {add(TensorType::INT32, {})};
  if (isSoft) outputs.push_back(add(TensorType::FLOAT32, {}));
  outputs.push_back(add(TensorType::INT32, {1}));
  model.addOperator(
      isSoft ? BuiltinOperator::NON_MAX_SUPPRESSION_V5 : BuiltinOperator::NON_MAX_SUPPRESSION_V4,
      inputs, outputs);
  model.setArguments(arguments, outputs);
  return model;
}

TEST(DetectionTranslators, NonMaxSuppression) {
  for (const int32_t length : {3, 0}) {
    const ImportedGraph hard = import(suppression(false, length));
    EXPECT_THAT(linesOf(*hard.model), ElementsAre("NON_MAX_SUPPRESSION t0 t1 t2 t3 t4 -> t5 t6"));
    const ImportedGraph soft = import(suppression(true, length));
    EXPECT_THAT(linesOf(*soft.model),
                ElementsAre("NON_MAX_SUPPRESSION t0 t1 t2 t3 t4 t5 -> t6 t8 t7"));
    // Whatever shapes the file gives: the lists have the wanted length, and the number is a scalar.
    const graph::Subgraph& main = soft.model->main();
    const auto listed = static_cast<uint32_t>(length);
    for (const size_t list : {0, 1})
      EXPECT_EQ(main.operands[main.outputs[list]].dimensions, (graph::Dimensions{listed}));
    EXPECT_TRUE(main.operands[main.outputs[2]].isRankZeroTensor);
  }
}

TEST(DetectionTranslators, NonMaxSuppressionOfWrongArguments) {
  EXPECT_THAT(errorOf(suppression(false, -1)), HasSubstr("at most -1 boxes"));
  for (const bool isSoft : {false, true}) {
    ModelWriter model = suppression(isSoft, 3);
    model.subgraph().operators[0]->inputs.pop_back();
    EXPECT_NE(errorOf(model), "imported");
  }
  ModelWriter model = suppression(false, 3);
  model.subgraph().operators[0]->outputs.pop_back();
  EXPECT_NE(errorOf(model), "imported");
}

TEST(DetectionTranslators, UnknownCustomOperation) {
  FloatModel model = detector(detectorOptions());
  model.model.operator_codes[0]->custom_code = "TFLite_Detection_PostProcess2";
  EXPECT_THAT(errorOf(model), HasSubstr("the custom operation"));
}

}  // namespace
}  // namespace hearth::tflite
