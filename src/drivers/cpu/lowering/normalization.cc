// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/lowering/normalization.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/vector_dispatch.h"
#include "drivers/cpu/kernels/function_kernel.h"
#include "drivers/cpu/lowering/declined.h"
#include "ops/group_norm.h"
#include "ops/validation.h"
#include "threads/parallel_ranges.h"

namespace hearth::cpu {
namespace {

// Number of partial sums: two of the widest registers.
constexpr size_t kLanes = 32;

bool isFloat(PlanBuilder* builder, uint32_t operand) {
  return builder->operand(operand).type == graph::OperandType::kTensorFloat32;
}

// Sums of x - shift, and of its square.
struct Moments {
  double sum = 0.0;
  double squares = 0.0;
};

HEARTH_INLINE inline Moments momentsOf(const float* values, size_t count, float shift) {
  float sums[kLanes] = {};
  float squares[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const float value = values[i + lane] - shift;
      sums[lane] += value;
      squares[lane] += value * value;
    }
  }
  Moments moments;
  for (; i < count; ++i) {
    const double value = double{values[i]} - shift;
    moments.sum += value;
    moments.squares += value * value;
  }
  for (size_t lane = 0; lane < kLanes; ++lane) {
    moments.sum += sums[lane];
    moments.squares += squares[lane];
  }
  return moments;
}

void normalizeRow(const float* source, const float* scale, size_t size, float epsilon,
                  float* target) {
  base::onWidestVectors([=]() HEARTH_INLINE {
    const double squares = momentsOf(source, size, 0.0f).squares;
    const auto factor =
        static_cast<float>(1.0 / std::sqrt(squares / static_cast<double>(size) + epsilon));
#pragma GCC ivdep
    for (size_t i = 0; i < size; ++i)
      target[i] = source[i] * factor * (scale == nullptr ? 1.0f : scale[i]);
  });
}

// target = (source - mean) * factor + offset.
void scaleRun(const float* source, size_t count, float mean, float factor, float offset,
              float* target) {
  base::onWidestVectors([=]() HEARTH_INLINE {
#pragma GCC ivdep
    for (size_t i = 0; i < count; ++i) target[i] = (source[i] - mean) * factor + offset;
  });
}

struct GroupNorm {
  ops::GroupNormParameters parameters;
  ValueId source = 0, scale = 0, offset = 0, destination = 0;
  bool hasScale = false, hasOffset = false;
};

// Normalizes one group of one batch element whose channels are planes.
void normalizePlanes(const GroupNorm& norm, const KernelRun& run, size_t batch, size_t group) {
  const ops::GroupNormParameters& p = norm.parameters;
  const size_t length = p.groupChannels * p.inner;
  const size_t stride = p.channels() * p.inner;
  const size_t first = batch * p.outer * stride + group * length;
  const float* source = run.at<float>(norm.source) + first;
  float* target = run.at<float>(norm.destination) + first;
  const double count = static_cast<double>(p.outer * length);
  double mean = 0.0;
  double variance = 0.0;
  // The second pass subtracts the mean first, so that a large mean costs no precision.
  for (const bool isSecond : {false, true}) {
    const auto shift = static_cast<float>(mean);
    Moments sum;
    base::onWidestVectors([&]() HEARTH_INLINE {
      for (size_t o = 0; o < p.outer; ++o) {
        const Moments part = momentsOf(source + o * stride, length, shift);
        sum.sum += part.sum;
        sum.squares += part.squares;
      }
    });
    const double rest = sum.sum / count;
    mean = shift + rest;
    if (isSecond) variance = sum.squares / count - rest * rest;
  }
  const auto factor = static_cast<float>(1.0 / std::sqrt(variance + p.epsilon));
  const size_t channel = group * p.groupChannels;
  const float* scale = norm.hasScale ? run.at<float>(norm.scale) + channel : nullptr;
  const float* offset = norm.hasOffset ? run.at<float>(norm.offset) + channel : nullptr;
  const auto centre = static_cast<float>(mean);
  const auto rest = static_cast<float>(mean - centre);
  for (size_t o = 0; o < p.outer; ++o, source += stride, target += stride) {
    for (size_t c = 0; c < p.groupChannels; ++c) {
      const float scaled = scale == nullptr ? factor : factor * scale[c];
      scaleRun(source + c * p.inner, p.inner, centre, scaled,
               (offset == nullptr ? 0.0f : offset[c]) - rest * scaled, target + c * p.inner);
    }
  }
}

// Adds to `results`, by channel over `rows` rows: the values if `means` is null, else the squares
// of their distances from `means`.
void addRows(const float* source, size_t rows, size_t channels, const float* means,
             double* results) {
  // Sums of a few rows are float32; they are added to the double results.
  constexpr size_t kRows = 32;
  std::vector<float> sums(channels);
  for (size_t first = 0; first < rows; first += kRows) {
    const size_t last = std::min(rows, first + kRows);
    std::fill(sums.begin(), sums.end(), 0.0f);
    float* sum = sums.data();
    base::onWidestVectors([=]() HEARTH_INLINE {
      for (size_t row = first; row < last; ++row) {
        const float* values = source + row * channels;
        if (means == nullptr) {
#pragma GCC ivdep
          for (size_t c = 0; c < channels; ++c) sum[c] += values[c];
        } else {
#pragma GCC ivdep
          for (size_t c = 0; c < channels; ++c)
            sum[c] += (values[c] - means[c]) * (values[c] - means[c]);
        }
      }
    });
    for (size_t c = 0; c < channels; ++c) results[c] += sums[c];
  }
}

// The mean over each group of what addRows() adds, repeated for each channel of the group.
std::vector<double> groupMeans(const ops::GroupNormParameters& p, const float* source,
                               const float* means, threads::ThreadPool* pool) {
  const size_t channels = p.channels();
  constexpr size_t kMostParts = 16;
  const size_t parts = std::min(kMostParts, p.outer);
  std::vector<double> sums(parts * channels);
  threads::forRanges(pool, parts, 1, [&](uint64_t begin, uint64_t end) {
    for (uint64_t part = begin; part < end; ++part) {
      const size_t first = part * p.outer / parts;
      const size_t last = (part + 1) * p.outer / parts;
      addRows(source + first * channels, last - first, channels, means,
              sums.data() + part * channels);
    }
  });
  std::vector<double> results(channels);
  for (size_t group = 0; group < channels; group += p.groupChannels) {
    double sum = 0.0;
    for (size_t part = 0; part < parts; ++part)
      for (size_t c = 0; c < p.groupChannels; ++c) sum += sums[part * channels + group + c];
    std::fill_n(results.begin() + static_cast<ptrdiff_t>(group), p.groupChannels,
                sum / static_cast<double>(p.outer * p.groupChannels));
  }
  return results;
}

// Normalizes one batch element whose channels are neighbours.
void normalizePixels(const GroupNorm& norm, const KernelRun& run, size_t batch) {
  const ops::GroupNormParameters& p = norm.parameters;
  const size_t channels = p.channels();
  const float* source = run.at<float>(norm.source) + batch * p.outer * channels;
  float* target = run.at<float>(norm.destination) + batch * p.outer * channels;
  const std::vector<double> exactMeans = groupMeans(p, source, nullptr, run.pool);
  const std::vector<float> means(exactMeans.begin(), exactMeans.end());
  const std::vector<double> variances = groupMeans(p, source, means.data(), run.pool);
  std::vector<float> factors(channels);
  std::vector<float> offsets(channels, 0.0f);
  for (size_t c = 0; c < channels; ++c)
    factors[c] = static_cast<float>(1.0 / std::sqrt(variances[c] + p.epsilon)) *
                 (norm.hasScale ? run.at<float>(norm.scale)[c] : 1.0f);
  if (norm.hasOffset) std::copy_n(run.at<float>(norm.offset), channels, offsets.begin());
  for (size_t c = 0; c < channels; ++c)
    offsets[c] -= static_cast<float>(exactMeans[c] - means[c]) * factors[c];
  threads::forRanges(run.pool, p.outer, threads::grainOf(channels * sizeof(float)),
                     [&, mean = means.data(), factor = factors.data(), offset = offsets.data()](
                         uint64_t begin, uint64_t end) {
                       base::onWidestVectors([=]() HEARTH_INLINE {
                         for (uint64_t row = begin; row < end; ++row) {
                           const float* from = source + row * channels;
                           float* to = target + row * channels;
#pragma GCC ivdep
                           for (size_t c = 0; c < channels; ++c)
                             to[c] = (from[c] - mean[c]) * factor[c] + offset[c];
                         }
                       });
                     });
}

}  // namespace

