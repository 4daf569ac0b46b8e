# SPDX-License-Identifier: Apache-2.0
"""The run of a program that measures generated models one after the other: its options, the samples
of a model, and the loop over the models."""

import statistics
import subprocess
import tempfile
from pathlib import Path

import comparison
from comparison import CACHE, Failure, say


class Samples:
    """One row: samples by what was measured, a string or a tuple of them. A sample has a number for
    each quantity."""

    def __init__(self, name):
        self.name = name
        self.samples = {}
        self.failures = {}

    def add(self, kind, sample):
        self.samples.setdefault(kind, []).append(sample)

    def values(self, kind, quantity):
        return [sample[quantity] for sample in self.samples.get(kind, [])]

    def median(self, kind, quantity):
        """None without samples."""
        values = self.values(kind, quantity)
        return statistics.median(values) if values else None

    def cell(self, kind, quantity):
        """The median and the range."""
        values = self.values(kind, quantity)
        if not values:
            return "failed"
        return f"{statistics.median(values):.3g} ({min(values):.3g}–{max(values):.3g})"

    def ratio(self, kind, other, quantity):
        """The ratio of two medians."""
        value, base = self.median(kind, quantity), self.median(other, quantity)
        return f"{value / base:.3f}" if base and value is not None else "–"

    def json(self):
        return {"model": self.name, "failures": self.failures,
                "samples": {kind if isinstance(kind, str) else ", ".join(kind): samples
                            for kind, samples in self.samples.items()}}


def failureLines(result, columns):
    """Lines of a table with so many columns that say which sides failed."""
    return [f"| | {side} | {sentence} |" + " |" * (columns - 3)
            for side, sentence in result.failures.items()]


def addOptions(parser, rounds, folder):
    """Adds the options of such a program; `rounds` and `folder` say what for."""
    comparison.addRows(parser)
    parser.add_argument("--rounds", type=int, default=7, help=f"{rounds} (7)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", type=Path, help=f"for {folder} (a temporary one)")
    comparison.addReports(parser)


def parse(parser, words, *names):
    """The arguments. Those with these names are at least 1, as threads and rounds are."""
    arguments = parser.parse_args(words)
    comparison.requirePositive(parser, **{name: getattr(arguments, name)
                                          for name in ("threads", "rounds", *names)})
    return arguments


def measure(arguments, rows, begin, report, about):
    """Measures the rows of these that were asked for. Returns the program's exit code.

    begin(folder) returns the function that measures one row, given the row and the path of its model.
    report(results, about) is the text to be written: into a file after each row, so that an
    interrupted run keeps what it has measured, to standard output at the end."""
    wanted, code = comparison.choose(rows, arguments.rows)
    if wanted is None:
        return code
    results = []
    try:
        with tempfile.TemporaryDirectory(prefix="hearth-bench-", dir=arguments.folder) as folder:
            measureRow = begin(Path(folder))
            for row in wanted:
                path = row.path(CACHE / "workloads", say)
                say(row.name)
                results.append(measureRow(row, path))
                if arguments.output is not None:
                    comparison.writeText(arguments.output, report(results, about))
                comparison.writeJson(arguments.json, about, results)
    except (Failure, OSError, subprocess.CalledProcessError) as error:
        say(f"compare.py: {error}")
        return 1
    if arguments.output is None:
        comparison.writeText(None, report(results, about))
    return 0 if all(not result.failures for result in results) else 1
