#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares times and results of Hearth, LiteRT, OpenVINO and ONNX Runtime on this machine, in one run.

    compare.py                                   all models, 1 and 2 threads, table on stdout
    compare.py --output peers.md --json figures.json --plot peers.svg
    compare.py --quick --models 'resnet50*' --threads 1 --peers interpreter compiled
    compare.py --isa native avx_vnni avx2        as on processors without newer instructions, too
    compare.py --check-logits                    Hearth's and LiteRT's results alone

Makes a virtual environment for each peer and the generated models in the cache folder
(${XDG_CACHE_HOME:-~/.cache}/hearth) when they are missing. Shared models are read from
$HEARTH_TEST_DATA/data, or from --data. Every measurement is a fresh process; in each round the
runtimes follow one another in an order that turns from round to round. A process runs fewer than
--repeat inferences where these would take more than a second. LiteRT counts with the faster of its
interfaces.

Each runtime also computes the outputs for random inputs, and for real ones where there are some:
photographs, or stored recordings. The report says how far they are from those of LiteRT's reference
kernels, which are kept in the cache folder.

Exit code: 0 when Hearth and one interface of LiteRT ran each model, 1 when not (the report says
what failed), 2 for wrong arguments. A missed limit, a wrong result and a peer that fails are shown in
the report and do not change the exit code.
"""

import argparse
import hashlib
import json
import os
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
from peers import agreement, chart, models, report  # noqa: E402
from peers import cases as peerCases  # noqa: E402
from workloads import tflite_reader  # noqa: E402

WHEEL = comparison.PEER_WHEEL
PEER = Path(__file__).resolve().parent / "peer.py"
PROCESS_TIMEOUT_S = 300
# The masking of instructions, for --isa.
WITH_ISA = ROOT / "tests" / "isa" / "with_isa.py"
# The environments of the peers that are no part of LiteRT's wheel.
ENVIRONMENTS = {report.OPENVINO: ("openvino-venv", comparison.OPENVINO_WHEEL),
                report.OPENVINO_FLOAT32: ("openvino-venv", comparison.OPENVINO_WHEEL),
                report.ONNXRUNTIME: ("onnxruntime-venv", *comparison.ONNX_WHEELS)}
ONNX_EXPORT = Path(__file__).resolve().parent / "onnx_export.py"
# Once a side's speed is known, its process runs no more than FEWEST inferences beyond this time.
ROUND_MS, FEWEST = 1000, 5
# Lines that a runtime writes to standard error around the one that says why it failed.
LOG_LINES = ("INFO:", "WARNING:", "└")


def environmentPython(cache):
    """The interpreter of the virtual environment with LiteRT."""
    return comparison.environmentPython(cache / "litert-venv", WHEEL)


class Programs:
    """How to start each side. `python` is the interpreter with LiteRT, `others` are those of other
    peers by side."""

    def __init__(self, hearth, python, launcher=(), others=None):
        self.hearth = hearth
        self.python = python
        self.launcher = list(launcher)
        self._others = others or {}

    def bench(self, side, model, threads, repeat, seed):
        words = ["--threads", threads, "--repeat", repeat, "--random-input", seed]
        if side == report.HEARTH:
            words = [self.hearth, "bench", model, "--json", *words]
        else:
            words = [*self.peer(side, model), *words]
        sample = parseSample(self.run(words))
        key = report.missing(sample)
        if key is not None:
            raise Failure(f"the output has no number {key}")
        return sample

    def peer(self, side, model):
        """How the command line begins that runs a model by a peer."""
        if side == report.ONNXRUNTIME:
            model = self._onnx(model)
        return [self._others.get(side, self.python), PEER, model, "--api", side]

    def _onnx(self, model):
        """The ONNX form of a model, which is kept in the cache folder."""
        model = Path(model)
        facts = model.stat()
        digest = hashlib.sha256(ONNX_EXPORT.read_bytes())
        digest.update(f"{model.resolve()} {facts.st_size} {facts.st_mtime_ns}".encode())
        folder = comparison.CACHE / "onnx"
        path = folder / f"{model.stem}-{digest.hexdigest()[:12]}.onnx"
        if not path.exists():
            folder.mkdir(parents=True, exist_ok=True)
            for outdated in folder.glob(f"{model.stem}-????????????.onnx"):
                outdated.unlink()
            self.run([self._others[report.ONNXRUNTIME], ONNX_EXPORT, model, path])
        return path

    def results(self, side, model, threads, cases):
        """{case: [array for each output]} of a side."""
        with tempfile.TemporaryDirectory(prefix="hearth-peers-") as folder:
            folder = Path(folder)
            if side == report.HEARTH:
                return {case: self._hearthResults(model, threads, arrays, folder / str(number))
                        for number, (case, arrays) in enumerate(cases.inputs.items())}
            cases.save(folder / "cases.npz")
            self.run([*self.peer(side, model), "--threads", threads, "--repeat", 0,
                      "--cases", folder / "cases.npz", "--results", folder / "results.npz"])
            return peerCases.load(folder / "results.npz")

    def _hearthResults(self, model, threads, arrays, folder):
        folder.mkdir()
        files = [folder / f"input_{number}.npy" for number in range(len(arrays))]
        for file, array in zip(files, arrays):
            np.save(file, array)
        self.run([self.hearth, "run", model, "--input", *files, "--output-dir", folder,
                  "--threads", threads])
        count = len(list(folder.glob("output_*.npy")))
        return [np.load(folder / f"output_{number}.npy") for number in range(count)]

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


def measure(programs, model, threads, arguments, isa=report.NATIVE, references=None):
    """A row. `references` holds the results of the reference kernels; None: results are not compared.
    """
    sides = sidesFor(model, arguments.peers)
    samples = {side: [] for side in sides}
    shifts = [number % len(sides) for number in range(arguments.rounds)]
    name = f"{model.name}, {threads} thread(s)"

    def take(side, number):
        repeat = arguments.repeat
        if samples[side]:
            last = samples[side][-1]["inference_ms"]["p50"]
            repeat = min(repeat, max(FEWEST, int(ROUND_MS / max(last, 1e-3))))
        samples[side].append(programs.bench(side, model.path, threads, repeat,
                                            arguments.seed + number))

    failures = comparison.takeTurns([sides[shift:] + sides[:shift] for shift in shifts], take, name)
    agreements = {}
    if references is not None:
        failures |= compareResults(programs, model, threads, references,
                                   [side for side in sides if side not in failures], agreements)
    return report.Row(model, threads, samples, failures, agreements, isa)


def compareResults(programs, model, threads, references, sides, agreements):
    """Adds the sides' agreements with the reference kernels. The sides that failed, with why."""
    try:
        cases, expected = references.get(model)
    except Failure as failure:
        return {report.REFERENCE: str(failure)}

    def take(side, _):
        results = programs.results(side, model.path, threads, cases)
        own = agreements.get(report.INTERPRETER)
        if side == report.INTERPRETER:
            own = agreement.agreementOf(expected, results, [])
        agreements[side] = agreement.agreementOf(expected, results, cases.real,
                                                 own.difference if own else 0)

    return comparison.takeTurns([sides], take, f"{model.name}, results")