Result<bool> lowerRmsNorm(PlanBuilder* builder) {
  const graph::Operation& operation = *builder->context().operation;
  if (!isFloat(builder, operation.inputs[0])) return builder->decline(kOnlyFloat32);
  HEARTH_ASSIGN(const float epsilon, ops::floatScalar(builder->context(), 2));
  const ops::Tensor& data = builder->tensor(operation.inputs[0]);
  const size_t size = data.dimensions.back();
  const uint64_t rows = data.elementCount() / size;
  const bool hasScale = builder->context().hasInput(1);
  const ValueId source = builder->read(operation.inputs[0]);
  const ValueId scale = hasScale ? builder->read(operation.inputs[1]) : source;
  const ValueId destination = builder->write(operation.outputs[0]);
  Node& node = builder->add("own", {source, scale}, {destination});
  if (scale != source) node.inPlaceInputs = {0};
  node.create = [=] {
    return makeFunctionKernel([=](const KernelRun& run) -> Status {
      const float* from = run.at<float>(source);
      float* to = run.at<float>(destination);
      const float* factors = hasScale ? run.at<float>(scale) : nullptr;
      threads::forRanges(run.pool, rows, threads::grainOf(size * sizeof(float)),
                         [&](uint64_t begin, uint64_t end) {
                           for (uint64_t row = begin; row < end; ++row)
                             normalizeRow(from + row * size, factors, size, epsilon,
                                          to + row * size);
                         });
      return {};
    });
  };
  return true;
}

