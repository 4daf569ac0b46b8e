// SPDX-License-Identifier: Apache-2.0
// GENERATE_PROPOSALS: moves the anchors at every position of a feature map by the deltas and keeps
// the best boxes that are large enough and do not overlap.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "ops/bounding_box.h"
#include "ops/operation.h"
#include "ops/real_values.h"
#include "ops/recurrent_activation.h"
#include "ops/registry.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

enum Input : size_t {
  kScores,
  kDeltas,
  kAnchors,
  kImages,
  kHeightStride,
  kWidthStride,
  kCandidateLimit,
  kResultLimit,
  kOverlapThreshold,
  kMinimumSize,
  kIsNchw,
  kInputCount,
};

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(kInputCount, 3));
  HEARTH_TRY(signature.inputType(kScores, kFloatTensors | kQuant8Tensors));
  const OperandType type = signature.input(kScores).type;
  const bool isFloat = kFloatTensors.contains(type);
  HEARTH_TRY(signature.inputTypeLike(kDeltas, kScores));
  HEARTH_TRY(signature.inputType(kAnchors, isFloat ? type : OperandType::kTensorQuant16Symm));
  HEARTH_TRY(signature.inputType(kImages, isFloat ? type : OperandType::kTensorQuant16Asymm));
  HEARTH_TRY(signature.inputRank(kScores, 4, 4));
  HEARTH_TRY(signature.inputRank(kDeltas, 4, 4));
  HEARTH_TRY(signature.inputRank(kAnchors, 2, 2));
  HEARTH_TRY(signature.inputRank(kImages, 2, 2));
  for (const size_t i : {kHeightStride, kWidthStride, kOverlapThreshold, kMinimumSize})
    HEARTH_TRY(signature.floatScalar(i, kScores));
  HEARTH_TRY(signature.inputType(kCandidateLimit, OperandType::kInt32));
  HEARTH_TRY(signature.inputType(kResultLimit, OperandType::kInt32));
  HEARTH_TRY(signature.inputType(kIsNchw, OperandType::kBool));
  HEARTH_TRY(signature.outputTypeLike(0, kScores));
  HEARTH_TRY(signature.outputTypeLike(1, kImages));
  return signature.outputType(2, OperandType::kTensorInt32);
}

struct Parameters {
  uint32_t batches = 0;
  uint32_t height = 0;
  uint32_t width = 0;
  uint32_t anchors = 0;
  bool isNchw = false;
  float heightStride = 1.0f;
  float widthStride = 1.0f;
  size_t candidateLimit = SIZE_MAX;
  size_t resultLimit = SIZE_MAX;
  float overlapThreshold = 0.0f;
  float minimumSize = 0.0f;

  // Offset of channel `channel` of `channels` at a position.
  size_t at(size_t batch, size_t y, size_t x, size_t channel, size_t channels) const {
    return isNchw ? ((batch * channels + channel) * height + y) * width + x
                  : ((batch * height + y) * width + x) * channels + channel;
  }
};

Result<Parameters> parse(const OperationContext& context) {
  HEARTH_TRY(requireArguments(context, kInputCount, 0));
  HEARTH_TRY(requireRank(context, kScores, 4, 4));
  Parameters parameters;
  HEARTH_ASSIGN(parameters.isNchw, context.scalar<bool>(kIsNchw));
  const Dimensions& scores = context.inputs[kScores].dimensions;
  const size_t channel = parameters.isNchw ? 1 : 3;
  parameters.batches = scores[0];
  parameters.height = scores[parameters.isNchw ? 2 : 1];
  parameters.width = scores[parameters.isNchw ? 3 : 2];
  parameters.anchors = scores[channel];
  const uint64_t deltaChannels = uint64_t{parameters.anchors} * 4;
  Dimensions deltas = scores;
  deltas[channel] = static_cast<uint32_t>(deltaChannels);
  const Dimensions anchors = {parameters.anchors, 4};
  const Dimensions images = {parameters.batches, 2};
  if (deltaChannels > UINT32_MAX || context.inputs[kDeltas].dimensions != deltas ||
      context.inputs[kAnchors].dimensions != anchors ||
      context.inputs[kImages].dimensions != images)
    return fail(ErrorCode::kBadData,
                "{} has scores {}, deltas {}, anchors {} and image sizes {}, which do not fit.",
                context.describe(), graph::describeDimensions(scores),
                graph::describeDimensions(context.inputs[kDeltas].dimensions),
                graph::describeDimensions(context.inputs[kAnchors].dimensions),
                graph::describeDimensions(context.inputs[kImages].dimensions));
  HEARTH_ASSIGN(parameters.heightStride, floatScalar(context, kHeightStride));
  HEARTH_ASSIGN(parameters.widthStride, floatScalar(context, kWidthStride));
  HEARTH_ASSIGN(const int32_t candidates, context.scalar<int32_t>(kCandidateLimit));
  HEARTH_ASSIGN(const int32_t results, context.scalar<int32_t>(kResultLimit));
  if (candidates > 0) parameters.candidateLimit = static_cast<size_t>(candidates);
  if (results > 0) parameters.resultLimit = static_cast<size_t>(results);
  HEARTH_ASSIGN(parameters.overlapThreshold, floatScalar(context, kOverlapThreshold));
  HEARTH_ASSIGN(parameters.minimumSize, floatScalar(context, kMinimumSize));
  return parameters;
}

