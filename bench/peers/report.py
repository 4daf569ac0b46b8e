# SPDX-License-Identifier: Apache-2.0
"""Turns single measurements into medians, ratios and a Markdown report."""

import statistics

HEARTH, INTERPRETER, COMPILED = "hearth", "interpreter", "compiled"
SIDES = (INTERPRETER, COMPILED, HEARTH)
# Below this time, the overhead of the caller's language is no longer small.
RATIO_FROM_MS = 0.5


def toFirstResult(sample):
    """Milliseconds from opening the file; Hearth may still prepare while the inputs are created."""
    inference = sample["inference_ms"]
    return sample["start"]["prepare_ms"] + inference.get("first_result", inference["first"])


class Spread:
    """Median and range of one quantity over the rounds."""

    def __init__(self, values):
        self.median = statistics.median(values)
        self.low, self.high = min(values), max(values)

    def __str__(self):
        return f"{_digits(self.median)} ({_digits(self.low)}–{_digits(self.high)})"

    def json(self):
        return {"median": self.median, "min": self.low, "max": self.high}


class Measured:
    """What was measured at one thread count.

    `samples` maps a side to its measurements (the JSON objects of `hearth bench`), `failures` a
    side to a sentence.
    """

    def __init__(self, threads, samples, failures):
        self.threads = threads
        self.failures = failures
        self.steady = {side: Spread([sample["inference_ms"]["p50"] for sample in values])
                       for side, values in samples.items() if values}


class Row(Measured):
    """One model."""

    def __init__(self, model, threads, samples, failures):
        super().__init__(threads, samples, failures)
        self.model = model
        self.start = {side: Spread([toFirstResult(sample) for sample in values])
                      for side, values in samples.items() if values}

    def fasterPeer(self, spreads):
        peers = [spreads[side] for side in (INTERPRETER, COMPILED) if side in spreads]
        return min(peers, key=lambda spread: spread.median, default=None)

    @property
    def isComplete(self):
        """Whether Hearth and at least one interface of LiteRT always succeeded."""
        return HEARTH not in self.failures and not {INTERPRETER, COMPILED} <= set(self.failures)

    @property
    def ratio(self):
        """hearth / LiteRT of the steady medians; None if the ratio would mean nothing."""
        peer = self.fasterPeer(self.steady)
        if peer is None or HEARTH not in self.steady or peer.median < RATIO_FROM_MS:
            return None
        return self.steady[HEARTH].median / peer.median

    def json(self):
        return {"model": self.model.name, "threads": self.threads, "note": self.model.note,
                "steady_ms": {side: spread.json() for side, spread in self.steady.items()},
                "start_ms": {side: spread.json() for side, spread in self.start.items()},
                "ratio": self.ratio, "limit": self.model.limit, "failures": self.failures}


def missing(sample):
    """The first key of `hearth bench --json` that the report needs and `sample` lacks, or None."""
    for outer, inner in (("start", "prepare_ms"), ("inference_ms", "first"),
                         ("inference_ms", "p50")):
        section = sample.get(outer) if isinstance(sample, dict) else None
        value = section.get(inner) if isinstance(section, dict) else None
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return f"{outer}.{inner}"
    return None


def markdown(rows, facts):
    """`facts` are (name, value) pairs about the run."""
    lines = ["# Hearth and LiteRT", "",
             "Written by `bench/peers/compare.py`. All programs ran interleaved, each measurement "
             "in a fresh process; a cell is the median over the rounds and its range, in "
             "milliseconds. A run's own value is the median of its inferences after the first.",
             "", *(f"- {name}: {value}" for name, value in facts)]
    for threads in sorted({row.threads for row in rows}):
        chosen = [row for row in rows if row.threads == threads]
        title = f"{threads} thread" + ("s" if threads > 1 else "")
        lines += ["", f"## Steady inference, {title}", "",
                  "The ratio is hearth / the faster side of LiteRT; none is given where that one "
                  f"takes less than {RATIO_FROM_MS} ms.", "",
                  "| model | hearth | Interpreter | CompiledModel | ratio | limit |",
                  "|---|---|---|---|---|---|"]
        lines += [f"| {row.model.name} | {_cell(row, row.steady, HEARTH)} | "
                  f"{_cell(row, row.steady, INTERPRETER)} | {_cell(row, row.steady, COMPILED)} | "
                  f"{_ratio(row)} |" for row in chosen]
        lines += ["", f"## Opening the file to the first result, {title}", "",
                  "| model | hearth | Interpreter | CompiledModel |", "|---|---|---|---|"]
        lines += [f"| {row.model.name} | {_cell(row, row.start, HEARTH)} | "
                  f"{_cell(row, row.start, INTERPRETER)} | {_cell(row, row.start, COMPILED)} |"
                  for row in chosen]
    failures = {}
    for row in rows:
        for side, sentence in row.failures.items():
            failures.setdefault((side, sentence), []).append(f"{row.model.name} ({row.threads})")
    if failures:
        lines += ["", "## Failed", "", "The number of threads is in parentheses.", "",
                  *(f"- {side}: {sentence}: {', '.join(names)}"
                    for (side, sentence), names in failures.items())]
    notes = {row.model.name: row.model.note for row in rows if row.model.note}
    if notes:
        lines += ["", "## Models", "", *(f"- {name}: {note}" for name, note in notes.items())]
    return "\n".join(lines) + "\n"


def _digits(milliseconds):
    return f"{milliseconds:.3g}" if milliseconds < 100 else f"{milliseconds:.0f}"


def _cell(row, spreads, side):
    if side in spreads:
        return f"{spreads[side]}{' (some rounds failed)' if side in row.failures else ''}"
    return "failed" if side in row.failures else "–"


def _ratio(row):
    if row.ratio is None:
        return "– | –"
    limit = f"{row.model.limit:.2f}"
    return f"{row.ratio:.3f} | {limit}" if row.ratio <= row.model.limit else (
        f"**{row.ratio:.3f}** | {limit}, missed")