def sidesFor(model, peers):
    graph = tflite_reader.read(model.path)
    isFloat = graph.tensors[graph.outputs[0]].dtype == np.float32
    return [side for side in report.SIDES if side == report.HEARTH or
            (side in peers and (isFloat or side != report.OPENVINO_FLOAT32))]


class References:
    """What LiteRT's reference kernels compute, kept in the folder `cache`."""

    def __init__(self, programs, cache, data, seed):
        self._programs = programs
        self._cache = cache
        self._data = data
        self._seed = seed
        self._known = {}

    def get(self, model):
        """The cases of a model and {case: [array for each output]}."""
        if model.name not in self._known:
            cases = peerCases.casesOf(model.name, tflite_reader.read(model.path), self._data,
                                      self._seed)
            self._known[model.name] = cases, self._results(model, cases)
        return self._known[model.name]

    def _results(self, model, cases):
        digest = hashlib.sha256(WHEEL.encode())
        with open(model.path, "rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
        for name, arrays in cases.inputs.items():
            digest.update(b"".join([name.encode(), *(array.tobytes() for array in arrays)]))
        path = self._cache / f"{model.name}-{digest.hexdigest()[:12]}.npz"
        if not path.exists():
            self._cache.mkdir(parents=True, exist_ok=True)
            say(f"{model.name}: LiteRT's reference kernels")
            results = self._programs.results(report.REFERENCE, model.path, 1, cases)
            partial = self._cache / f"{os.getpid()}.partial.npz"
            peerCases.Cases(results, []).save(partial)
            for outdated in self._cache.glob(f"{model.name}-*.npz"):
                outdated.unlink()
            partial.replace(path)
        return peerCases.load(path)


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
    parser.add_argument("--peers", nargs="+", choices=report.SIDES[:-1],
                        default=[report.INTERPRETER, report.OPENVINO, report.OPENVINO_FLOAT32,
                                 report.ONNXRUNTIME],
                        help="default: all but compiled; openvino-float32 is for float32 networks "
                        "alone")
    parser.add_argument("--isa", nargs="+", default=[report.NATIVE], metavar="LEVEL",
                        help="native, or a level of tests/isa/with_isa.py; default: native")
    parser.add_argument("--times-only", action="store_true", help="results are not compared")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2], metavar="N")
    comparison.addRounds(parser, 7, 30, quickRounds=3, quickRepeat=10)
    parser.add_argument("--seed", type=int, default=1)
    models.addData(parser)
    comparison.addPrograms(parser)
    comparison.addLauncher(parser)
    comparison.addReports(parser)
    parser.add_argument("--plot", type=Path, help="SVG file for a chart")
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
        python = arguments.python or environmentPython(comparison.CACHE)
        launcher = shlex.split(arguments.launcher)
        if arguments.check_logits:
            return checkAll(Programs(arguments.hearth, python, launcher), chosen, arguments)
        rows, loads = measureAll(chosen, python, launcher, arguments)
        writeReports(rows, loads, arguments)
    except (Failure, OSError, subprocess.CalledProcessError) as error:
        say(f"compare.py: {error}")
        return 1
    return 0 if all(row.isComplete for row in rows) else 1


