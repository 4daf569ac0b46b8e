# SPDX-License-Identifier: Apache-2.0
"""Turns single measurements into medians, ratios and a Markdown report."""

import statistics

from peers.agreement import ALLOWANCE, FACTOR, RELATIVE, RIGHT_SHARE, SHARE, STEPS

HEARTH, INTERPRETER, COMPILED = "hearth", "interpreter", "compiled"
# OpenVINO chooses bfloat16 for float32 networks on some processors, unless it is told not to.
OPENVINO, OPENVINO_FLOAT32, ONNXRUNTIME = "openvino", "openvino-float32", "onnxruntime"
# LiteRT's reference kernels, whose results the others are compared with. They are not measured.
REFERENCE = "reference"
SIDES = (INTERPRETER, COMPILED, OPENVINO, OPENVINO_FLOAT32, ONNXRUNTIME, HEARTH)
TITLES = {HEARTH: "Hearth", INTERPRETER: "LiteRT", COMPILED: "LiteRT, CompiledModel",
          OPENVINO: "OpenVINO", OPENVINO_FLOAT32: "OpenVINO, float32",
          ONNXRUNTIME: "ONNX Runtime", REFERENCE: "LiteRT's reference kernels"}
LITERT = (INTERPRETER, COMPILED)
# The processor as it is, without instructions hidden.
NATIVE = "native"
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
    """One model with one instruction set. `agreements` are by side; `samples` has no key for a side
    that was not asked for."""

    def __init__(self, model, threads, samples, failures, agreements=None, isa=NATIVE):
        super().__init__(threads, samples, failures)
        self.model = model
        self.isa = isa
        self.sides = [side for side in (HEARTH, *SIDES[:-1]) if side in samples]
        self.agreements = agreements or {}
        self.start = {side: Spread([toFirstResult(sample) for sample in values])
                      for side, values in samples.items() if values}
        self.processor = {side: Spread(times) for side, values in samples.items()
                          if (times := [sample["inference_ms"]["processor_p50"]
                                        for sample in values
                                        if "processor_p50" in sample["inference_ms"]])}
        self.kernels = {side: values[0]["kernels"] for side, values in samples.items()
                        if values and "kernels" in values[0]}

    def fastest(self, sides):
        """The one of these sides with the smallest steady median; None if none was measured."""
        return min((side for side in sides if side in self.steady),
                   key=lambda side: self.steady[side].median, default=None)

    @property
    def isComplete(self):
        """Whether Hearth and at least one interface of LiteRT that was asked for succeeded."""
        return HEARTH not in self.failures and any(
            side not in self.failures for side in LITERT if side in self.sides)

    def timeRatio(self, side, peer):
        """side / peer of the steady medians; None if the ratio would mean nothing."""
        if any(one not in self.steady for one in (side, peer)):
            return None
        divisor = self.steady[peer].median
        return self.steady[side].median / divisor if divisor >= RATIO_FROM_MS else None

    def processorRatio(self, side, peer):
        """The same of processor times."""
        if any(one not in self.processor for one in (side, peer)):
            return None
        divisor = self.processor[peer].median
        return self.processor[side].median / divisor if divisor >= RATIO_FROM_MS else None

    @property
    def ratio(self):
        """hearth / the faster interface of LiteRT."""
        return self.timeRatio(HEARTH, self.fastest(LITERT))

    @property
    def fastestExactPeer(self):
        """The fastest peer whose results were not found to be inexact; None if there is none."""
        return self.fastest([side for side in self.sides if side != HEARTH and
                             (side not in self.agreements or self.agreements[side].isExact)])

    def json(self):
        spreads = lambda values: {side: spread.json() for side, spread in values.items()}
        return {"model": self.model.name, "instructions": self.isa, "threads": self.threads,
                "note": self.model.note, "steady_ms": spreads(self.steady),
                "processor_ms": spreads(self.processor), "start_ms": spreads(self.start),
                "agreement": {side: found.json() for side, found in self.agreements.items()},
                "kernels": self.kernels, "ratio": self.ratio, "limit": self.model.limit,
                "fastest_exact_peer": self.fastestExactPeer,
                "ratio_to_it": self.timeRatio(HEARTH, self.fastestExactPeer),
                "processor_ratio_to_it": self.processorRatio(HEARTH, self.fastestExactPeer),
                "failures": self.failures}


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
    lines = ["# Hearth and its peers", "",
             "Written by `bench/peers/compare.py`. All programs ran in turns, each measurement in a "
             "fresh process; a cell is the median over the rounds and its range, in milliseconds. A "
             "run's own value is the median of its inferences after the first; processor time is "
             "that of all threads.",
             "", *(f"- {name}: {value}" for name, value in facts)]
    groups = list(dict.fromkeys((row.isa, row.threads) for row in rows))
    for isa, threads in groups:
        chosen = [row for row in rows if (row.isa, row.threads) == (isa, threads)]
        lines += ["", f"## {sectionTitle(isa, threads)}", "", *_summary(chosen), "", *_details(chosen),
                  "", f"### Opening the file to the first result, {sectionTitle(isa, threads)}", "",
                  *_starts(chosen)]
    failures = {}
    for row in rows:
        for side, sentence in row.failures.items():
            failures.setdefault((side, sentence), []).append(
                f"{row.model.name} ({sectionTitle(row.isa, row.threads)})")
    if failures:
        lines += ["", "## Failed", "",
                  *(f"- {TITLES[side]}: {sentence}: {', '.join(names)}"
                    for (side, sentence), names in failures.items())]
    notes = {row.model.name: row.model.note for row in rows if row.model.note}
    if notes:
        lines += ["", "## Models", "", *(f"- {name}: {note}" for name, note in notes.items())]
    return "\n".join(lines) + "\n"


