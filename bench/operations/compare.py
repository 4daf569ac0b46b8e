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
import fnmatch
import json
import os
import shlex
import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(ROOT / "bench")]
import report  # noqa: E402
import rows  # noqa: E402
from litert import compare as litert  # noqa: E402
from workloads import tflite_writer  # noqa: E402


def say(text):
    print(text, file=sys.stderr, flush=True)


def measure(programs, row, path, threads, arguments):
    samples = {side: [] for side in report.SIDES}
    failures = {}
    for number in range(arguments.rounds):
        for side in report.SIDES if number % 2 == 0 else report.SIDES[::-1]:
            # A side that refuses once is not asked again: it would only cost time.
            if side in failures:
                continue
            try:
                samples[side].append(programs.bench(side, path, threads, arguments.repeat,
                                                    1 + number))
            except litert.Failure as failure:
                failures[side] = str(failure).replace(str(path), path.name)
                say(f"{row.name}, {side}: {failures[side]}")
    return report.Result(row.name, threads, samples, failures)


def parseArguments(words):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="+", metavar="PATTERN", default=["*"],
                        help="names, with * and ?; --rows list prints them")
    parser.add_argument("--threads", nargs="+", type=int, default=[1], metavar="N")
    parser.add_argument("--rounds", type=int, help="default: 5")
    parser.add_argument("--repeat", type=int, help="inferences in each round; default: 20")
    parser.add_argument("--quick", action="store_true",
                        help="makes 1 round of 10 inferences the default")
    parser.add_argument("--hearth", type=Path, help="the program; default: the one on PATH, "
                        "else that of the release build")
    parser.add_argument("--python", type=Path, help="Python with LiteRT, instead of making one")
    parser.add_argument("--launcher", default="", help="command put before both programs, "
                        "for example one that waits until the machine is idle")
    parser.add_argument("--output", type=Path, help="Markdown file; default: stdout")
    parser.add_argument("--json", type=Path, help="file for the figures")
    arguments = parser.parse_args(words)
    if arguments.rounds is None:
        arguments.rounds = 1 if arguments.quick else 5
    if arguments.repeat is None:
        arguments.repeat = 10 if arguments.quick else 20
    if min(arguments.rounds, arguments.repeat, *arguments.threads) < 1:
        parser.error("--threads, --rounds and --repeat are at least 1")
    if arguments.hearth is None:
        arguments.hearth = shutil.which("hearth") or ROOT / "build" / "release" / "bin" / "hearth"
    return arguments


def main(words=None):
    arguments = parseArguments(words)
    if arguments.rows == ["list"]:
        print("\n".join(row.name for row in rows.ROWS))
        return 0
    chosen = [row for row in rows.ROWS
              if any(fnmatch.fnmatchcase(row.name, pattern) for pattern in arguments.rows)]
    if not chosen:
        say(f"compare.py: no row matches {' '.join(arguments.rows)}")
        return 2
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hearth"
    results = []
    try:
        programs = litert.Programs(arguments.hearth,
                                   arguments.python or litert.environmentPython(cache),
                                   shlex.split(arguments.launcher))
        with tempfile.TemporaryDirectory(prefix="hearth-bench-") as folder:
            # What is packed for these networks is of no use to anybody.
            os.environ["HEARTH_STORE"] = str(Path(folder) / "store")
            path = Path(folder) / "model.tflite"
            for threads in arguments.threads:
                for row in chosen:
                    tflite_writer.write(row.graph(), path)
                    say(f"{row.name}, {threads} thread(s)")
                    results.append(measure(programs, row, path, threads, arguments))
    except (litert.Failure, OSError) as error:
        say(f"compare.py: {error}")
        return 1
    write(results, arguments)
    return 0 if any(result.steady for result in results) else 1


def write(results, arguments):
    about = litert.facts(arguments)
    text = report.markdown(results, about)
    if arguments.output is None:
        sys.stdout.write(text)
    else:
        arguments.output.write_text(text)
    if arguments.json is not None:
        content = {"about": dict(about), "rows": [result.json() for result in results]}
        arguments.json.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