def measureAll(chosen, python, launcher, arguments):
    """The rows, and the load of the machine when they began and ended."""
    others = {side: comparison.environmentPython(comparison.CACHE / folder, *wheels)
              for side, (folder, *wheels) in ENVIRONMENTS.items() if side in arguments.peers}
    references = None if arguments.times_only else References(
        Programs(arguments.hearth, python), comparison.CACHE / "references", arguments.data,
        arguments.seed)
    rows, loads = [], [os.getloadavg()[0]]
    for isa in arguments.isa:
        mask = [] if isa == report.NATIVE else [sys.executable, WITH_ISA, isa]
        programs = Programs(arguments.hearth, python, [*mask, *launcher], others)
        for threads in arguments.threads:
            for model in chosen:
                say(f"{model.name}, {isa}, {threads} thread(s)")
                rows.append(measure(programs, model, threads, arguments, isa, references))
    return rows, [*loads, os.getloadavg()[0]]


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


def writeReports(rows, loads, arguments):
    wheels = dict.fromkeys([WHEEL, *(wheel for side, (_, *wheels) in ENVIRONMENTS.items()
                                     if side in arguments.peers for wheel in wheels)])
    about = comparison.facts(
        wheels, rounds=arguments.rounds, inferences_per_round=arguments.repeat,
        load_average="{:.1f} at the start, {:.1f} at the end, with these programs".format(*loads))
    comparison.writeText(arguments.output, report.markdown(rows, about))
    comparison.writeJson(arguments.json, about, rows)
    if arguments.plot is not None:
        arguments.plot.write_text(chart.plot([row.json() for row in rows]))


if __name__ == "__main__":
    sys.exit(main())