struct Proposals {
  std::vector<float> scores;
  std::vector<float> corners;  // four for each
  std::vector<int32_t> batches;
};

Result<Proposals> propose(const OperationContext& context) {
  HEARTH_ASSIGN(const Parameters parameters, parse(context));
  for (const size_t i : {kScores, kDeltas, kAnchors, kImages})
    if (context.inputs[i].data == nullptr && context.inputs[i].elementCount() > 0)
      return needsRuntimeValue(context, i);
  const RealInput allScores(context.inputs[kScores]);
  const RealInput allDeltas(context.inputs[kDeltas]);
  const RealInput anchors(context.inputs[kAnchors]);
  const RealInput images(context.inputs[kImages]);
  Proposals proposals;
  for (size_t batch = 0; batch < parameters.batches; ++batch) {
    const float imageHeight = images[batch * 2];
    const float imageWidth = images[batch * 2 + 1];
    std::vector<float> scores;
    std::vector<Box> boxes;
    for (size_t y = 0; y < parameters.height; ++y) {
      for (size_t x = 0; x < parameters.width; ++x) {
        const float left = static_cast<float>(x) * parameters.widthStride;
        const float top = static_cast<float>(y) * parameters.heightStride;
        for (size_t a = 0; a < parameters.anchors; ++a) {
          scores.push_back(allScores[parameters.at(batch, y, x, a, parameters.anchors)]);
          const Box anchor = boxAt(anchors.data() + a * 4);
          float deltas[4];
          for (size_t i = 0; i < 4; ++i)
            deltas[i] =
                allDeltas[parameters.at(batch, y, x, a * 4 + i, size_t{parameters.anchors} * 4)];
          boxes.push_back(transformBox(
              {anchor.left + left, anchor.top + top, anchor.right + left, anchor.bottom + top},
              deltas, imageHeight, imageWidth));
        }
      }
    }
    std::vector<uint32_t> candidates(scores.size());
    std::iota(candidates.begin(), candidates.end(), 0u);
    if (candidates.size() > parameters.candidateLimit) {
      std::stable_sort(candidates.begin(), candidates.end(),
                       [&](uint32_t a, uint32_t b) { return isHigherScore(scores[a], scores[b]); });
      candidates.resize(parameters.candidateLimit);
    }
    // Boxes smaller than one pixel are dropped, whatever the model says.
    const float minimumSize = std::max(parameters.minimumSize, 1.0f);
    std::erase_if(candidates, [&](uint32_t i) {
      const Box& box = boxes[i];
      return !(box.width() > minimumSize && box.height() > minimumSize &&
               box.centerX() < imageWidth && box.centerY() < imageHeight);
    });
    for (const uint32_t i : suppressOverlaps(std::move(candidates), scores, boxes,
                                             parameters.overlapThreshold, parameters.resultLimit)) {
      proposals.scores.push_back(scores[i]);
      for (const float corner : {boxes[i].left, boxes[i].top, boxes[i].right, boxes[i].bottom})
        proposals.corners.push_back(corner);
      proposals.batches.push_back(static_cast<int32_t>(batch));
    }
  }
  return proposals;
}

Status prepare(OperationContext& context) {
  HEARTH_ASSIGN(const Proposals proposals, propose(context));
  return setBoxOutputDimensions(context, proposals.scores.size());
}

Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const Proposals proposals, propose(context));
  storeReal(context, 0, proposals.scores);
  storeReal(context, 1, proposals.corners);
  if (context.hasOutput(2))
    std::copy(proposals.batches.begin(), proposals.batches.end(), context.outputs[2].as<int32_t>());
  return {};
}

}  // namespace

const OperationDefinition kGenerateProposalsOperation = {OperationType::kGenerateProposals,
                                                         validate, prepare, execute};

}  // namespace hearth::ops
