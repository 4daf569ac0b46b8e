// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/bounding_box.h"
#include "ops/operation.h"
#include "ops/real_values.h"
#include "ops/registry.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

enum Input : size_t { kRegions, kDeltas, kBatches, kImages };

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(4, 1));
  HEARTH_TRY(signature.inputType(kRegions, kFloatTensors | OperandType::kTensorQuant16Asymm));
  const OperandType type = signature.input(kRegions).type;
  HEARTH_TRY(signature.inputType(
      kDeltas, type == OperandType::kTensorQuant16Asymm ? kQuant8Tensors : TypeSet(type)));
  HEARTH_TRY(signature.inputType(kBatches, OperandType::kTensorInt32));
  HEARTH_TRY(signature.inputTypeLike(kImages, kRegions));
  for (const size_t i : {kRegions, kDeltas, kImages}) HEARTH_TRY(signature.inputRank(i, 2, 2));
  HEARTH_TRY(signature.inputRank(kBatches, 1, 1));
  return signature.outputTypeLike(0, kRegions);
}

Status prepare(OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 4, 1));
  for (const size_t i : {kRegions, kDeltas, kImages}) HEARTH_TRY(requireRank(context, i, 2, 2));
  const Dimensions& regions = context.inputs[kRegions].dimensions;
  const Dimensions& deltas = context.inputs[kDeltas].dimensions;
  const Dimensions& images = context.inputs[kImages].dimensions;
  if (regions[1] != 4 || deltas[0] != regions[0] || deltas[1] % 4 != 0 || images[1] != 2 ||
      context.inputs[kBatches].dimensions != Dimensions{regions[0]})
    return fail(ErrorCode::kBadData,
                "{} has regions {}, deltas {}, batch indices {} and image sizes {}, which do not "
                "fit.",
                context.describe(), graph::describeDimensions(regions),
                graph::describeDimensions(deltas),
                graph::describeDimensions(context.inputs[kBatches].dimensions),
                graph::describeDimensions(images));
  return context.setOutputDimensions(0, deltas);
}

Status execute(OperationContext& context) {
  const RealInput regions(context.inputs[kRegions]);
  const RealInput deltas(context.inputs[kDeltas]);
  const RealInput images(context.inputs[kImages]);
  HEARTH_TRY(checkBatchIndices(context, kBatches, context.inputs[kImages].dimensions[0]));
  HEARTH_TRY(checkRegions(context, kRegions, {regions.data(), regions.size()}));
  RealOutput output(context.outputs[0]);
  const size_t classes = context.inputs[kDeltas].dimensions[1] / 4;
  const int32_t* batches = context.inputs[kBatches].as<int32_t>();
  for (size_t i = 0; i < context.inputs[kRegions].dimensions[0]; ++i) {
    const Box region = boxAt(regions.data() + i * 4);
    const float* image = images.data() + static_cast<size_t>(batches[i]) * 2;
    for (size_t c = 0; c < classes; ++c) {
      const size_t at = (i * classes + c) * 4;
      const Box box = transformBox(region, deltas.data() + at, image[0], image[1]);
      output[at] = box.left;
      output[at + 1] = box.top;
      output[at + 2] = box.right;
      output[at + 3] = box.bottom;
    }
  }
  output.store();
  return {};
}

}  // namespace

const OperationDefinition kAxisAlignedBboxTransformOperation = {
    OperationType::kAxisAlignedBboxTransform, validate, prepare, execute};

}  // namespace hearth::ops
