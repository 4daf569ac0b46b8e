#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares single operations of Hearth and of LiteRT on this machine, in one run.

    compare.py                                      all rows on one thread, table on stdout
    compare.py --rows 'GATHER*' 'PAD *' --threads 1 2
    compare.py --output operations.md --json figures.json
    compare.py --quick

Each row is a generated .tflite file of one operator; --rows list prints their names. Every
measurement is a fresh process, and the sides take turns. LiteRT is its Interpreter with the XNNPACK
delegate that it has by default: what XNNPACK does not take runs on LiteRT's built-in kernels.

The virtual environment with LiteRT's wheel is kept in the cache folder
(${XDG_CACHE_HOME:-~/.cache}/hearth). Exit code: 0 when all that was asked for was measured, where a
row that one side refuses counts as measured, 1 when nothing was, 2 for wrong arguments.
"""

import argparse
import os
import shlex
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(ROOT / "bench")]
import comparison  # noqa: E402
import report  # noqa: E402
import rows  # noqa: E402
from comparison import Failure, say  # noqa: E402
from peers import compare as peers  # noqa: E402
from workloads import tflite_writer  # noqa: E402


def measure(programs, row, path, threads, arguments):
    samples = {side: [] for side in report.SIDES}

    def take(side, number):
        try:
            samples[side].append(programs.bench(side, path, threads, arguments.repeat, 1 + number))
        except Failure as failure:
            raise Failure(str(failure).replace(str(path), path.name)) from None

    orders = [report.SIDES if number % 2 == 0 else report.SIDES[::-1]
              for number in range(arguments.rounds)]
    failures = comparison.takeTurns(orders, take, row.name)
    return report.Result(row.name, threads, samples, failures)


def parseArguments(words):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    comparison.addRows(parser)
    parser.add_argument("--threads", nargs="+", type=int, default=[1], metavar="N")
    comparison.addRounds(parser, 5, 20, quickRounds=1, quickRepeat=10)
    comparison.addPrograms(parser)
    comparison.addLauncher(parser)
    comparison.addReports(parser)
    return comparison.parse(parser, words)


def main(words=None):
    arguments = parseArguments(words)
    chosen, code = comparison.choose(rows.ROWS, arguments.rows)
    if chosen is None:
        return code
    results = []
    try:
        programs = peers.Programs(arguments.hearth,
                                  arguments.python or peers.environmentPython(comparison.CACHE),
                                  shlex.split(arguments.launcher))
        with tempfile.TemporaryDirectory(prefix="hearth-bench-") as folder:
            # The packed weights of these networks are of no use to any other process.
            os.environ["HEARTH_STORE"] = str(Path(folder) / "store")
            path = Path(folder) / "model.tflite"
            for threads in arguments.threads:
                for row in chosen:
                    tflite_writer.write(row.graph(), path)
                    say(f"{row.name}, {threads} thread(s)")
                    results.append(measure(programs, row, path, threads, arguments))
    except (Failure, OSError) as error:
        say(f"compare.py: {error}")
        return 1
    about = comparison.facts(rounds=arguments.rounds, inferences_per_round=arguments.repeat)
    comparison.writeText(arguments.output, report.markdown(results, about))
    comparison.writeJson(arguments.json, about, results)
    return 0 if any(result.steady for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