Result<bool> lowerGroupNorm(PlanBuilder* builder) {
  const graph::Operation& operation = *builder->context().operation;
  if (!isFloat(builder, operation.inputs[0])) return builder->decline(kOnlyFloat32);
  GroupNorm norm;
  HEARTH_ASSIGN(norm.parameters, ops::parseGroupNorm(builder->context()));
  std::vector<ValueId> inputs = {norm.source = builder->read(operation.inputs[0])};
  norm.hasScale = builder->context().hasInput(1);
  norm.hasOffset = builder->context().hasInput(2);
  if (norm.hasScale) inputs.push_back(norm.scale = builder->read(operation.inputs[1]));
  if (norm.hasOffset) inputs.push_back(norm.offset = builder->read(operation.inputs[2]));
  norm.destination = builder->write(operation.outputs[0]);
  builder->add("own", std::move(inputs), {norm.destination}).create = [norm] {
    return makeFunctionKernel([norm](const KernelRun& run) -> Status {
      const ops::GroupNormParameters& p = norm.parameters;
      if (p.inner == 1) {
        for (size_t batch = 0; batch < p.batches; ++batch) normalizePixels(norm, run, batch);
        return {};
      }
      threads::forRanges(run.pool, p.batches * p.groups, 1, [&](uint64_t begin, uint64_t end) {
        for (uint64_t i = begin; i < end; ++i)
          normalizePlanes(norm, run, i / p.groups, i % p.groups);
      });
      return {};
    });
  };
  return true;
}

}  // namespace hearth::cpu
