// SPDX-License-Identifier: Apache-2.0
// Functions that rise with their argument and give 8-bit numbers, as the least argument of each
// result but the lowest: exact for whatever the function is. lowering/tables.h makes them.
const uint kSteps = 255;

layout(binding = 2) readonly buffer StepBuffer { SUM steps[]; };

// How many results lie below that of the argument.
uint stepsUpTo(SUM argument) {
  uint first = 0;
  uint last = kSteps;
  while (first < last) {
    const uint middle = (first + last) / 2;
    if (steps[middle] <= argument)
      first = middle + 1;
    else
      last = middle;
  }
  return first;
}
