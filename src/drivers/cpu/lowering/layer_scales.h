// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

#include "graph/channel_scales.h"
#include "graph/model.h"

namespace hearth::cpu {

// The scales by which a layer's kernel turns the sums of an output channel into steps of the
// output: it multiplies them by input * filter / output. XNNPACK takes factors in [2^-32, 2^8) and
// only asserts it, and a failed assertion ends the process. Channels that training has switched off
// have lower ones. With these no sum of 32 bits comes to half a step, so the output is the zero
// point; 2^-32 gives the same, since half a step is rounded to even. Where a factor is raised to
// 2^-32, `input` and `output` are 1 and the others are the factors, so that kernels compute with
// exactly these.
struct LayerScales {
  float input = 0, filter = 0, output = 0;
  graph::ChannelScales channels;  // in place of `filter`; empty without scales by channel

  // Whether all factors are below 2^8. True for layers whose operands are not 8-bit. With higher
  // factors every sum but 0 would be out of range, and XNNPACK's kernels wrap around where a
  // product exceeds 32 bits.
  static bool areLow(const graph::Operand& inputOperand, const graph::Operand& filterOperand,
                     const graph::Operand& outputOperand);
  // Of a layer whose factors are low. Those of layers whose operands are not 8-bit are kept as they
  // are.
  static LayerScales of(const graph::Operand& inputOperand, const graph::Operand& filterOperand,
                        const graph::Operand& outputOperand);

  // The scales of the output channels from `first` on, which has `count` channels in all: those of
  // the filter's channels, or the one of all of them. Readable as ChannelScales::from() says.
  std::shared_ptr<const float> from(size_t first, size_t count) const;
};

}  // namespace hearth::cpu
