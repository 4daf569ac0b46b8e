// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/model_division.h"

#include <algorithm>

namespace hearth::cpu {

ModelDivision divideModel(const graph::Subgraph& main, std::span<const uint32_t> open) {
  ModelDivision division;
  std::vector<bool> isBehindCut(main.operands.size());
  for (uint32_t o = 0; o < main.operations.size(); ++o) {
    const graph::Operation& operation = main.operations[o];
    const bool isRest =
        std::ranges::any_of(operation.inputs, [&](uint32_t input) { return isBehindCut[input]; });
    const bool isCut = !isRest && std::ranges::binary_search(open, o);
    (isRest ? division.rest : isCut ? division.cut : division.front).push_back(o);
    for (const uint32_t output : operation.outputs) isBehindCut[output] = isRest || isCut;
  }
  return division;
}

std::vector<uint32_t> numbersOf(std::span<const uint32_t> operations,
                                std::span<const uint32_t> numbers) {
  std::vector<uint32_t> made;
  for (const uint32_t operation : operations) made.push_back(numbers[operation]);
  return made;
}

}  // namespace hearth::cpu
