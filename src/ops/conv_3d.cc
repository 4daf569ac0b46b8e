// SPDX-License-Identifier: Apache-2.0
// CONV_3D of the extension. Inputs: data [n, depth, height, width, channels], filter [depth,
// height, width, channels, outputs], bias (may be omitted), padding code, strides and dilations
// (INT32, each as depth, height, width), activation.
#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "base/vector_dispatch.h"
#include "ops/activation.h"
#include "ops/conv_3d_extents.h"
#include "ops/convolution.h"
#include "ops/operation.h"
#include "ops/output_shape.h"
#include "ops/real_values.h"
#include "ops/registry.h"
#include "ops/validation.h"
#include "threads/parallel_ranges.h"

namespace hearth::ops {
namespace {

enum Input : size_t { kData, kFilter, kBias };

Status validate(const Signature& signature) {
  HEARTH_TRY(signature.counts(kConv3dActivation + 1, 1));
  return validateConv3d(signature);
}

struct Parameters {
  size_t batches = 0, inputs = 0, outputs = 0;
  FusedActivation activation = FusedActivation::kNone;
  Extents extents;
};

Result<Parameters> parse(const OperationContext& context) {
  HEARTH_TRY(requireArguments(context, 2, 1));
  for (const size_t i : {kData, kFilter}) HEARTH_TRY(requireRank(context, i, 5, 5));
  const Dimensions& data = context.inputs[kData].dimensions;
  const Dimensions& filter = context.inputs[kFilter].dimensions;
  Parameters p = {.batches = data[0], .inputs = data[4], .outputs = filter[4]};
  HEARTH_ASSIGN(p.activation, parseActivation(context, kConv3dActivation));
  if (filter[3] == 0 || filter[4] == 0 || filter[3] != data[4] ||
      (context.hasInput(kBias) && context.inputs[kBias].dimensions != Dimensions{filter[4]}))
    return fail(ErrorCode::kBadData, "The filter {} and bias of {} do not fit its input {}.",
                graph::describeDimensions(filter), context.describe(),
                graph::describeDimensions(data));
  HEARTH_ASSIGN(p.extents, parseExtents(context, std::span(data).subspan<1, 3>(),
                                        std::span(filter).first<3>()));
  return p;
}

Status prepare(OperationContext& context) {
  HEARTH_ASSIGN(const Parameters p, parse(context));
  Dimensions dimensions = {context.inputs[kData].dimensions[0]};
  for (const Extent& extent : p.extents) {
    HEARTH_ASSIGN(const uint32_t size, toDimension(context, extent.output));
    dimensions.push_back(size);
  }
  dimensions.push_back(context.inputs[kFilter].dimensions[4]);
  return context.setOutputDimensions(0, std::move(dimensions));
}

// The sums of kLanes outputs at kPositions positions stay in registers.
constexpr size_t kLanes = 16;
constexpr size_t kPositions = 6;
typedef float Vector __attribute__((vector_size(kLanes * sizeof(float))));

// Weights and bias of kLanes outputs.
struct Panel {
  const float* weights = nullptr;  // for each tap and input channel
  size_t stride = 0;               // from the weights of one input channel to those of the next
  size_t outputs = 0;              // that exist
  const float* bias = nullptr;     // kLanes numbers
};

// The filter, divided into panels. A panel with fewer than kLanes outputs is a copy that is padded
// with zeros.
class Panels {
 public:
  Panels(const Parameters& p, const RealInput& filter, const std::vector<float>& bias) {
    const size_t count = (p.outputs + kLanes - 1) / kLanes;
    bias_ = bias;
    bias_.resize(count * kLanes);
    const size_t whole = p.outputs / kLanes;
    for (size_t i = 0; i < whole; ++i)
      panels_.push_back({filter.data() + i * kLanes, p.outputs, kLanes, bias_.data() + i * kLanes});
    if (whole == count) return;
    const size_t rest = p.outputs % kLanes;
    const size_t rows = filter.size() / p.outputs;
    padded_.assign(rows * kLanes, 0.0f);
    for (size_t row = 0; row < rows; ++row)
      std::copy_n(filter.data() + row * p.outputs + whole * kLanes, rest,
                  padded_.data() + row * kLanes);
    panels_.push_back({padded_.data(), kLanes, rest, bias_.data() + whole * kLanes});
  }

  const std::vector<Panel>& all() const { return panels_; }

