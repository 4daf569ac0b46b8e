// SPDX-License-Identifier: Apache-2.0
// Random numbers as TFLite draws them. RANDOM_UNIFORM (in [0, 1)) and RANDOM_STANDARD_NORMAL: the
// output's shape, two seeds (TENSOR_INT64 of 2 elements), position. MULTINOMIAL: logits [batches,
// classes], the number of samples (one element), seeds, position; its output [batches, samples] are
// class numbers drawn with the probabilities softmax(logits).
//
// The position (TENSOR_INT64 of one element) says where in the sequence of random numbers the
// operation begins; the second output says where the next run is to begin. When both seeds are 0,
// each run draws seeds from the system.
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>
#include <utility>
#include <vector>

#include "ops/operation.h"
#include "ops/output_shape.h"
#include "ops/philox.h"
#include "ops/registry.h"
#include "ops/tensor_types.h"
#include "ops/validation.h"
#include "threads/parallel_ranges.h"

namespace hearth::ops {
namespace {

enum Output : size_t { kNumbers, kNextPosition };

// Seeds and position are the inputs `seeds` and `seeds` + 1.
Status validateSequence(const Signature& signature, size_t seeds) {
  for (const size_t i : {seeds, seeds + 1}) {
    HEARTH_TRY(signature.inputTensor(i, OperandType::kTensorInt64, 1, 1));
  }
  return signature.outputType(kNextPosition, OperandType::kTensorInt64);
}

Status prepareSequence(OperationContext& context, size_t seeds) {
  if (context.inputs[seeds].elementCount() != 2)
    return fail(ErrorCode::kBadData, "{} has {} seeds, it must have 2.", context.describe(),
                context.inputs[seeds].elementCount());
  HEARTH_TRY(requireOneElement(context, seeds + 1));
  return context.setOutputDimensions(kNextPosition, {1});
}

struct Sequence {
  Philox philox;
  uint64_t position = 0;
};

Result<Sequence> sequenceOf(const OperationContext& context, size_t seeds) {
  std::array<uint64_t, 2> values;
  std::memcpy(values.data(), context.inputs[seeds].data, sizeof(values));
  uint64_t position;
  std::memcpy(&position, context.inputs[seeds + 1].data, sizeof(position));
  const bool isGiven = values[0] != 0 || values[1] != 0;
  if (!isGiven && getrandom(values.data(), sizeof(values), 0) != sizeof(values))
    return fail(ErrorCode::kOpFailed, "{} gets no random seeds from the system: {}.",
                context.describe(), std::strerror(errno));
  return Sequence{Philox(values[0], values[1]), position};
}

void storeNextPosition(const OperationContext& context, uint64_t position) {
  std::memcpy(context.outputs[kNextPosition].data, &position, sizeof(position));
}

constexpr size_t kFillSeeds = 1;

Status validateFill(const Signature& signature) {
  HEARTH_TRY(signature.counts(3, 2));
  HEARTH_TRY(signature.inputTensor(0, kIndexTensors, 1, 1));
  HEARTH_TRY(signature.outputType(kNumbers, OperandType::kTensorFloat32));
  return validateSequence(signature, kFillSeeds);
}

Status prepareFill(OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 3, 2));
  HEARTH_TRY(prepareSequence(context, kFillSeeds));
  HEARTH_ASSIGN(Dimensions dimensions, dimensionsArgument(context, 0));
  return context.setOutputDimensions(kNumbers, std::move(dimensions));
}

using Floats = std::array<float, Philox::kBlockSize>;

Floats uniform(const Philox::Block& block) {
  Floats numbers;
  std::ranges::transform(block, numbers.begin(), unitFloat);
  return numbers;
}

// Makes two normal numbers of two uniform ones (Box and Muller). The method takes a logarithm, so 0
// is replaced by kLeast.
Floats normal(const Philox::Block& block) {
  constexpr float kLeast = 1e-7f;
  Floats numbers;
  for (size_t i = 0; i < numbers.size(); i += 2) {
    const float length = std::sqrt(-2.0f * std::log(std::max(unitFloat(block[i]), kLeast)));
    const float angle = 2.0f * std::numbers::pi_v<float> * unitFloat(block[i + 1]);
    numbers[i] = std::sin(angle) * length;
    numbers[i + 1] = std::cos(angle) * length;
  }
  return numbers;
}

template <Floats (*numbersOf)(const Philox::Block&)>
Status executeFill(OperationContext& context) {
  HEARTH_ASSIGN(const Sequence sequence, sequenceOf(context, kFillSeeds));
  const uint64_t count = context.outputs[kNumbers].elementCount();
  const uint64_t blocks = (count + Philox::kBlockSize - 1) / Philox::kBlockSize;
  float* target = context.outputs[kNumbers].as<float>();
  constexpr uint64_t kCostOfBlock = 256;
  threads::forRanges(
      context.threadPool, blocks, threads::grainOf(kCostOfBlock),
      [&](uint64_t begin, uint64_t end) {
        for (uint64_t i = begin; i < end; ++i) {
          const Floats numbers = numbersOf(sequence.philox.block(sequence.position + i));
          const uint64_t first = i * Philox::kBlockSize;
          std::copy_n(numbers.begin(), std::min(count - first, Philox::kBlockSize), target + first);
        }
      });
  storeNextPosition(context, sequence.position + blocks);
  return {};
}

