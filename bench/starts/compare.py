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
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "bench" / "weight-cache")]
import comparison  # noqa: E402
from comparison import model_rows, say  # noqa: E402
from measurement import BUILDING, HEARTH, REUSING, Programs  # noqa: E402
from rows import ROWS  # noqa: E402

BEFORE, NOW = "before", "now"
INFERENCES = 2


def measure(programs, row, path, arguments):
    result = model_rows.Samples(row.name)
    rounds = min(arguments.rounds, row.rounds * 3)

    def take(side, number):
        program = programs[side]
        program.clear(HEARTH, row)
        for state, count in ((BUILDING, 1), (REUSING, arguments.reuses)):
            for _ in range(count):
                result.add((side, state), program.run(HEARTH, row, path, state, INFERENCES, 1))

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
            before, now = (BEFORE, state), (NOW, state)
            lines.append(f"| {name} | {title} | {result.cell(before, key)} | {result.cell(now, key)} "
                         f"| {result.ratio(now, before, key)} |")
            name = ""
        lines += model_rows.failureLines(result, 5)
    lines += ["", "; ".join(f"{name}: {value}" for name, value in about)]
    return "\n".join(lines) + "\n"


def parseArguments(words):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, required=True, help="the other build's program")
    comparison.addHearth(parser)
    model_rows.addOptions(parser, "cold starts of each build", "the stores")
    parser.add_argument("--reuses", type=int, default=3, help="warm starts after each of them (3)")
    return model_rows.parse(parser, words, "reuses")


def main(words=None):
    arguments = parseArguments(words)
    if not arguments.before.is_file():
        say(f"compare.py: {arguments.before} is no program")
        return 2
    # Each program uses the libraries of its own build.
    os.environ.pop("LD_LIBRARY_PATH", None)

    def begin(folder):
        programs = {}
        for side, hearth in ((BEFORE, arguments.before), (NOW, arguments.hearth)):
            own = folder / side
            own.mkdir()
            programs[side] = Programs(hearth.resolve(), None, arguments.threads, own)
        return lambda row, path: measure(programs, row, path, arguments)

    about = comparison.facts((), rounds=arguments.rounds, threads=arguments.threads)
    return model_rows.measure(arguments, ROWS, begin, table, about)


if __name__ == "__main__":
    sys.exit(main())
