#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the starts of Hearth with its weight store and of LiteRT with its weight cache.

    compare.py                                      all rows, tables on stdout
    compare.py --rows 'resnet50*' --rounds 3
    compare.py --output weight-cache.md --plot weight-cache.svg --json figures.json

Each row runs in three states: no cache, building one, and reusing it, with the page cache warm and
(reusing) dropped; reusing also with several processes that start at once. Language models run a
prefill of 128 tokens and then decode single ones, over one key-value cache; other models run one
inference and then more. Both sides take turns in fresh processes, with the same threads. LiteRT is
its CompiledModel, the only interface that has a weight cache.

The models are generated (8 GB in all, minutes) and kept in the cache folder
(${XDG_CACHE_HOME:-~/.cache}/hearth); the virtual environment with LiteRT's wheel as well. Exit code:
0 when both sides ran each row, 1 when not (the report says what failed), 2 for wrong arguments.
"""

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(ROOT / "bench")]
import comparison  # noqa: E402
import measurement  # noqa: E402
import report  # noqa: E402
import rows  # noqa: E402
from comparison import Failure, model_rows, say  # noqa: E402
from peers import compare as peers  # noqa: E402

DROPPED = "reusing, page cache dropped"
# The time that steady inferences of a process may take where they are slow, and the least number of
# them.
MOST_STEADY_MS = 4000
FEWEST_REPEATS = 2


def measure(programs, row, path, arguments):
    """{(side, state): [samples]}, {(side, state): sentence}"""
    samples, failures = {}, {}
    rounds = min(row.rounds, arguments.rounds)

    def repeat(side):
        """Number of inferences after the first of a process: as many as fit, by the times that are
        known so far."""
        known = [sample["decode" if row.isLanguageModel else "steady"]
                 for (one, _), some in samples.items() if one == side for sample in some]
        most = MOST_STEADY_MS / min(known) if known else 0
        return min(arguments.repeat, max(FEWEST_REPEATS, int(most)))

    def take(side, state, *words, count=None, key=None):
        key = (side, key or state)
        if key in failures:
            return
        try:
            sample = programs.run(side, row, path, state, *words, count=count)
            if state == measurement.BUILDING:
                sample["disk_bytes"] = programs.bytesOnDisk(side, row)
            samples.setdefault(key, []).append(sample)
        except (Failure, OSError, ValueError, KeyError) as failure:
            failures[key] = str(failure)
            say(f"{row.name}, {side}, {key[1]}: {failure}")

    for number in range(rounds):
        order = measurement.SIDES if number % 2 == 0 else measurement.SIDES[::-1]
        for side in order:
            take(side, measurement.NONE, repeat(side), 3)
        for side in order:
            programs.clear(side, row)
            take(side, measurement.BUILDING, repeat(side), 3)
        for side in order:
            take(side, measurement.REUSING, repeat(side), 3)
        if number < 3:
            for side in order:
                programs.dropPages(side, row, path)
                take(side, measurement.REUSING, 1, 1, key=DROPPED)
            for count in row.processes:
                for side in order:
                    take(side, measurement.REUSING, repeat(side), 3, count=count,
                         key=f"{count} processes")
    for side in measurement.SIDES:
        programs.clear(side, row)
    return samples, failures


def parseArguments(words):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    model_rows.addOptions(parser, "at most; the largest models: 3", "the caches")
    parser.add_argument("--repeat", type=int, default=16,
                        help="at most so many inferences after the first, or decoded tokens (16); "
                             "of slow models fewer, at least 2")
    comparison.addPrograms(parser)
    parser.add_argument("--plot", type=Path, help="SVG file")
    return model_rows.parse(parser, words, "repeat")


def main(words=None):
    arguments = parseArguments(words)

    def begin(folder):
        python = arguments.python or peers.environmentPython(comparison.CACHE)
        programs = measurement.Programs(arguments.hearth, python, arguments.threads, folder)
        return lambda row, path: report.Result(row.name, path.stat().st_size, row.isLanguageModel,
                                               *measure(programs, row, path, arguments))

    def text(results, about):
        if arguments.plot is not None:
            arguments.plot.write_text(report.plot(results))
        return report.markdown(results, about)

    about = comparison.facts(rounds=f"at most {arguments.rounds}",
                             inferences_per_round=f"at most {arguments.repeat}",
                             threads=arguments.threads)
    return model_rows.measure(arguments, rows.ROWS, begin, text, about)


if __name__ == "__main__":
    sys.exit(main())