enum MultinomialInput : size_t { kLogits, kSamples, kMultinomialSeeds };

Status validateMultinomial(const Signature& signature) {
  HEARTH_TRY(signature.counts(4, 2));
  HEARTH_TRY(signature.inputTensor(kLogits, OperandType::kTensorFloat32, 2, 2));
  HEARTH_TRY(signature.inputType(kSamples, OperandType::kTensorInt32));
  HEARTH_TRY(signature.outputType(kNumbers, kIndexTensors));
  return validateSequence(signature, kMultinomialSeeds);
}

Status prepareMultinomial(OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 4, 2));
  HEARTH_TRY(requireRank(context, kLogits, 2, 2));
  HEARTH_TRY(requireOneElement(context, kSamples));
  HEARTH_TRY(prepareSequence(context, kMultinomialSeeds));
  HEARTH_ASSIGN(const std::vector<int64_t> samples, context.intVector(kSamples));
  HEARTH_ASSIGN(const uint32_t count, toDimension(context, samples[0]));
  const Dimensions& logits = context.inputs[kLogits].dimensions;
  if (logits[1] == 0)
    return fail(ErrorCode::kBadData, "{} draws from {}, which has no classes.", context.describe(),
                graph::describeDimensions(logits));
  return context.setOutputDimensions(kNumbers, {logits[0], count});
}

// Running sums of the classes' weights; infinite and NaN logits have weight 0.
void accumulate(const float* logits, std::vector<double>* sums) {
  double largest = std::numeric_limits<float>::lowest();
  for (size_t i = 0; i < sums->size(); ++i)
    if (std::isfinite(logits[i])) largest = std::max(largest, static_cast<double>(logits[i]));
  double total = 0.0;
  for (size_t i = 0; i < sums->size(); ++i) {
    if (std::isfinite(logits[i])) total += std::exp(static_cast<double>(logits[i]) - largest);
    (*sums)[i] = total;
  }
}

// The class of a place among the running sums: how many of them it is not below. Few are counted,
// without branches that depend on random numbers.
uint64_t classAt(const std::vector<double>& sums, double place) {
  constexpr size_t kFew = 32;
  if (sums.size() > kFew)
    return static_cast<uint64_t>(std::ranges::upper_bound(sums, place) - sums.begin());
  uint64_t passed = 0;
  for (const double sum : sums) passed += sum <= place ? 1 : 0;
  return passed;
}

template <typename T>
Status drawClasses(const OperationContext& context) {
  HEARTH_ASSIGN(const Sequence sequence, sequenceOf(context, kMultinomialSeeds));
  const Dimensions& shape = context.outputs[kNumbers].dimensions;
  const uint64_t classes = context.inputs[kLogits].dimensions[1];
  const uint64_t samples = shape[1];
  const float* const logits = context.inputs[kLogits].as<float>();
  T* const target = context.outputs[kNumbers].as<T>();
  const auto draw = [&](uint64_t begin, uint64_t end) {
    std::vector<double> sums(classes);
    Philox::Block block = sequence.philox.block(sequence.position + begin / 2);
    for (uint64_t drawn = begin; drawn < end;) {
      const uint64_t batch = drawn / samples;
      accumulate(logits + batch * classes, &sums);
      for (const uint64_t last = std::min(end, (batch + 1) * samples); drawn < last; ++drawn) {
        // One block serves two draws, even if they belong to two batch elements.
        if (drawn % 2 == 0) block = sequence.philox.block(sequence.position + drawn / 2);
        const size_t half = drawn % 2 * 2;
        const double place = unitDouble(block[half], block[half + 1]) * sums.back();
        target[drawn] = static_cast<T>(std::min(classAt(sums, place), classes - 1));
      }
    }
  };
  constexpr uint64_t kCostOfDraw = 128;
  constexpr uint64_t kCostOfClass = 64;
  // Sums of many classes are made once.
  const uint64_t together = classes > samples ? samples : 1;
  if (samples > 0)
    threads::forRanges(
        context.threadPool, shape[0] * samples / together,
        threads::grainOf(together == 1 ? kCostOfDraw
                                       : samples * kCostOfDraw + classes * kCostOfClass),
        [&](uint64_t begin, uint64_t end) { draw(begin * together, end * together); });
  // TFLite, like TensorFlow, advances the position further than it draws.
  constexpr uint64_t kReserve = 512;
  storeNextPosition(context, sequence.position + shape[0] * ((samples + 3) / 4 * 4) * kReserve);
  return {};
}

Status executeMultinomial(OperationContext& context) {
  return context.outputs[kNumbers].type() == OperandType::kTensorInt64
             ? drawClasses<int64_t>(context)
             : drawClasses<int32_t>(context);
}

}  // namespace

const OperationDefinition kRandomUniformOperation = {OperationType::kRandomUniform, validateFill,
                                                     prepareFill, executeFill<uniform>};
const OperationDefinition kRandomStandardNormalOperation = {
    OperationType::kRandomStandardNormal, validateFill, prepareFill, executeFill<normal>};
const OperationDefinition kMultinomialOperation = {OperationType::kMultinomial, validateMultinomial,
                                                   prepareMultinomial, executeMultinomial};

}  // namespace hearth::ops
