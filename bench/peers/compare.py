#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares `hearth bench` with LiteRT on this machine, in one run.

    compare.py                                   all models, 1 and 2 threads, table on stdout
    compare.py --output docs/benchmarks.md --json figures.json
    compare.py --quick --models 'resnet50*' --threads 1
    compare.py --check-logits                    compares results instead of times

Makes a virtual environment with LiteRT's wheel and the generated models in the cache folder
(${XDG_CACHE_HOME:-~/.cache}/hearth) when they are missing. Shared models are read from
$HEARTH_TEST_DATA/data, or from --data. Every measurement is a fresh process; in each round the
two interfaces of LiteRT and Hearth follow one another in an order that turns from round to round.
LiteRT counts with the faster of its two interfaces.

Exit code: 0 when Hearth and one interface of LiteRT ran each model, 1 when not (the report says
what failed), 2 for wrong arguments. A missed limit is shown in the report and does not change the
exit code.
"""

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import comparison  # noqa: E402
from comparison import Failure, say  # noqa: E402
from peers import models, report  # noqa: E402
from workloads import tflite_reader  # noqa: E402

WHEEL = comparison.PEER_WHEEL
PEER = Path(__file__).resolve().parent / "peer.py"
PROCESS_TIMEOUT_S = 300
# Lines that LiteRT writes to standard error around the one that says why it failed.
LOG_LINES = ("INFO:", "WARNING:", "└")


def environmentPython(cache):
    """The interpreter of the virtual environment with LiteRT."""
    return comparison.environmentPython(cache / "litert-venv", WHEEL)


class Programs:
    """How to start each side."""

    def __init__(self, hearth, python, launcher=()):
        self.hearth = hearth
        self.python = python
        self.launcher = list(launcher)

    def bench(self, side, model, threads, repeat, seed):
        words = ["--threads", threads, "--repeat", repeat, "--random-input", seed]
        if side == report.HEARTH:
            words = [self.hearth, "bench", model, "--json", *words]
        else:
            words = [self.python, PEER, model, "--api", side, *words]
        sample = parseSample(self.run(words))
        key = report.missing(sample)
        if key is not None:
            raise Failure(f"the output has no number {key}")
        return sample

    def run(self, words):
        """Standard output of a process; Failure if the process fails."""
        words = [*self.launcher, *map(str, words)]
        try:
            done = subprocess.run(words, capture_output=True, text=True, errors="replace",
                                  timeout=PROCESS_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise Failure(f"no result within {PROCESS_TIMEOUT_S} s") from None
        except OSError as error:
            raise Failure(f"{words[0]} cannot be started: {error.strerror}") from None
        if done.returncode != 0:
            lines = [line for line in done.stderr.strip().splitlines()
                     if not line.startswith(LOG_LINES)]
            last = (lines or ["no message"])[-1]
            how = (f"ended with exit code {done.returncode}" if done.returncode > 0
                   else f"was ended by signal {-done.returncode}")
            raise Failure(f"{how}: {last}")
        return done.stdout


def parseSample(text):
    """The JSON object of a `hearth bench` or peer process."""
    try:
        return json.loads(text)
    except ValueError:
        raise Failure(f"the output is no JSON: {text[:80]!r}") from None


def measure(programs, model, threads, arguments):
    samples = {side: [] for side in report.SIDES}
    shifts = [number % len(report.SIDES) for number in range(arguments.rounds)]

    def take(side, number):
        samples[side].append(programs.bench(side, model.path, threads, arguments.repeat,
                                            arguments.seed + number))

    failures = comparison.takeTurns(
        [report.SIDES[shift:] + report.SIDES[:shift] for shift in shifts], take,
        f"{model.name}, {threads} thread(s)")
    return report.Row(model, threads, samples, failures)


def checkLogits(programs, model, threads, seed):
    """The differences between the first outputs for the same input: a sentence for each peer
    side."""
    graph = tflite_reader.read(model.path)
    [source], target = graph.inputs, graph.tensors[graph.outputs[0]]
    generator = np.random.default_rng(seed)
    tensor = graph.tensors[source]
    value = generator.uniform(-1, 1, tensor.shape).astype(np.float32)
    if tensor.quantization is not None:
        value = tensor.quantization.quantize(value, tensor.dtype)
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        np.save(folder / "input.npy", value)
        programs.run([programs.hearth, "run", model.path, "--input", folder / "input.npy",
                      "--output-dir", folder, "--threads", threads])
        ours = np.load(folder / "output_0.npy").astype(np.float64)
        sentences = []
        for side in (report.INTERPRETER, report.COMPILED):
            programs.run([programs.python, PEER, model.path, "--api", side, "--repeat", 0,
                          "--threads", threads, "--input", folder / "input.npy",
                          "--output", folder / "theirs.npy"])
            theirs = np.load(folder / "theirs.npy").astype(np.float64)
            if ours.shape != theirs.shape:
                raise Failure(f"hearth's output has the shape {ours.shape}, "
                              f"LiteRT's {theirs.shape}")
            difference = np.abs(ours - theirs)
            if target.quantization is not None:
                sentences.append(f"{side}: largest difference {difference.max():.0f} "
                                 f"quantisation steps, {np.count_nonzero(difference)} of "
                                 f"{difference.size} logits differ")
            else:
                relative = difference.max() / np.abs(theirs).max()
                sentences.append(f"{side}: largest difference {relative:.2e} of the largest logit")
    return sentences


def parseArguments(words):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", metavar="PATTERN",
                        help="names, with * and ?; default: all, with --check-logits resnet50_i8")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2], metavar="N")
    comparison.addRounds(parser, 7, 30, quickRounds=3, quickRepeat=10)
    parser.add_argument("--seed", type=int, default=1)
    models.addData(parser)
    comparison.addPrograms(parser)
    comparison.addLauncher(parser)
    comparison.addReports(parser)
    parser.add_argument("--check-logits", action="store_true",
                        help="compare the results of both programs for one random input")
    arguments = parser.parse_args(words)
    comparison.setRounds(parser, arguments)
    if arguments.models is None:
        arguments.models = ["resnet50_i8"] if arguments.check_logits else ["*"]
    return arguments


def main(words=None):
    arguments = parseArguments(words)
    try:
        chosen = models.choose(arguments, comparison.CACHE / "workloads", say)
        if not chosen:
            return 2
        programs = Programs(arguments.hearth, arguments.python or environmentPython(comparison.CACHE),
                            shlex.split(arguments.launcher))
        if arguments.check_logits:
            return checkAll(programs, chosen, arguments)
        rows = []
        for threads in arguments.threads:
            for model in chosen:
                say(f"{model.name}, {threads} thread(s)")
                rows.append(measure(programs, model, threads, arguments))
        writeReports(rows, arguments)
    except (Failure, OSError, subprocess.CalledProcessError) as error:
        say(f"compare.py: {error}")
        return 1
    return 0 if all(row.isComplete for row in rows) else 1


def checkAll(programs, chosen, arguments):
    failed = False
    for model in chosen:
        for threads in arguments.threads:
            try:
                for line in checkLogits(programs, model, threads, arguments.seed):
                    print(f"{model.name}, {threads} thread(s), {line}")
            except Failure as failure:
                failed = True
                print(f"{model.name}, {threads} thread(s): {failure}")
    return 1 if failed else 0


def writeReports(rows, arguments):
    about = comparison.facts(rounds=arguments.rounds, inferences_per_round=arguments.repeat)
    comparison.writeText(arguments.output, report.markdown(rows, about))
    comparison.writeJson(arguments.json, about, rows)


if __name__ == "__main__":
    sys.exit(main())
