// SPDX-License-Identifier: Apache-2.0
// SELECT takes each element from one of two tensors. SELECT_V2 of the extension broadcasts all
// three inputs.
#include <algorithm>

#include "base/vector_dispatch.h"
#include "ops/broadcast.h"
#include "ops/broadcast_rows.h"
#include "ops/element_visitor.h"
#include "ops/operation.h"
#include "ops/quantization.h"
#include "ops/registry.h"
#include "ops/tensor_types.h"
#include "ops/validation.h"

namespace hearth::ops {
namespace {

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(3, 1));
  HEARTH_TRY(signature.inputType(0, OperandType::kTensorBool8));
  HEARTH_TRY(signature.inputType(1, kMovedTensors));
  HEARTH_TRY(signature.inputTypeLike(2, 1));
  return signature.outputTypeLike(0, 1);
}

Status prepare(OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 3, 1));
  for (const size_t i : {1, 2})
    if (context.inputs[i].dimensions != context.inputs[0].dimensions)
      return fail(ErrorCode::kBadData, "Input {} of {} has the shape {}, input 0 has {}.", i,
                  context.describe(), graph::describeDimensions(context.inputs[i].dimensions),
                  graph::describeDimensions(context.inputs[0].dimensions));
  return context.setOutputDimensions(0, context.inputs[0].dimensions);
}

// The shape to which SELECT_V2 broadcasts its three inputs.
Result<Dimensions> broadcastAll(const OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 3, 1));
  HEARTH_ASSIGN(const Dimensions values, broadcastInputs(context, 1, 2));
  return broadcastShapes(context, context.inputs[0].dimensions, values);
}

Status prepareBroadcast(OperationContext& context) {
  HEARTH_ASSIGN(Dimensions dimensions, broadcastAll(context));
  return context.setOutputDimensions(0, std::move(dimensions));
}

Status validateBroadcast(const Signature& signature) {
  HEARTH_TRY(validate(signature));
  HEARTH_TRY(signature.outputQuantizationLike(0, 1));
  return signature.sameQuantization(1, 2);
}

// An argument of one element is not advanced. Both arguments are read before the choice: if neither
// read depends on it, compilers vectorise the loop.
template <typename T, bool kWalksYes, bool kWalksNo>
void selectRow(const uint8_t* condition, const T* yes, const T* no, T* target, size_t count) {
  base::onWidestVectors([=]() HEARTH_INLINE {
#pragma GCC ivdep
    for (size_t i = 0; i < count; ++i) {
      const T first = yes[kWalksYes ? i : 0];
      const T second = no[kWalksNo ? i : 0];
      if constexpr (sizeof(T) == 1) {
        // g++ makes branches of this choice between bytes.
        const int mask = condition[i] != 0 ? -1 : 0;
        target[i] = static_cast<T>((first & mask) | (second & ~mask));
      } else {
        target[i] = condition[i] != 0 ? first : second;
      }
    }
  });
}

template <typename T>
void selectBroadcast(const OperationContext& context, const Dimensions& dimensions) {
  const uint8_t* condition = context.inputs[0].as<uint8_t>();
  const T* yes = context.inputs[1].as<T>();
  const T* no = context.inputs[2].as<T>();
  T* target = context.outputs[0].as<T>();
  forEachBroadcastRow<3>(
      context.threadPool, dimensions,
      {&context.inputs[0].dimensions, &context.inputs[1].dimensions, &context.inputs[2].dimensions},
      [=](const BroadcastRow<3>& row) {
        const uint8_t* which = condition + row.at[0];
        const T* first = yes + row.at[1];
        const T* second = no + row.at[2];
        T* out = target + row.first;
        if (row.step[0] == 0) {
          const bool isFirst = *which != 0;
          const T* chosen = isFirst ? first : second;
          if (row.step[isFirst ? 1 : 2] == 0)
            std::fill_n(out, row.count, *chosen);
          else
            std::copy_n(chosen, row.count, out);
        } else if (row.step[1] != 0 && row.step[2] != 0) {
          selectRow<T, true, true>(which, first, second, out, row.count);
        } else if (row.step[1] != 0) {
          selectRow<T, true, false>(which, first, second, out, row.count);
        } else if (row.step[2] != 0) {
          selectRow<T, false, true>(which, first, second, out, row.count);
        } else {
          selectRow<T, false, false>(which, first, second, out, row.count);
        }
      });
}

// Calls visitor(std::type_identity<T>()) with a type of the size of an element. Complex numbers
// and strings are moved as integers.
template <typename Visitor>
Status visitMovedType(OperandType type, const Visitor& visitor) {
  if (type == OperandType::kTensorComplex64 || type == OperandType::kTensorString)
    return visitor(std::type_identity<uint64_t>());
  return visitElementType(type, visitor);
}

Status executeBroadcast(OperationContext& context) {
  HEARTH_ASSIGN(const Dimensions dimensions, broadcastAll(context));
  return visitMovedType(context.inputs[1].type(), [&]<typename T>(std::type_identity<T>) -> Status {
    selectBroadcast<T>(context, dimensions);
    return {};
  });
}

template <typename T>
void selectElements(const OperationContext& context) {
  const uint8_t* condition = context.inputs[0].as<uint8_t>();
  const T* yes = context.inputs[1].as<T>();
  const T* no = context.inputs[2].as<T>();
  T* target = context.outputs[0].as<T>();
  const uint64_t count = context.inputs[0].elementCount();
  const graph::Operand& to = *context.outputs[0].operand;
  const bool isRescaled =
      graph::isQuantized(to.type) && !(isSameQuantization(*context.inputs[1].operand, to) &&
                                       isSameQuantization(*context.inputs[2].operand, to));
  if constexpr (std::is_integral_v<T> && sizeof(T) <= 2) {
    if (isRescaled) {
      for (uint64_t i = 0; i < count; ++i) {
        const size_t chosen = condition[i] != 0 ? 1 : 2;
        const int32_t value = context.inputs[chosen].as<T>()[i];
        target[i] =
            static_cast<T>(quantize(dequantize(value, *context.inputs[chosen].operand), to));
      }
      return;
    }
  }
  threads::forRanges(context.threadPool, count, threads::grainOf(sizeof(T)),
                     [=](uint64_t begin, uint64_t end) {
                       selectRow<T, true, true>(condition + begin, yes + begin, no + begin,
                                                target + begin, end - begin);
                     });
}

Status execute(OperationContext& context) {
  return visitMovedType(context.inputs[1].type(), [&]<typename T>(std::type_identity<T>) -> Status {
    selectElements<T>(context);
    return {};
  });
}

}  // namespace

const OperationDefinition kSelectOperation = {OperationType::kSelect, validate, prepare, execute};
const OperationDefinition kSelectV2Operation = {OperationType::kSelectV2, validateBroadcast,
                                                prepareBroadcast, executeBroadcast};

}  // namespace hearth::ops
