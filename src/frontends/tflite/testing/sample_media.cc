// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite/testing/sample_media.h"

#include <cstdint>
#include <vector>

#include "frontends/tflite/testing/model_writer.h"

namespace hearth::tflite {
namespace {

using schema::BuiltinOperator;
using schema::TensorType;

// The spectrum of a frame of sound, with which audio models begin.
ModelWriter spectrum() {
  ModelWriter model;
  const int32_t frames = model.addTensor(TensorType::FLOAT32, {2, 1, 6});
  const int32_t complex = model.addTensor(TensorType::COMPLEX64, {2, 1, 5});
  model.addOperator(BuiltinOperator::RFFT2D, {frames, model.ints({1, 8})}, {complex});
  std::vector<int32_t> parts;
  for (const BuiltinOperator code :
       {BuiltinOperator::COMPLEX_ABS, BuiltinOperator::REAL, BuiltinOperator::IMAG}) {
    parts.push_back(model.addTensor(TensorType::FLOAT32, {2, 1, 5}));
    model.addOperator(code, {complex}, {parts.back()});
  }
  parts.push_back(complex);
  // A filter in the frequency domain, of which the real part is kept.
  const int32_t gains = model.addTensor(TensorType::FLOAT32, {5});
  const int32_t filter = model.addTensor(TensorType::COMPLEX64, {5});
  model.addOperator(BuiltinOperator::CAST, {gains}, {filter});
  const int32_t filtered = model.addTensor(TensorType::COMPLEX64, {2, 1, 5});
  model.addOperator(BuiltinOperator::MUL, {complex, filter}, {filtered});
  const int32_t turned = model.addTensor(TensorType::COMPLEX64, {5, 2, 1});
  model.addOperator(BuiltinOperator::TRANSPOSE, {filtered, model.ints({2, 0, 1})}, {turned});
  parts.push_back(model.addTensor(TensorType::FLOAT32, {5, 2, 1}));
  model.addOperator(BuiltinOperator::CAST, {turned}, {parts.back()});
  model.setArguments({frames, gains}, parts);
  return model;
}

// The spectrogram with which TFLite's networks for speech begin, and how far its values in 8 bits
// are from it.
ModelWriter spectrogram() {
  ModelWriter model;
  const int32_t sound = model.addTensor(TensorType::FLOAT32, {10, 1});
  const int32_t spectra = model.addTensor(TensorType::FLOAT32, {1, 3, 5});
  model.addCustom("AudioSpectrogram", {sound}, {spectra},
                  flexMap({{"window_size", 6}, {"stride", 2}, {"magnitude_squared", 1}}));
  const int32_t rounded = model.addTensor(TensorType::INT8, {1, 3, 5}, 0.25f, -128);
  model.addOperator(BuiltinOperator::QUANTIZE, {spectra}, {rounded});
  const int32_t differences = model.addTensor(TensorType::FLOAT32, {1, 3, 5});
  model.addCustom("NumericVerify", {rounded, spectra}, {differences},
                  flexMap({{"tolerance", 5}, {"log_if_failed", 0}}));
  model.setArguments({sound}, {spectra, differences});
  return model;
}

// The cepstra that speech networks make of such a spectrogram.
ModelWriter cepstra() {
  ModelWriter model;
  const int32_t spectra = model.addTensor(TensorType::FLOAT32, {1, 2, 33});
  const int32_t rate = model.addConstant<int32_t>(TensorType::INT32, {}, {16000});
  const int32_t found = model.addTensor(TensorType::FLOAT32, {1, 2, 5});
  model.addCustom("Mfcc", {spectra, rate}, {found},
                  flexMap({{"lower_frequency_limit", 20},
                           {"upper_frequency_limit", 4000},
                           {"filterbank_channel_count", 8},
                           {"dct_coefficient_count", 5}}));
  model.setArguments({spectra}, {found});
  return model;
}

// The custom operation at the end of an object detector, with options of its own.
ModelWriter detector() {
  ModelWriter model;
  const int32_t encodings = model.addTensor(TensorType::FLOAT32, {1, 3, 4});
  const int32_t scores = model.addTensor(TensorType::FLOAT32, {1, 3, 3});
  const int32_t anchors = model.addWeights(TensorType::FLOAT32, {3, 4});
  std::vector<int32_t> outputs;
  for (const ModelWriter::Shape& shape : {ModelWriter::Shape{1, 4, 4}, {1, 4}, {1, 4}, {1}})
    outputs.push_back(model.addTensor(TensorType::FLOAT32, shape));
  model.addCustom("TFLite_Detection_PostProcess", {encodings, scores, anchors}, outputs,
                  flexMap({{"max_detections", 2},
                           {"max_classes_per_detection", 2},
                           {"num_classes", 2},
                           {"nms_score_threshold", 0.25},
                           {"nms_iou_threshold", 0.5},
                           {"y_scale", 10},
                           {"x_scale", 10},
                           {"h_scale", 5},
                           {"w_scale", 5},
                           {"use_regular_nms", 1}}));
  model.setArguments({encodings, scores}, outputs);
  return model;
}

// Bytes of 32-bit integers, as MediaPipe writes the options of its operations.
std::vector<uint8_t> structure(const std::vector<int32_t>& values) {
  std::vector<uint8_t> bytes;
  for (const int32_t value : values)
    for (int shift = 0; shift < 32; shift += 8)
      bytes.push_back(static_cast<uint8_t>(static_cast<uint32_t>(value) >> shift));
  return bytes;
}

// A picture that is pooled, put back and enlarged, as MediaPipe's networks for segmentation do.
ModelWriter unpooling() {
  ModelWriter model;
  const int32_t picture = model.addTensor(TensorType::FLOAT32, {1, 4, 6, 2});
  const int32_t maxima = model.addTensor(TensorType::FLOAT32, {1, 2, 3, 2});
  const int32_t places = model.addTensor(TensorType::FLOAT32, {1, 2, 3, 2});
  model.addCustom("MaxPoolingWithArgmax2D", {picture}, {maxima, places},
                  structure({2, 2, 2, 2, 2, 0}));
  const int32_t back = model.addTensor(TensorType::FLOAT32, {1, 4, 6, 2});
  model.addCustom("MaxUnpooling2D", {maxima, places}, {back}, structure({2, 2, 2, 2, 2, 0}));
  const int32_t filter = model.addWeights(TensorType::FLOAT32, {1, 3, 3, 2});
  const int32_t bias = model.addWeights(TensorType::FLOAT32, {1});
  const int32_t enlarged = model.addTensor(TensorType::FLOAT32, {1, 8, 12, 1});
  model.addCustom("Convolution2DTransposeBias", {back, filter, bias}, {enlarged},
                  structure({1, 2, 2}));
  model.setArguments({picture}, {places, enlarged});
  return model;
}

// Landmarks, the picture around some of them, and other landmarks there, in both versions of
// MediaPipe's operations.
ModelWriter landmarks() {
  ModelWriter model;
  const int32_t points = model.addTensor(TensorType::FLOAT32, {1, 4, 3});
  const int32_t line = model.addTensor(TensorType::FLOAT32, {1, 1, 1, 12});
  const int32_t picture = model.addTensor(TensorType::FLOAT32, {1, 4, 5, 2});
  std::vector<int32_t> outputs;
  for (const bool isFirst : {true, false}) {
    const int32_t version = isFirst ? 1 : 2;
    const int32_t matrix = model.addTensor(TensorType::FLOAT32, {1, 4, 4});
    const int32_t part = model.addTensor(TensorType::FLOAT32, {1, 3, 2, 2});
    const int32_t moved =
        model.addTensor(TensorType::FLOAT32,
                        isFirst ? ModelWriter::Shape{1, 1, 1, 12} : ModelWriter::Shape{1, 4, 3});
    const auto box =
        isFirst ? flexMap({{"dimensions", 3},
                           {"landmarks_range", 8},
                           {"bbox_size_multiplier", 1.5},
                           {"left_rotation_idx", 0},
                           {"right_rotation_idx", 1}},
                          {{"subset", {0, 1, 2}}, {"input_hw", {4, 5}}, {"output_hw", {3, 2}}})
                : flexMap({{"left_rotation_idx", 0},
                           {"right_rotation_idx", 1},
                           {"output_height", 3},
                           {"output_width", 2},
                           {"scale_x", 1.5},
                           {"scale_y", 1.5}},
                          {{"subset_idxs", {0, 1, 2}}});
    model.addCustom("Landmarks2TransformMatrix", {isFirst ? line : points}, {matrix}, box, version);
    model.addCustom("TransformTensorBilinear", {picture, matrix}, {part},
                    isFirst ? flexMap({}, {{"output_size", {3, 2}}})
                            : flexMap({{"output_height", 3}, {"output_width", 2}}),
                    version);
    model.addCustom("TransformLandmarks", {isFirst ? line : points, matrix}, {moved},
                    isFirst ? flexMap({{"dimensions", 3}, {"scale", 2}}) : std::vector<uint8_t>(),
                    version);
    outputs.insert(outputs.end(), {part, moved});
  }
  model.setArguments({points, line, picture}, outputs);
  return model;
}

// NON_MAX_SUPPRESSION in both versions; the number of boxes that the second keeps is an input.
ModelWriter suppressions() {
  ModelWriter model;
  const int32_t boxes = model.addTensor(TensorType::FLOAT32, {4, 4});
  const int32_t scores = model.addTensor(TensorType::FLOAT32, {4});
  const int32_t length = model.addTensor(TensorType::INT32, {});
  const int32_t three = model.addConstant<int32_t>(TensorType::INT32, {}, {3});
  const int32_t half = model.addConstant<float>(TensorType::FLOAT32, {}, {0.5f});
  const int32_t hard = model.addTensor(TensorType::INT32, {3});
  const int32_t hardCount = model.addTensor(TensorType::INT32, {});
  const int32_t soft = model.addTensor(TensorType::INT32, {});
  const int32_t lowered = model.addTensor(TensorType::FLOAT32, {});
  const int32_t softCount = model.addTensor(TensorType::INT32, {});
  model.addOperator(BuiltinOperator::NON_MAX_SUPPRESSION_V4, {boxes, scores, three, half, half},
                    {hard, hardCount});
  model.addOperator(BuiltinOperator::NON_MAX_SUPPRESSION_V5,
                    {boxes, scores, length, half, half, half}, {soft, lowered, softCount});
  model.setArguments({boxes, scores, length}, {hard, hardCount, soft, lowered, softCount});
  return model;
}

}  // namespace

std::vector<SampleModel> sampleMedia() {
  return {{"spectrum", spectrum().write()},        {"spectrogram", spectrogram().write()},
          {"cepstra", cepstra().write()},          {"detector", detector().write()},
          {"unpooling", unpooling().write()},      {"landmarks", landmarks().write()},
          {"suppressions", suppressions().write()}};
}

}  // namespace hearth::tflite
