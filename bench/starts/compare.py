#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the starts of two builds of Hearth: what a change costs or gains, in one run.

    compare.py --before ../before/build/release/bin/hearth
    compare.py --before ... --rows 'resnet50*' --rounds 15 --output starts.md

For each model of the weight-cache benchmark both builds take turns in fresh processes, each with a
store of its own: a start with an empty store (cold), then several that find what the first one left
(warm). The table has the medians of the time until the model is ready and of the first inference
after it, and their ratios. Models are generated in the cache folder
(${XDG_CACHE_HOME:-~/.cache}/hearth) when they are missing.

Exit code: 0 when all ran, 1 when not, 2 for wrong arguments; ratios do not change it.
"""

import argparse
import os
import statistics
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "bench" / "weight-cache")]
import comparison  # noqa: E402
from comparison import Failure, say  # noqa: E402
from measurement import BUILDING, HEARTH, REUSING, Programs  # noqa: E402
from rows import ROWS  # noqa: E402

BEFORE, NOW = "before", "now"
INFERENCES = 2


class Result:
    """One row; `samples` are by (side, state)."""

    def __init__(self, name):
        self.name = name
        self.samples = {}
        self.failures = {}

    def median(self, side, state, key):
        values = [sample[key] for sample in self.samples.get((side, state), [])]
        return statistics.median(values) if values else None

    def cells(self, state, key):
        """Both medians with their ranges, and the ratio of the medians."""
        cells = []
        for side in (BEFORE, NOW):
            values = [sample[key] for sample in self.samples.get((side, state), [])]
            cells.append(f"{statistics.median(values):.3g} ({min(values):.3g}–{max(values):.3g})"
                         if values else "failed")
        before, now = (self.median(side, state, key) for side in (BEFORE, NOW))
        cells.append(f"{now / before:.3f}" if before and now is not None else "–")
        return cells

    def json(self):
        return {"model": self.name, "failures": self.failures,
                "samples": {f"{side}, {state}": samples
                            for (side, state), samples in self.samples.items()}}


def measure(programs, row, path, arguments):
    result = Result(row.name)
    rounds = min(arguments.rounds, row.rounds * 3)

    def take(side, number):
        program = programs[side]
        program.clear(HEARTH, row)
        for state, count in ((BUILDING, 1), (REUSING, arguments.reuses)):
            for _ in range(count):
                sample = program.run(HEARTH, row, path, state, INFERENCES, 1)
                result.samples.setdefault((side, state), []).append(sample)

    orders = [(BEFORE, NOW) if number % 2 == 0 else (NOW, BEFORE) for number in range(rounds)]
    result.failures = comparison.takeTurns(orders, take, row.name)
    for program in programs.values():
        program.clear(HEARTH, row)
    return result


def table(results, about):
    lines = ["| model | | before, ms | now, ms | ratio |", "|---|---|---|---|---|"]
    for result in results:
        name = result.name
        for title, state, key in (("cold, ready", BUILDING, "init"), ("warm, ready", REUSING, "init"),
                                  ("warm, first inference", REUSING, "first")):
            lines.append(f"| {name} | {title} | " + " | ".join(result.cells(state, key)) + " |")
            name = ""
        lines += [f"| | {side} | {sentence} | | |" for side, sentence in result.failures.items()]
    lines += ["", "; ".join(f"{name}: {value}" for name, value in about)]
    return "\n".join(lines) + "\n"


def parseArguments(words):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, required=True, help="the other build's program")
    comparison.addHearth(parser)
    comparison.addRows(parser)
    parser.add_argument("--rounds", type=int, default=7, help="cold starts of each build (7)")
    parser.add_argument("--reuses", type=int, default=3, help="warm starts after each of them (3)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", type=Path, help="for the stores (a temporary one)")
    comparison.addReports(parser)
    arguments = parser.parse_args(words)
    comparison.requirePositive(parser, threads=arguments.threads, rounds=arguments.rounds,
                               reuses=arguments.reuses)
    return arguments


def main(words=None):
    arguments = parseArguments(words)
    chosen, code = comparison.choose(ROWS, arguments.rows)
    if chosen is None:
        return code
    if not arguments.before.is_file():
        say(f"compare.py: {arguments.before} is no program")
        return 2
    # Each program uses the libraries of its own build.
    os.environ.pop("LD_LIBRARY_PATH", None)
    about = [fact for fact in comparison.facts(rounds=arguments.rounds, threads=arguments.threads)
             if fact[0] != "peer"]
    results = []
    try:
        with tempfile.TemporaryDirectory(prefix="hearth-bench-", dir=arguments.folder) as folder:
            programs = {}
            for side, hearth in ((BEFORE, arguments.before), (NOW, arguments.hearth)):
                own = Path(folder) / side
                own.mkdir()
                programs[side] = Programs(hearth.resolve(), None, arguments.threads, own)
            for row in chosen:
                path = row.path(comparison.CACHE / "workloads", say)
                say(row.name)
                results.append(measure(programs, row, path, arguments))
                # Written after each row, so that an interrupted run keeps what it has measured.
                if arguments.output is not None:
                    comparison.writeText(arguments.output, table(results, about))
                comparison.writeJson(arguments.json, about, results)
    except (Failure, OSError) as error:
        say(f"compare.py: {error}")
        return 1
    if arguments.output is None:
        comparison.writeText(None, table(results, about))
    return 0 if all(not result.failures for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
