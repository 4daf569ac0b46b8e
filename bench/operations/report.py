# SPDX-License-Identifier: Apache-2.0
"""Turns measurements of single operators into a Markdown section."""

from peers.report import HEARTH, INTERPRETER, Measured

SIDES = (INTERPRETER, HEARTH)
# Largest accepted ratio of the steady times.
LIMIT = 1.0
# Shorter runs measure the work around the operator rather than the operator.
RATIO_FROM_MS = 0.5


class Result(Measured):
    """One row."""

    def __init__(self, name, threads, samples, failures):
        super().__init__(threads, samples, failures)
        self.name = name

    @property
    def ratio(self):
        """hearth / LiteRT of the medians; None if the ratio would mean nothing."""
        if any(side not in self.steady for side in SIDES):
            return None
        peer = self.steady[INTERPRETER].median
        return self.steady[HEARTH].median / peer if peer >= RATIO_FROM_MS else None

    @property
    def isAbove(self):
        return self.ratio is not None and round(self.ratio, 2) > LIMIT

    @property
    def isMissed(self):
        """Whether every round of Hearth was slower than every round of LiteRT."""
        return self.isAbove and self.steady[HEARTH].low > self.steady[INTERPRETER].high

    def json(self):
        return {"row": self.name, "threads": self.threads, "ratio": self.ratio, "limit": LIMIT,
                "steady_ms": {side: spread.json() for side, spread in self.steady.items()},
                "failures": self.failures}


def markdown(results, facts):
    """`facts` are (name, value) pairs about the run."""
    lines = ["## Operations", "",
             "Written by `bench/operations/compare.py`: networks of one operator, which LiteRT's "
             "Interpreter runs with its XNNPACK delegate as it does by default. Both sides took "
             "turns, each measurement in a fresh process; a cell is the median over the rounds and "
             f"its range in milliseconds. The ratio is hearth / LiteRT, its limit {LIMIT:.1f}: it is "
             "missed where each of Hearth's rounds is above it, too; otherwise the ranges overlap. "
             f"No ratio is given where LiteRT takes less than {RATIO_FROM_MS} ms.",
             "", *(f"- {name}: {value}" for name, value in facts)]
    for threads in sorted({result.threads for result in results}):
        chosen = [result for result in results if result.threads == threads]
        ratios = [result for result in chosen if result.ratio is not None]
        above = [result for result in ratios if result.isAbove]
        missed = [result for result in ratios if result.isMissed]
        lines += ["", f"### Operations, {threads} thread" + ("s" if threads > 1 else ""), "",
                  f"{len(ratios) - len(above)} of {len(ratios)} rows are within the limit, "
                  f"{len(above) - len(missed)} overlap, {len(missed)} miss it.", "",
                  "| operation | hearth | LiteRT | ratio |", "|---|---|---|---|"]
        lines += [f"| {result.name} | {_cell(result, HEARTH)} | {_cell(result, INTERPRETER)} | "
                  f"{_ratio(result)} |" for result in chosen]
    failures = {}
    for result in results:
        for side, sentence in result.failures.items():
            names = failures.setdefault((side, sentence), [])
            if result.name not in names:
                names.append(result.name)
    if failures:
        lines += ["", "### Refused", "",
                  *(f"- {'LiteRT' if side == INTERPRETER else side}: {', '.join(names)}: {sentence}"
                    for (side, sentence), names in failures.items())]
    return "\n".join(lines) + "\n"


def _cell(result, side):
    if side in result.failures:
        return "refused"
    return str(result.steady[side]) if side in result.steady else "–"


def _ratio(result):
    if result.ratio is None:
        return "–"
    if result.isMissed:
        return f"**{result.ratio:.2f}**, missed"
    return f"{result.ratio:.2f}{', overlaps' if result.isAbove else ''}"
