#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shows what the choice of devices by measured speeds is worth: each model on each device alone, and
with no device named.

    compare.py MODEL.tflite ...                     table on stdout
    compare.py shared/data/models --drivers build/release/share/hearth/gpu-drivers --rounds 5
    compare.py MODEL.tflite --devices hearth-cpu vulkan-gpu --output partition.md --json figures.json

MODEL may be a folder. --drivers is what HEARTH_DRIVER_PATH is set to; without it installed drivers are
found. HEARTH_VULKAN_DEVICE is passed on: llvmpipe takes Mesa's implementation on the CPU for a GPU.
Each measurement is a fresh process, and the sides take turns. The speeds of devices are measured by
the first process, whose start is told apart; the weight store is a temporary one. "drivers' figures"
is what runs with HEARTH_TUNING=off, where nothing is measured.

Exit code: 0 when all ran and no choice is slower than the best device alone by more than 5 % in every
round, 1 when not, 2 for wrong arguments.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench")]
import comparison  # noqa: E402
from comparison import Failure, say  # noqa: E402

CHOSEN = "chosen"
TOLD = "drivers' figures"
# How much slower than the best device alone a choice may be.
LIMIT = 1.05
PROCESS_TIMEOUT_S = 600


class Result:
    """One model: milliseconds of an inference by side, one for each round."""

    def __init__(self, name, devices):
        self.name = name
        self.devices = devices
        self.samples = {side: [] for side in [*devices, CHOSEN, TOLD]}
        self.failures = {}
        self.choice = ""  # what was expected
        self.places = {}  # where the sides without a device ran

    def median(self, side):
        return statistics.median(self.samples[side]) if self.samples[side] else None

    @property
    def best(self):
        """The device that is the fastest alone; None if none runs the model."""
        run = [device for device in self.devices if self.samples[device]]
        return min(run, key=self.median, default=None)

    @property
    def ratio(self):
        if self.best is None or not self.samples[CHOSEN]:
            return None
        return self.median(CHOSEN) / self.median(self.best)

    @property
    def isMissed(self):
        """Whether every round is slower than the best device's slowest by more than the limit."""
        return (self.ratio is not None and self.ratio > LIMIT and
                min(self.samples[CHOSEN]) > LIMIT * max(self.samples[self.best]))

    def cell(self, side):
        samples = self.samples[side]
        if not samples:
            return "refused"
        return f"{self.median(side):.3g} ({min(samples):.3g}–{max(samples):.3g})"

    def json(self):
        return {"row": self.name, "ms": self.samples, "best": self.best, "ratio": self.ratio,
                "limit": LIMIT, "choice": self.choice, "places": self.places, "failures": self.failures}


class Bench:
    def __init__(self, hearth, drivers, folder, repeat):
        self.hearth = hearth
        self.repeat = repeat
        self.environment = dict(os.environ, HEARTH_STORE=str(Path(folder) / "store"))
        if drivers is not None:
            self.environment["HEARTH_DRIVER_PATH"] = str(drivers)

    def command(self, *words, **environment):
        try:
            run = subprocess.run([self.hearth, *map(str, words)], capture_output=True, text=True,
                                 check=False, timeout=PROCESS_TIMEOUT_S,
                                 env={**self.environment, **environment})
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Failure(str(error)) from None
        if run.returncode != 0:
            raise Failure((run.stderr.strip().splitlines() or ["It fails."])[-1])
        return json.loads(run.stdout)

    def devices(self):
        """Names and speeds."""
        return {device["name"]: device["speed"] for device in self.command("devices", "--json")["devices"]}

    def run(self, path, side):
        words = ["bench", path, "--json", "--random-input", 1, "--repeat", self.repeat]
        if side == TOLD:
            return self.command(*words, HEARTH_TUNING="off")
        return self.command(*words, *([] if side == CHOSEN else ["--device", side]))


def models(paths):
    for path in paths:
        if path.is_dir():
            yield from sorted(path.glob("*.tflite"))
        else:
            yield path


def measure(bench, path, devices, rounds):
    result = Result(path.stem, devices)

    def take(side, number):
        report = bench.run(path, side)
        result.samples[side].append(report["inference_ms"]["p50"])
        if side in (CHOSEN, TOLD):
            result.places[side] = report["device"]
        if side == CHOSEN:
            result.choice = report["start"]["device_choice"]

    sides = list(result.samples)
    orders = [sides if number % 2 == 0 else sides[::-1] for number in range(rounds)]
    result.failures = comparison.takeTurns(orders, take, result.name)
    return result


def markdown(results, devices, speeds, first, facts):
    lines = ["## Choice of devices", "",
             "Written by `bench/partition/compare.py`. A cell is the median over the rounds of the median of an "
             "inference in milliseconds, with its range. The ratio is that of the chosen devices to the best device "
             f"alone; its limit is {LIMIT}.", "",
             *(f"- {name}: {value}" for name, value in facts),
             f"- the first start without a device, which measured the speeds: {first:.0f} ms", "",
             "| model | " + " | ".join(devices) + f" | {CHOSEN} | on | ratio | {TOLD} | on |",
             "|---" * (len(devices) + 6) + "|"]
    for result in results:
        ratio = "–" if result.ratio is None else f"{result.ratio:.2f}"
        lines.append(f"| {result.name} | " + " | ".join(result.cell(device) for device in devices) +
                     f" | {result.cell(CHOSEN)} | {result.places.get(CHOSEN, '–')} | {ratio} | "
                     f"{result.cell(TOLD)} | {result.places.get(TOLD, '–')} |")
    lines += ["", "What was expected:", "",
              *(f"- {result.name}: {result.choice or 'nothing; the figures of the drivers decided'}"
                for result in results), "", "Measured speeds:", "",
              *(f"- {name}: {json.dumps(speed)}" for name, speed in speeds.items() if speed)]
    failures = [f"- {result.name}, {side}: {sentence}" for result in results
                for side, sentence in result.failures.items()]
    if failures:
        lines += ["", "Refused:", "", *failures]
    return "\n".join(lines) + "\n"


def parseArguments(words):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path, metavar="MODEL")
    parser.add_argument("--drivers", type=Path, help="folder of manifests")
    parser.add_argument("--devices", nargs="+", help="default: all but nnapi-reference")
    parser.add_argument("--rounds", type=int, default=5, help="default: 5")
    parser.add_argument("--repeat", type=int, default=20, help="inferences in each round; default: 20")
    comparison.addHearth(parser)
    comparison.addReports(parser)
    arguments = parser.parse_args(words)
    comparison.requirePositive(parser, rounds=arguments.rounds, repeat=arguments.repeat)
    return arguments


def main(words=None):
    arguments = parseArguments(words)
    try:
        with tempfile.TemporaryDirectory(prefix="hearth-bench-") as folder:
            bench = Bench(arguments.hearth, arguments.drivers, folder, arguments.repeat)
            devices = arguments.devices or [name for name in bench.devices() if name != "nnapi-reference"]
            paths = list(models(arguments.models))
            if not paths:
                raise Failure("There are no models.")
            first = bench.run(paths[0], CHOSEN)["start"]["prepare_ms"]
            results = []
            for path in paths:
                say(path.name)
                results.append(measure(bench, path, devices, arguments.rounds))
            speeds = bench.devices()
    except Failure as failure:
        say(f"compare.py: {failure}")
        return 1
    facts = comparison.facts((), rounds=arguments.rounds, repeat=arguments.repeat)
    comparison.writeText(arguments.output, markdown(results, devices, speeds, first, facts))
    comparison.writeJson(arguments.json, facts, results)
    return 1 if any(result.isMissed or result.ratio is None for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
