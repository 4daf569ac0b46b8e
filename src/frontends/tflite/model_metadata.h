// SPDX-License-Identifier: Apache-2.0
// What a model file says about itself: TFLite's metadata, and the files packed behind the model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hearth::tflite {

// A file that the metadata names.
struct AssociatedFile {
  std::string name;
  std::string description;
  std::string type;    // "axis labels", "value labels", "score calibration", "vocabulary", …; or ""
  std::string locale;  // "en", "en-US"; mostly empty
};

// A file of the archive behind the model.
struct PackedFile {
  std::string name;
  uint64_t offset = 0;     // from the begin of the model, in bytes
  uint64_t size = 0;       // in the file
  uint64_t plainSize = 0;  // unpacked
  std::string problem;     // why its bytes cannot be used, in a sentence; else empty
};

struct BoundingBoxMetadata {
  std::string kind;             // "boundaries", "upper left" or "center"; "" if unknown
  std::vector<uint32_t> order;  // of the kind's four numbers; empty = 0, 1, 2, 3
  bool isInPixels = false;      // else from 0 to 1
};

struct AudioMetadata {
  uint32_t sampleRate = 0;
  uint32_t channels = 0;
};

struct CalibrationMetadata {
  std::string transformation;  // "identity", "log" or "inverse logistic"
  float defaultScore = 0;
};

// An input or output.
struct TensorMetadata {
  std::string name;
  std::string description;
  std::vector<std::string> dimensionNames;
  std::string content;     // "image", "feature", "bounding box", "audio"; or ""
  std::string colorSpace;  // "RGB" or "grayscale" of an image; else empty
  std::optional<BoundingBoxMetadata> box;
  std::optional<AudioMetadata> audio;
  // One for all channels or one for each; (x - mean) / std.
  std::vector<float> mean;
  std::vector<float> std;
  std::vector<float> min;
  std::vector<float> max;
  std::optional<CalibrationMetadata> calibration;
  std::optional<float> scoreThreshold;
  std::vector<AssociatedFile> files;
};

struct ModelMetadata {
  std::string name;
  std::string description;
  std::string version;
  std::string author;
  std::string license;
  std::string minParserVersion;
  // In the order of the first subgraph's inputs and outputs, of which there may be more or fewer.
  std::vector<TensorMetadata> inputs;
  std::vector<TensorMetadata> outputs;
  std::vector<AssociatedFile> files;  // of the model as a whole
  std::vector<PackedFile> packed;
  // For each output of the first subgraph, the operator of the file that computes its values:
  // "SOFTMAX", "TFLite_Detection_PostProcess"; empty if none does. Operators that change only type
  // or shape are passed over.
  std::vector<std::string> outputOperations;
  std::string problem;  // what could not be read, in a sentence; else empty
};

}  // namespace hearth::tflite
