#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the two stages of models in use: the kernels they start with, and those chosen by
measuring.

    compare.py                                  all workloads, 1 and 2 threads, table on stdout
    compare.py --rows 'mobilenet*' --threads 2 --rounds 3

For each workload a process with an empty store runs the model until its kernels are chosen. Then
fresh processes take turns: one with `--tuning off`, which stays in the first stage, and one that
finds the choice in the store and begins in the second stage. Where inferences take seconds there are
fewer of them, and fewer rounds; the table says how many, and after how many executions and seconds
the kernels were chosen. Outputs of both stages are compared: equal for quantised models, within 2e-5
of the largest value for others. Models are generated in the cache folder
(${XDG_CACHE_HOME:-~/.cache}/hearth) when they are missing.

Exit code: 0 when all ran, 1 when not, or when outputs differ, 2 for wrong arguments. A ratio above 1
is shown in the table and does not change the exit code.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "bench" / "weight-cache")]
import comparison  # noqa: E402
from comparison import Failure, say  # noqa: E402
from rows import ROWS  # noqa: E402

# The longest process is the one that chooses kernels: twenty inferences of 10 s, a first start, and
# perhaps a busy machine.
PROCESS_TIMEOUT_S = 1200
# Seconds for the runs of a process after its first, and for all rounds; and the least number of
# each.
PROCESS_S = 6
ROUNDS_S = 60
FEWEST_RUNS = 3
FEWEST_ROUNDS = 3
FLOAT_TOLERANCE = 2e-5


class Bench:
    """One model with one signature, number of threads and store."""

    def __init__(self, hearth, path, signature, threads, store):
        self.words = [str(hearth), "", str(path), "--json", "--threads", str(threads),
                      "--random-input", "1"]
        if signature:
            self.words += ["--signature", signature]
        self.environment = dict(os.environ, HEARTH_STORE=str(store))

    def call(self, command, *words):
        line = [self.words[0], command, *self.words[2:], *map(str, words)]
        done = subprocess.run(line, capture_output=True, text=True, env=self.environment,
                              timeout=PROCESS_TIMEOUT_S)
        if done.returncode != 0:
            raise Failure((done.stderr.strip().splitlines() or ["no message"])[-1])
        return json.loads(done.stdout)

    def learn(self):
        """The report of a process that has chosen the kernels, and the time that it took."""
        begin = time.monotonic()
        result = self.call("bench", "--until-tuned", "--repeat", 0)
        if result["start"]["tuning"]["state"] != "measured":
            raise Failure(f"its kernels are not chosen in {result['inference_ms']['runs']} runs")
        return result, time.monotonic() - begin

    def steady(self, word, repeat):
        result = self.call("bench", "--tuning", word, "--repeat", repeat)
        state = result["start"]["tuning"]["state"]
        if state != ("recalled" if word == "on" else "off"):
            raise Failure(f"it begins in the state {state} with tuning {word}")
        return result["inference_ms"]["p50"]

    def outputs(self, word):
        with tempfile.TemporaryDirectory() as folder:
            done = self.call("run", "--tuning", word, "--output-dir", folder)
            return [np.load(output["file"]) for output in done["outputs"]]


def largestDifference(first, second):
    """Relative to the largest value; infinite if quantised outputs differ at all."""
    worst = 0.0
    for a, b in zip(first, second, strict=True):
        if a.dtype.kind != "f":
            worst = max(worst, 0.0 if np.array_equal(a, b) else float("inf"))
            continue
        largest = float(np.max(np.abs(a), initial=0))
        difference = float(np.max(np.abs(a.astype(np.float64) - b), initial=0))
        worst = max(worst, difference / largest if largest else difference)
    return worst


@dataclass
class Measurement:
    changedSteps: int
    executions: int  # until the kernels were chosen
    learnSeconds: float
    rounds: int
    runs: int  # of a process after its first
    times: dict  # milliseconds by --tuning
    difference: float


def fitting(seconds, each, fewest, most):
    """Number of things, of `each` seconds, that fit into `seconds`."""
    return min(most, max(fewest, int(seconds / each)))


def measure(bench, rounds, repeat):
    learnt, seconds = bench.learn()
    inference = learnt["inference_ms"]["p50"] / 1e3
    repeat = fitting(PROCESS_S, inference, FEWEST_RUNS, repeat)
    rounds = fitting(ROUNDS_S, 2 * (repeat + 1) * inference, FEWEST_ROUNDS, rounds)
    times = {"off": [], "on": []}
    for number in range(rounds):
        for word in ("off", "on") if number % 2 else ("on", "off"):
            times[word].append(bench.steady(word, repeat))
    difference = largestDifference(bench.outputs("off"), bench.outputs("on"))
    tuning = learnt["start"]["tuning"]
    return Measurement(tuning["changed_steps"], tuning["executions"], seconds, rounds, repeat,
                       times, difference)


def cell(values):
    return f"{statistics.median(values):.3g} ({min(values):.3g}–{max(values):.3g})"


def signaturesOf(row):
    return ("prefill", "decode") if row.isLanguageModel else ("",)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    comparison.addRows(parser, ", ".join(row.name for row in ROWS))
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--rounds", type=int, default=5, help="the most of them")
    parser.add_argument("--repeat", type=int, default=20,
                        help="the most runs of a process after its first")
    comparison.addHearth(parser)
    arguments = parser.parse_args()
    comparison.requirePositive(parser, threads=arguments.threads, rounds=arguments.rounds,
                               repeat=arguments.repeat)
    rows = comparison.chosen(ROWS, arguments.rows)
    if not rows:
        parser.error("no workload has such a name")
    isRight = True
    for name, value in comparison.facts((), most_rounds=arguments.rounds,
                                        most_inferences_per_round=arguments.repeat):
        print(f"- {name}: {value}")
    print()
    print("| model | threads | chosen after | rounds × runs | first stage | second stage | ratio "
          "| steps changed | largest difference |\n|---|---|---|---|---|---|---|---|---|")
    for row in rows:
        path = row.path(comparison.CACHE / "workloads", say)
        for signature in signaturesOf(row):
            for threads in arguments.threads:
                name = f"{row.name} {signature}".strip()
                say(f"{name}, {threads} thread(s)")
                with tempfile.TemporaryDirectory() as store:
                    bench = Bench(arguments.hearth, path, signature, threads, store)
                    try:
                        done = measure(bench, arguments.rounds, arguments.repeat)
                    except (Failure, subprocess.TimeoutExpired) as failure:
                        isRight = False
                        print(f"| {name} | {threads} | {failure} | | | | | | |", flush=True)
                        continue
                isRight &= done.difference <= FLOAT_TOLERANCE
                off, on = done.times["off"], done.times["on"]
                ratio = statistics.median(on) / statistics.median(off)
                print(f"| {name} | {threads} | {done.executions} runs, {done.learnSeconds:.3g} s "
                      f"| {done.rounds} × {done.runs} | {cell(off)} | {cell(on)} | {ratio:.3f} "
                      f"| {done.changedSteps} | {done.difference:.1e} |", flush=True)
    return 0 if isRight else 1


if __name__ == "__main__":
    sys.exit(main())
