# SPDX-License-Identifier: Apache-2.0
"""How near a runtime's results are to those of LiteRT's reference kernels."""

from dataclasses import dataclass

import numpy as np

from comparison import Failure

STEPS, RELATIVE, SHARE = "steps", "of the largest value", "of the elements"
# A map of classes is right where this part of it is the reference's.
RIGHT_SHARE = 0.99
# Results are exact that are no farther from the reference than this many times LiteRT's own kernels
# are, and then this distance more: steps, or parts.
FACTOR, ALLOWANCE = 1.5, {STEPS: 1.5, RELATIVE: 1e-4, SHARE: 0.002}


@dataclass
class Agreement:
    """The largest difference in all outputs of all cases, or for a map of classes in those of the
    real ones, since random numbers show nothing. On `right` of the `real` ones the first
    output has the reference's greatest element; on `wrong` it has another one, and not because
    both are nearly equal. `own` is the difference of LiteRT's own kernels."""
    unit: str
    difference: float
    right: int
    real: int
    wrong: int
    own: float = 0.0

    @property
    def isWrong(self):
        return self.wrong > 0

    @property
    def isExact(self):
        return (not self.isWrong and
                self.difference <= FACTOR * self.own + ALLOWANCE[self.unit])

    def text(self):
        """The difference as a cell of a table."""
        if self.unit == STEPS:
            text = f"{self.difference:.0f} step{'s' * (self.difference != 1)}"
        elif self.unit == SHARE:
            text = f"{100 * self.difference:.2g} % of the elements"
        else:
            text = f"{self.difference:.1e}"
        return text if self.isExact else f"**{text}**"

    def rightText(self):
        """On how many real inputs the runtime is right, as a cell of a table."""
        if not self.real:
            return "–"
        text = f"{self.right} of {self.real}"
        if self.isWrong:
            return f"**wrong, {text}**"
        return text if self.right == self.real else f"{text}, near tie"

    def json(self):
        return {"unit": self.unit, "difference": self.difference, "right": self.right,
                "wrong": self.wrong, "real_inputs": self.real, "exact": self.isExact}


def agreementOf(reference, results, real, own=0.0):
    """`reference` and `results` are {case: [array for each output]}; `real` names the cases that
    are no random numbers. `own` is the difference of LiteRT's own kernels; two elements of the
    reference that are no farther from one another are nearly equal. Failure if the outputs have
    other shapes or are missing."""
    unit = unitOf(next(iter(reference.values()))[0])
    largest = 0.0
    isOnlyReal = unit == SHARE and bool(real)
    for case, expected in reference.items():
        found = results.get(case, [])
        if [array.shape for array in found] != [array.shape for array in expected]:
            raise Failure(f"the outputs have the shapes {[array.shape for array in found]}, "
                          f"LiteRT's {[array.shape for array in expected]}")
        if isOnlyReal and case not in real:
            continue
        for actual, wanted in zip(found, expected):
            largest = max(largest, differenceOf(actual, wanted, unit))
    judged = [case for case in real if isRanking(reference[case][0])]
    gaps = [gapOf(results[case][0], reference[case][0]) for case in judged]
    return Agreement(unit, largest, right=gaps.count(0), real=len(judged),
                     wrong=sum(gap > own for gap in gaps), own=own)


def unitOf(array):
    if array.dtype.kind == "f":
        return RELATIVE
    return STEPS if array.dtype in (np.int8, np.uint8, np.int16) else SHARE


def differenceOf(actual, wanted, unit):
    if unit == SHARE:
        return float(np.mean(actual != wanted))
    difference = np.abs(actual.astype(np.float64) - wanted.astype(np.float64)).max(initial=0)
    if unit == RELATIVE:
        difference /= np.abs(wanted).max(initial=0) or 1
    return float(difference) if np.isfinite(difference) else float("inf")


def isRanking(array):
    """Whether the array has one score for each class, or the class of each pixel."""
    return array.size > 1 and (unitOf(array) == SHARE or array.ndim <= 2)


def gapOf(actual, wanted):
    """How far the reference's element is below its greatest one where the result's greatest element
    is, in the unit of the difference; infinite for a map with too many other classes."""
    if unitOf(wanted) == SHARE:
        return 0.0 if np.mean(actual == wanted) >= RIGHT_SHARE else float("inf")
    gap = float(wanted.max()) - float(wanted.flat[int(np.argmax(actual))])
    return gap / float(np.abs(wanted).max() or 1) if unitOf(wanted) == RELATIVE else gap