def sectionTitle(isa, threads):
    """What rows of one instruction set and number of threads have in common."""
    text = f"{threads} thread" + ("s" if threads > 1 else "")
    return text if isa == NATIVE else f"{isa}, {text}"


def _summary(rows):
    """One line for each model."""
    lines = ["The time of Hearth as a part of LiteRT's (of its faster interface), which has a limit, "
             "and of that of the fastest peer with exact results. No ratio is given where the peer "
             f"takes less than {RATIO_FROM_MS} ms. Other programs change processor time less than "
             "wall time.", "",
             "| model | Hearth / LiteRT | limit | processor time | fastest exact peer | "
             "Hearth / it | processor time |",
             "|---" * 7 + "|"]
    for row in rows:
        peer = row.fastestExactPeer
        lines.append(f"| {row.model.name} | {_ratio(row)} | "
                     f"{_number(row.processorRatio(HEARTH, row.fastest(LITERT)), 1)} | "
                     f"{'–' if peer is None else TITLES[peer]} | "
                     f"{_number(row.timeRatio(HEARTH, peer), 1)} | "
                     f"{_number(row.processorRatio(HEARTH, peer), 1)} |")
    return lines


def _details(rows):
    """One line for each runtime of each model."""
    lines = ["Results are compared with those of LiteRT's reference kernels: the largest difference "
             "in quantisation steps, or as a part of the largest value where they are float32; and "
             "whether the greatest element is the same for photographs and recordings, or for a map "
             f"of classes {100 * RIGHT_SHARE:.0f} % of it. Bold differences are inexact: more than "
             f"{FACTOR} times that of LiteRT's own kernels and {ALLOWANCE[STEPS]} steps, "
             f"{ALLOWANCE[RELATIVE]:g} of the largest value or {100 * ALLOWANCE[SHARE]:g} % of a map. "
             "Near ties are those that LiteRT's own kernels may decide otherwise, too: the "
             "reference's two values are no farther apart than these are from the reference.", "",
             "| model | runtime | wall time | processor time | / Hearth | / LiteRT | "
             "largest difference | top 1 |", "|---" * 8 + "|"]
    for row in rows:
        for side in row.sides:
            agreement = row.agreements.get(side)
            lines.append(
                f"| {row.model.name if side == row.sides[0] else ''} | {TITLES[side]} | "
                f"{_cell(row, row.steady, side)} | {_cell(row, row.processor, side)} | "
                f"{_number(row.timeRatio(side, HEARTH))} | "
                f"{_number(row.timeRatio(side, row.fastest(LITERT)))} | "
                f"{'–' if agreement is None else agreement.text()} | "
                f"{'–' if agreement is None else agreement.rightText()} |")
    return lines


def _starts(rows):
    sides = [side for side in (HEARTH, *SIDES[:-1]) if any(side in row.sides for row in rows)]
    return [f"| model | {' | '.join(TITLES[side] for side in sides)} |",
            f"|---{'|---' * len(sides)}|",
            *(f"| {row.model.name} | "
              f"{' | '.join(_cell(row, row.start, side) for side in sides)} |" for row in rows)]


def _digits(milliseconds):
    return f"{milliseconds:.3g}" if milliseconds < 100 else f"{milliseconds:.0f}"


def _cell(row, spreads, side):
    if side in row.failures:
        return f"{spreads[side]} (some rounds failed)" if side in spreads else "failed"
    return str(spreads[side]) if side in spreads else "–"


def _number(ratio, limit=None):
    if ratio is None:
        return "–"
    return f"{ratio:.2f}" if limit is None or round(ratio, 2) <= limit else f"**{ratio:.2f}**"


def _ratio(row):
    if row.ratio is None:
        return "– | –"
    limit = f"{row.model.limit:.2f}"
    return f"{row.ratio:.3f} | {limit}" if row.ratio <= row.model.limit else (
        f"**{row.ratio:.3f}** | {limit}, missed")
