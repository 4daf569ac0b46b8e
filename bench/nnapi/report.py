# SPDX-License-Identifier: Apache-2.0
"""Tables, figures against the goals, and the section's place in a document."""

import statistics
from dataclasses import dataclass, field

COLD, CACHED, DIRECT, PEER = "cold", "from cache", "hearth.h", "litert"
SIDES = (COLD, CACHED, DIRECT, PEER)
LARGE = 100_000_000  # size of a model file, in bytes, from which on the goal is a ratio
SPEED_UP = 20
SMALL_MS = 1.0
OVERHEAD = 1.2  # of a cold finish to the same start through hearth.h
HEADING = "## Compilation through NNAPI"


def digits(value):
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def cell(values):
    if not values:
        return "failed"
    return f"{digits(statistics.median(values))} ({digits(min(values))}–{digits(max(values))})"


@dataclass
class Row:
    """One model: `times` maps (side, quantity) to milliseconds of the rounds, `failures` maps a
    side to a sentence."""

    name: str
    modelBytes: int
    times: dict = field(default_factory=dict)
    failures: dict = field(default_factory=dict)

    def add(self, side, quantities):
        for quantity, value in quantities.items():
            self.times.setdefault((side, quantity), []).append(value)

    def cell(self, side, quantity):
        return cell(self.times.get((side, quantity)))

    def median(self, side, quantity):
        values = self.times.get((side, quantity))
        return statistics.median(values) if values else None

    @property
    def isLarge(self):
        return self.modelBytes >= LARGE

    @property
    def speedUp(self):
        """LiteRT's time / the time from the cache; None if one of them is missing."""
        ours, theirs = self.median(CACHED, "finish"), self.median(PEER, "from_file")
        return theirs / ours if ours and theirs else None

    @property
    def overhead(self):
        """A cold finish / the same start through hearth.h; None if one of them is missing."""
        ours, direct = self.median(COLD, "finish"), self.median(DIRECT, "prepare")
        return ours / direct if ours and direct else None

    def againstDirect(self):
        """The measured ratio and the goal, as the table shows them."""
        wanted = f"≤ {OVERHEAD:g} x hearth.h"
        if self.overhead is None:
            return "–", wanted
        measured = f"{self.overhead:.2f} x"
        return (f"**{measured}**", f"{wanted}, missed") if self.overhead > OVERHEAD \
            else (measured, wanted)

    @property
    def isMissed(self):
        """Whether the goal of a start from the cache is missed; None if that is unknown."""
        if self.isLarge:
            return None if self.speedUp is None else self.speedUp < SPEED_UP
        ours = self.median(CACHED, "finish")
        return None if ours is None else ours > SMALL_MS

    def against(self):
        """The measured time or ratio and the goal, as the table shows them."""
        if self.isLarge:
            measured = None if self.speedUp is None else f"{digits(self.speedUp)} x"
            wanted = f"≥ {SPEED_UP} x faster than LiteRT"
        else:
            value = self.median(CACHED, "finish")
            measured = None if value is None else f"{digits(value)} ms"
            wanted = f"≤ {SMALL_MS:g} ms"
        if measured is None:
            return "–", wanted
        return (f"**{measured}**", f"{wanted}, missed") if self.isMissed else (measured, wanted)

    def json(self):
        return {"model": self.name, "model_bytes": self.modelBytes,
                "times_ms": {f"{side}, {quantity}": values
                             for (side, quantity), values in self.times.items()},
                "speed_up": self.speedUp, "overhead": self.overhead, "missed": self.isMissed, "failures": self.failures}


def markdown(rows, facts):
    lines = [HEADING, "",
             "Written by `bench/nnapi/compare.py`: milliseconds that "
             "`ANeuralNetworksCompilation_finish` takes without anything cached and with the files "
             "of an earlier process; the cold start of the same model through `hearth.h`, loading "
             "included; and LiteRT's `CompiledModel.from_file` without its cache. All take turns, each in a fresh process with the page cache warm; a cell is the median "
             "over the rounds and its range. XNNPACK's initialisation is in a compilation of one "
             "addition before, whose time is a column of its own; LiteRT's is part of its figure.", "",
             *(f"- {name}: {value}" for name, value in facts), "",
             "| model | MB | XNNPACK's start | finish, cold | hearth.h, cold | finish, from cache "
             "| LiteRT, from_file | LiteRT / from cache |", "|---" * 8 + "|"]
    for row in rows:
        speedUp = "–" if row.speedUp is None else digits(row.speedUp)
        lines.append(f"| {row.name} | {row.modelBytes / 1e6:.0f} "
                     f"| {row.cell(CACHED, 'libraries')} | {row.cell(COLD, 'finish')} "
                     f"| {row.cell(DIRECT, 'prepare')} "
                     f"| {row.cell(CACHED, 'finish')} | {row.cell(PEER, 'from_file')} "
                     f"| {speedUp} |")
    lines += ["", "The first inference afterwards, which waits for kernels that are still being built:",
              "", "| model | cold | from cache |", "|---|---|---|"]
    lines += [f"| {row.name} | {row.cell(COLD, 'first')} | {row.cell(CACHED, 'first')} |"
              for row in rows]
    lines += ["", "| model | from cache | goal | cold | goal |", "|---|---|---|---|---|"]
    for row in rows:
        lines.append(f"| {row.name} | {' | '.join(row.against() + row.againstDirect())} |")
    failures = [f"- {row.name}, {side}: {sentence}" for row in rows
                for side, sentence in row.failures.items()]
    if failures:
        lines += ["", "Failed:", "", *failures]
    return "\n".join(lines) + "\n"


def place(document, section):
    """The document with the section in place of the one with the same heading, or at the end. Text
    that people wrote below a line `### ` in it is kept."""
    lines = document.splitlines(keepends=True)
    try:
        begin = lines.index(HEADING + "\n")
    except ValueError:
        return document.rstrip("\n") + "\n\n" + section if document.strip() else section
    end = next((i for i in range(begin + 1, len(lines))
                if lines[i].startswith(("## ", "### "))), len(lines))
    rest = lines[end:]
    return "".join(lines[:begin]) + section + ("\n" if rest else "") + "".join(rest)
