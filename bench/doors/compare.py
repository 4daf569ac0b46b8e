#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares LiteRT with Hearth's delegate, LiteRT alone and Hearth alone on this machine, in one run.

    compare.py                                   all models, 1 thread, table on stdout
    compare.py --output docs/doors.md --json figures.json
    compare.py --quick --models 'resnet50*'

LiteRT alone is its CompiledModel with the weight cache of XNNPACK, and its Interpreter, which has
none. Each side has a cache of its own, which an unmeasured start fills: all measured starts are warm.
Every measurement is a fresh process; in each round the sides follow one another in an order that
turns from round to round. A start is the time from loading the delegate or opening the model to the
first result; `steady` is the median of the inferences after it. Memory is the sum of the
proportional set sizes of four processes that have run the model at the same time.

Virtual environment, generated models and shared models are those of bench/peers/compare.py; a language
model of Gemma's shape with 4 layers, of which the first signature runs, is that of bench/weight-cache.
The report ends with what a run of a tiny model costs in Python beside `hearth bench`.

Exit code: 0 when all ran, 1 when not (the report says what failed), 2 for wrong arguments. A missed
limit is shown in the report and does not change the exit code.
"""

import argparse
import fnmatch
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "bench" / "weight-cache")]
import comparison  # noqa: E402
from comparison import Failure, say  # noqa: E402
from peers import models  # noqa: E402
from peers.report import Spread, missing, toFirstResult  # noqa: E402
from rows import ROWS  # noqa: E402

PEER = ROOT / "bench" / "peers" / "peer.py"
PYTHON_RUN = Path(__file__).parent / "python_run.py"
DIGITS = ROOT / "models" / "digits" / "digits.tflite"
LANGUAGE_MODEL = "gemma_4_layers_i8"
DELEGATE, CACHED, INTERPRETER, HEARTH = "delegate", "compiled", "interpreter", "hearth"
SIDES = (DELEGATE, CACHED, INTERPRETER, HEARTH)
TITLES = {DELEGATE: "LiteRT with Hearth", CACHED: "CompiledModel with weight cache",
          INTERPRETER: "Interpreter", HEARTH: "hearth"}
PROCESS_TIMEOUT_S = 300
PROCESSES = 4
# Largest accepted ratios: of starts to LiteRT with its weight cache, of steady times to hearth's,
# and of memory to that of the Interpreter, which the program would use without the delegate.
START_LIMIT, STEADY_LIMIT, MEMORY_LIMIT = 0.6, 1.03, 0.6
# Microseconds by which a run from Python may be longer.
PYTHON_LIMIT = 6
PYTHON_RUNS = 5000
# Below this time, the overhead of Python is no longer small.
RATIO_FROM_MS = 0.5


class Programs:
    """How to start each side."""

    def __init__(self, arguments, python, folder):
        self._arguments = arguments
        self._python = python
        self._folder = folder

    def words(self, side, model, repeat, seed):
        """The command line, and the variables that it adds to the environment."""
        arguments = ["--threads", self._arguments.threads, "--repeat", repeat,
                     "--random-input", seed]
        store = self._folder / f"{side}-{model.name}"
        if side == HEARTH:
            return ([self._arguments.hearth, "bench", model.path, "--json", *arguments],
                    {"HEARTH_STORE": str(store)})
        more = {DELEGATE: ["--api", "interpreter", "--delegate", self._arguments.delegate,
                           "--delegate-store", store],
                CACHED: ["--api", "compiled", "--weight-cache", store],
                INTERPRETER: ["--api", "interpreter"]}[side]
        return [self._python, PEER, model.path, *more, *arguments], {}

    def start(self, side, model, repeat, seed, *more):
        words, variables = self.words(side, model, repeat, seed)
        try:
            return subprocess.Popen([*map(str, words), *more], stdin=subprocess.PIPE,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                    errors="replace", env={**os.environ, **variables})
        except OSError as error:
            raise Failure(f"{words[0]} cannot be started: {error.strerror}") from None

    def bench(self, side, model, repeat, seed):
        process = self.start(side, model, repeat, seed)
        try:
            output, errors = process.communicate(timeout=PROCESS_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise Failure(f"no result within {PROCESS_TIMEOUT_S} s") from None
        if process.returncode != 0:
            last = ([line for line in errors.splitlines() if line] or ["no message"])[-1]
            raise Failure(f"ended with {process.returncode}: {last}")
        try:
            sample = json.loads(output)
        except ValueError:
            raise Failure(f"the output is no JSON: {output[:80]!r}") from None
        key = missing(sample)
        if key is not None:
            raise Failure(f"the output has no number {key}")
        return sample

    def memory(self, side, model, seed):
        """KiB of several processes that have run the model and are still running."""
        processes = [self.start(side, model, 3, seed, "--wait") for _ in range(PROCESSES)]
        try:
            if not all(process.stdout.readline() for process in processes):
                raise Failure("a process ended before its memory was measured")
            return sum(proportionalSize(process.pid) for process in processes)
        finally:
            for process in processes:
                process.communicate()


def proportionalSize(pid):
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1])
    raise Failure(f"process {pid} has no proportional size")


class Row:
    """One model; `samples` are by side, `memory` is KiB by side."""

    def __init__(self, model, samples, memory, failures):
        self.model = model
        self.failures = failures
        self.memory = memory
        spread = lambda key: {side: Spread([key(sample) for sample in values])
                              for side, values in samples.items() if values}
        self.start = spread(toFirstResult)
        self.steady = spread(lambda sample: sample["inference_ms"]["p50"])

    @property
    def startRatio(self):
        return ratio(self.start, CACHED)

    @property
    def steadyRatio(self):
        small = HEARTH not in self.steady or self.steady[HEARTH].median < RATIO_FROM_MS
        return None if small else ratio(self.steady, HEARTH)

    @property
    def memoryRatio(self):
        known = DELEGATE in self.memory and INTERPRETER in self.memory
        return self.memory[DELEGATE] / self.memory[INTERPRETER] if known else None

    def json(self):
        spreads = lambda values: {side: spread.json() for side, spread in values.items()}
        return {"model": self.model.name, "start_ms": spreads(self.start),
                "steady_ms": spreads(self.steady), "memory_kib": self.memory,
                "start_ratio": self.startRatio, "steady_ratio": self.steadyRatio,
                "memory_ratio": self.memoryRatio, "failures": self.failures}


def ratio(spreads, peer):
    known = DELEGATE in spreads and peer in spreads
    return spreads[DELEGATE].median / spreads[peer].median if known else None


class PythonRow:
    """Milliseconds of a run of a tiny model, by how it is run."""

    TITLES = {"hearth": "hearth bench", "new": "Python", "given": "Python, with `outputs`"}

    def __init__(self, samples, failure=None):
        self.failure = failure
        self.times = {name: Spread([sample[name] for sample in samples])
                      for name in self.TITLES if samples}

    @property
    def overhead(self):
        """Microseconds of Python."""
        return {name: 1000 * (self.times[name].median - self.times["hearth"].median)
                for name in ("new", "given") if self.times}

    def json(self):
        return {"model": DIGITS.stem, "python_run_ms": {name: spread.json() for name, spread
                                                        in self.times.items()},
                "python_overhead_us": self.overhead, "failure": self.failure}


def measurePython(arguments):
    samples = []
    try:
        for _ in range(arguments.rounds):
            sample = pythonOutput([arguments.hearth, "bench", DIGITS, "--json", "--threads", 1,
                                   "--random-input", 1, "--repeat", PYTHON_RUNS], {"HEARTH_STORE_MODE": "off"})
            times = pythonOutput([sys.executable, PYTHON_RUN, DIGITS, PYTHON_RUNS],
                                 {"HEARTH_STORE_MODE": "off", "PYTHONPATH": str(arguments.package)})
            samples.append({"hearth": sample["inference_ms"]["p50"], "new": times["new"],
                            "given": times["given"]})
    except (Failure, KeyError) as failure:
        say(f"Python: {failure}")
        return PythonRow([], str(failure))
    return PythonRow(samples)


def pythonOutput(words, variables):
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, check=False,
                          timeout=PROCESS_TIMEOUT_S, env={**os.environ, **variables})
    if done.returncode != 0:
        last = ([line for line in done.stderr.splitlines() if line] or ["no message"])[-1]
        raise Failure(f"{words[0]} ended with {done.returncode}: {last}")
    try:
        return json.loads(done.stdout)
    except ValueError:
        raise Failure(f"the output is no JSON: {done.stdout[:80]!r}") from None


def measure(programs, model, arguments):
    samples = {side: [] for side in SIDES}
    shifts = [number % len(SIDES) for number in range(arguments.rounds)]
    failures = comparison.takeTurns([SIDES], lambda side, _: programs.bench(
        side, model, 1, arguments.seed), model.name)

    def take(side, number):
        if side not in failures:
            samples[side].append(programs.bench(side, model, arguments.repeat,
                                                arguments.seed + number))

    failures |= comparison.takeTurns([SIDES[shift:] + SIDES[:shift] for shift in shifts], take,
                                     model.name)
    memory = {}
    for side in (DELEGATE, CACHED, INTERPRETER):
        if side not in failures:
            totals = [programs.memory(side, model, arguments.seed) for _ in range(3)]
            memory[side] = statistics.median(totals)
    return Row(model, samples, memory, failures)


def cell(row, spreads, side):
    if side in spreads:
        return f"{spreads[side]}{' (some rounds failed)' if side in row.failures else ''}"
    return "failed" if side in row.failures else "–"


def ratioCell(value, limit):
    if value is None:
        return "–"
    return f"{value:.2f}" if value <= limit else f"**{value:.2f}**"


def table(title, about, head, rows):
    return ["", f"## {title}", "", about, "", f"| model | {' | '.join(head)} |",
            f"|---|{'---|' * len(head)}", *rows]


def markdown(rows, facts, python=None):
    titles = [TITLES[side] for side in SIDES]
    lines = ["# LiteRT with Hearth's delegate", "",
             "Written by `bench/doors/compare.py`. All programs ran interleaved, each measurement in "
             "a fresh process; a cell is the median over the rounds and its range, in milliseconds. "
             "Ratios above their limits are bold.", "",
             *(f"- {name}: {value}" for name, value in facts)]
    lines += table("Warm start to the first result", "The ratio is that of LiteRT with Hearth to the "
                   f"CompiledModel with its weight cache; its limit is {START_LIMIT}.",
                   [*titles, "ratio"],
                   [f"| {row.model.name} | "
                    f"{' | '.join(cell(row, row.start, side) for side in SIDES)} | "
                    f"{ratioCell(row.startRatio, START_LIMIT)} |" for row in rows])
    lines += table("Steady inference", "The ratio is that of LiteRT with Hearth to hearth; its limit "
                   f"is {STEADY_LIMIT}, and none is given below {RATIO_FROM_MS} ms.",
                   [*titles, "ratio"],
                   [f"| {row.model.name} | "
                    f"{' | '.join(cell(row, row.steady, side) for side in SIDES)} | "
                    f"{ratioCell(row.steadyRatio, STEADY_LIMIT)} |" for row in rows])
    sides = (DELEGATE, CACHED, INTERPRETER)
    size = lambda row, side: f"{row.memory[side] / 1024:.0f}" if side in row.memory else "failed"
    lines += table(f"Memory of {PROCESSES} processes", "MiB, the sum of their proportional sizes. The "
                   f"ratio is to the Interpreter; its limit is {MEMORY_LIMIT}.",
                   [*(TITLES[side] for side in sides), "ratio"],
                   [f"| {row.model.name} | {' | '.join(size(row, side) for side in sides)} | "
                    f"{ratioCell(row.memoryRatio, MEMORY_LIMIT)} |" for row in rows])
    if python is not None and python.times:
        micro = lambda value: f"{value:.1f}" if value <= PYTHON_LIMIT else f"**{value:.1f}**"
        lines += table("A run from Python", "Microseconds of a run of `models/digits`; the overhead's "
                       f"limit is {PYTHON_LIMIT}.", [*PythonRow.TITLES.values(), "overhead"],
                       [f"| {DIGITS.stem} | "
                        f"{' | '.join(f'{1000 * python.times[name].median:.1f}' for name in PythonRow.TITLES)}"
                        f" | {' and '.join(map(micro, python.overhead.values()))} |"])
    failed = [f"- {row.model.name}, {TITLES[side]}: {sentence}"
              for row in rows for side, sentence in row.failures.items()]
    if python is not None and python.failure:
        failed.append(f"- a run from Python: {python.failure}")
    if failed:
        lines += ["", "## Failed", "", *failed]
    return "\n".join(lines) + "\n"


def parseArguments(words):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", metavar="PATTERN", default=["*"],
                        help="names, with * and ?")
    parser.add_argument("--threads", type=int, default=1, metavar="N")
    comparison.addRounds(parser, 7, 30, quickRounds=3, quickRepeat=10)
    parser.add_argument("--seed", type=int, default=1)
    models.addData(parser)
    comparison.addPrograms(parser)
    parser.add_argument("--delegate", type=Path, help="default: that of the release build",
                        default=ROOT / "build" / "release" / "lib" / "libhearth_delegate.so")
    parser.add_argument("--package", type=Path, help="folder with the Python package; default: that of "
                        "the release build", default=ROOT / "build" / "release" / "python")
    comparison.addReports(parser)
    return comparison.parse(parser, words)


def chooseModels(arguments):
    """The models that the patterns name; says so if there are none."""
    cache = comparison.CACHE / "workloads"
    wanted = lambda name: any(fnmatch.fnmatch(name, pattern) for pattern in arguments.models)
    chosen = models.collect(arguments.data, cache, wanted, say)
    chosen += [models.Model(row.name, row.path(cache, say), "generated weights")
               for row in ROWS if row.name == LANGUAGE_MODEL and wanted(row.name)]
    if not chosen:
        say(f"compare.py: no model matches {' '.join(arguments.models)}")
    return chosen


def main(words=None):
    arguments = parseArguments(words)
    try:
        chosen = chooseModels(arguments)
        if not chosen:
            return 2
        python = arguments.python or comparison.environmentPython(comparison.CACHE / "litert-venv",
                                                                  comparison.PEER_WHEEL)
        with tempfile.TemporaryDirectory(prefix="hearth-doors-") as folder:
            programs = Programs(arguments, python, Path(folder))
            rows = []
            for model in chosen:
                say(model.name)
                rows.append(measure(programs, model, arguments))
        about = comparison.facts(threads=arguments.threads, rounds=arguments.rounds,
                                 inferences_per_round=arguments.repeat)
        fromPython = measurePython(arguments)
        comparison.writeText(arguments.output, markdown(rows, about, fromPython))
        comparison.writeJson(arguments.json, about, [*rows, fromPython])
    except (Failure, OSError, subprocess.CalledProcessError) as error:
        say(f"compare.py: {error}")
        return 1
    return 0 if not fromPython.failure and not any(row.failures for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
