// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/lowering/convolution_input.h"

namespace hearth::cpu {

void applyPaddedView(const PlanBuilder::PaddedView& view, Convolution* convolution) {
  convolution->input = view.source;
  convolution->top += view.top;
  convolution->bottom += view.bottom;
  convolution->left += view.left;
  convolution->right += view.right;
  convolution->inputHeight -= view.top + view.bottom;
  convolution->inputWidth -= view.left + view.right;
}

std::shared_ptr<const base::Sha256Digest> convolutionPacking(PlanBuilder* builder,
                                                             const Convolution& g) {
  const uint32_t operands[] = {g.input, g.filter, g.bias, g.output};
  const uint64_t parameters[] = {g.kernelHeight,
                                 g.kernelWidth,
                                 g.strideHeight,
                                 g.strideWidth,
                                 g.top + g.bottom + g.left + g.right,
                                 g.groups,
                                 g.groupInputChannels,
                                 g.groupOutputChannels};
  return builder->packingSource(operands, parameters);
}

}  // namespace hearth::cpu
