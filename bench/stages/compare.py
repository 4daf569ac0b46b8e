#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the two stages of models in use: the kernels they start with, and those chosen by
measuring.

    compare.py                                  all workloads, 1 and 2 threads, table on stdout
    compare.py --rows 'mobilenet*' --threads 2 --rounds 3

For each workload a process with an empty store runs the model until its kernels are chosen. Then
fresh processes take turns: one with `--tuning off`, which stays in the first stage, and one that
finds the choice in the store and begins in the second stage. Outputs of both are compared: equal
for quantised models, within 2e-5 of the largest value for others. Models are generated in the cache
folder (${XDG_CACHE_HOME:-~/.cache}/hearth) when they are missing.

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
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "bench" / "weight-cache")]
import comparison  # noqa: E402
from comparison import Failure, say  # noqa: E402
from rows import ROWS  # noqa: E402

PROCESS_TIMEOUT_S = 600
# Executions until kernels are chosen are about 100 (docs/settings.md, "Two stages").
LEARNING_REPEATS = 160
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
        for _ in range(4):
            tuning = self.call("bench", "--tuning", "on", "--repeat", LEARNING_REPEATS)
            tuning = tuning["start"]["tuning"]
            if tuning["state"] in ("measured", "recalled"):
                return tuning
        raise Failure("its kernels are never chosen")

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
    """As a part of the largest value; of quantised outputs infinity when they differ."""
    worst = 0.0
    for a, b in zip(first, second, strict=True):
        if a.dtype.kind != "f":
            worst = max(worst, 0.0 if np.array_equal(a, b) else float("inf"))
            continue
        largest = float(np.max(np.abs(a), initial=0))
        difference = float(np.max(np.abs(a.astype(np.float64) - b), initial=0))
        worst = max(worst, difference / largest if largest else difference)
    return worst


def measure(bench, rounds, repeat):
    tuning = bench.learn()
    times = {"off": [], "on": []}
    for number in range(rounds):
        for word in ("off", "on") if number % 2 else ("on", "off"):
            times[word].append(bench.steady(word, repeat))
    return tuning, times, largestDifference(bench.outputs("off"), bench.outputs("on"))


def cell(values):
    return f"{statistics.median(values):.3g} ({min(values):.3g}–{max(values):.3g})"


def signaturesOf(row):
    return ("prefill", "decode") if row.isLanguageModel else ("",)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    comparison.addRows(parser, ", ".join(row.name for row in ROWS))
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repeat", type=int, default=20, help="runs of a process after its first")
    comparison.addHearth(parser)
    arguments = parser.parse_args()
    comparison.requirePositive(parser, threads=arguments.threads, rounds=arguments.rounds,
                               repeat=arguments.repeat)
    rows = comparison.chosen(ROWS, arguments.rows)
    if not rows:
        parser.error("no workload has such a name")
    isRight = True
    for name, value in comparison.facts(rounds=arguments.rounds,
                                        inferences_per_round=arguments.repeat):
        if name != "peer":
            print(f"- {name}: {value}")
    print()
    print("| model | threads | first stage | second stage | ratio | steps changed "
          "| largest difference |\n|---|---|---|---|---|---|---|")
    for row in rows:
        path = row.path(comparison.CACHE / "workloads", say)
        for signature in signaturesOf(row):
            for threads in arguments.threads:
                name = f"{row.name} {signature}".strip()
                say(f"{name}, {threads} thread(s)")
                with tempfile.TemporaryDirectory() as store:
                    bench = Bench(arguments.hearth, path, signature, threads, store)
                    try:
                        tuning, times, difference = measure(bench, arguments.rounds,
                                                            arguments.repeat)
                    except (Failure, subprocess.TimeoutExpired) as failure:
                        isRight = False
                        print(f"| {name} | {threads} | {failure} | | | | |", flush=True)
                        continue
                isRight &= difference <= FLOAT_TOLERANCE
                ratio = statistics.median(times["on"]) / statistics.median(times["off"])
                print(f"| {name} | {threads} | {cell(times['off'])} | {cell(times['on'])} "
                      f"| {ratio:.3f} | {tuning['changed_steps']} | {difference:.1e} |", flush=True)
    return 0 if isRight else 1


if __name__ == "__main__":
    sys.exit(main())