 private:
  std::vector<float> bias_;
  std::vector<float> padded_;
  std::vector<Panel> panels_;
};

// Computes the outputs of one panel at kPositions positions. `pixels` are in the order of the taps.
HEARTH_INLINE inline void multiplyPanel(const Panel& panel, const float* const* pixels, size_t taps,
                                        size_t inputs, ActivationRange range, size_t positions,
                                        size_t outputs, float* target) {
  Vector sums[kPositions];
  for (Vector& sum : sums) std::memcpy(&sum, panel.bias, sizeof(sum));
  const float* row = panel.weights;
  for (size_t tap = 0; tap < taps; ++tap) {
    const float* const* at = pixels + tap * kPositions;
    for (size_t c = 0; c < inputs; ++c) {
      Vector weights;
      std::memcpy(&weights, row, sizeof(weights));
      row += panel.stride;
#pragma GCC unroll 6
      for (size_t i = 0; i < kPositions; ++i) sums[i] += at[i][c] * weights;
    }
  }
  for (size_t i = 0; i < positions; ++i) {
    for (size_t lane = 0; lane < panel.outputs; ++lane) {
      float value = sums[i][lane];
      value = value < range.lowest ? range.lowest : value;
      target[i * outputs + lane] = value > range.highest ? range.highest : value;
    }
  }
}

// The pixels below the taps at neighbouring positions of one output row; zeros outside the input.
class PixelTable {
 public:
  PixelTable(const Parameters& p, const float* data) : p_(p), data_(data), zeros_(p.inputs, 0.0f) {
    pixels_.resize(taps() * kPositions);
  }

  size_t taps() const {
    return static_cast<size_t>(p_.extents[0].filter * p_.extents[1].filter * p_.extents[2].filter);
  }
  const float* const* pixels() const { return pixels_.data(); }

  // For kPositions positions from `x` on, in the output row `y` of plane `z`.
  void fill(size_t batch, int64_t z, int64_t y, int64_t x) {
    const auto& [depth, height, width] = p_.extents;
    const float** target = pixels_.data();
    for (int64_t kz = 0; kz < depth.filter; ++kz)
      for (int64_t ky = 0; ky < height.filter; ++ky) {
        const int64_t iz = depth.elementBelow(z, kz);
        const int64_t iy = height.elementBelow(y, ky);
        const int64_t line =
            ((static_cast<int64_t>(batch) * depth.input + iz) * height.input + iy) * width.input;
        for (int64_t kx = 0; kx < width.filter; ++kx)
          for (size_t i = 0; i < kPositions; ++i) {
            const int64_t ix = width.elementBelow(x + static_cast<int64_t>(i), kx);
            const bool isInside = iz >= 0 && iy >= 0 && ix >= 0;
            *target++ =
                isInside ? data_ + static_cast<size_t>(line + ix) * p_.inputs : zeros_.data();
          }
      }
  }

 private:
  const Parameters& p_;
  const float* data_;
  const std::vector<float> zeros_;
  std::vector<const float*> pixels_;
};

Status execute(OperationContext& context) {
  HEARTH_ASSIGN(const Parameters p, parse(context));
  const RealInput data(context.inputs[kData]);
  const RealInput filter(context.inputs[kFilter]);
  const std::vector<float> bias = realBias(context);
  RealOutput output(context.outputs[0]);
  if (output.size() == 0) return {};
  const ActivationRange range = activationRange(p.activation);
  const Panels panels(p, filter, bias);
  const auto depth = static_cast<uint64_t>(p.extents[0].output);
  const auto height = static_cast<uint64_t>(p.extents[1].output);
  const auto width = static_cast<uint64_t>(p.extents[2].output);
  const auto computeLines = [&](uint64_t begin, uint64_t end) {
    PixelTable table(p, data.data());
    for (uint64_t line = begin; line < end; ++line) {
      for (uint64_t x = 0; x < width; x += kPositions) {
        table.fill(line / height / depth, static_cast<int64_t>(line / height % depth),
                   static_cast<int64_t>(line % height), static_cast<int64_t>(x));
        const size_t positions = std::min<uint64_t>(kPositions, width - x);
        float* target = output.data() + (line * width + x) * p.outputs;
        for (const Panel& panel : panels.all()) {
          base::onWidestVectors([panel, pixels = table.pixels(), taps = table.taps(),
                                 inputs = p.inputs, range, positions, outputs = p.outputs,
                                 target]() HEARTH_INLINE {
            multiplyPanel(panel, pixels, taps, inputs, range, positions, outputs, target);
          });
          target += kLanes;
        }
      }
    }
  };
  const uint64_t work = width * filter.size();
  threads::forRanges(context.threadPool, p.batches * depth * height, threads::grainOf(work),
                     computeLines);
  output.store();
  return {};
}

}  // namespace

const OperationDefinition kConv3dOperation = {OperationType::kConv3d, validate, prepare, execute};

}  // namespace hearth::ops
