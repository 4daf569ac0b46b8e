#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares compilation through NNAPI, cold and from its cache, with LiteRT's loading of a model.

    compare.py                                      all rows, tables on stdout
    compare.py --rows 'mobilenet*' --rounds 3
    compare.py --output nnapi.md --json figures.json

Each measurement is a fresh process: `hearth bench --api nnapi` without anything cached and with the
files that another process left, `hearth bench` with an empty store, and LiteRT's
CompiledModel.from_file without a cache. They follow one another in an order that turns from round to round. Files, store and map are made anew in each round.

--output puts the section into the file in place of the one with the same heading; the rest of the
file stays. Models are generated and kept in the cache folder (${XDG_CACHE_HOME:-~/.cache}/hearth), as
is the virtual environment with LiteRT's wheel. Exit code: 0 when both sides ran each row, 1 when not
(the report says what failed), 2 for wrong arguments. A missed goal is shown in the report and does
not change the exit code.
"""

import argparse
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "bench" / "weight-cache")]
import comparison  # noqa: E402
from comparison import Failure, say  # noqa: E402
from peers import compare as peers  # noqa: E402
from nnapi import report  # noqa: E402
from rows import ROWS  # noqa: E402

# By name, with the signature to compile.
CHOSEN = {"mobilenet_v2_f32": "", "mobilenet_v2_i8": "", "resnet50_f32": "", "resnet50_i8": "",
          "text_encoder_f32": "", "gemma_4_layers_i8": "decode"}


@dataclass
class Model:
    name: str
    path: Path
    signature: str = ""


class Programs:
    """How to start each side; one folder holds everything that Hearth stores."""

    def __init__(self, hearth, python, threads, launcher, folder):
        self._launched = peers.Programs(hearth, python, launcher)
        self._threads = threads
        self._folder = folder

    def run(self, side, model):
        """Milliseconds by quantity. Failure if the process fails, or reports another kind of start
        than the one that is measured."""
        if side == report.PEER:
            return self._peer(model)
        return self._direct(model) if side == report.DIRECT else self._hearth(side, model)

    def _peer(self, model):
        sample = peers.parseSample(self._launched.run(
            [self._launched.python, peers.PEER, model.path, "--api", "compiled", "--only-start",
             "--threads", self._threads]))
        return {"from_file": number(sample, "start", "from_file_ms")}

    def _bench(self, model, *options):
        """The output of `hearth bench`, and its part about the start."""
        settings = {"HEARTH_STORE": self._folder / "store", "HEARTH_STORE_MODE": "read-write",
                    "XDG_STATE_HOME": self._folder / "state", "HEARTH_THREADS": self._threads}
        words = ["env", "-u", "HEARTH_TRACE", "-u", "HEARTH_LOG",
                 *(f"{name}={value}" for name, value in settings.items()),
                 self._launched.hearth, "bench", model.path, "--json", "--repeat", 0, *options]
        if model.signature:
            words += ["--signature", model.signature]
        sample = peers.parseSample(self._launched.run(words))
        start = sample.get("start") if isinstance(sample, dict) else None
        return sample, start if isinstance(start, dict) else {}

    def _direct(self, model):
        self.clear()
        sample, start = self._bench(model)
        if start.get("state") != "cold":
            raise Failure(f"the start is not cold: {start.get('state') or 'it has no state'}")
        return {"prepare": number(sample, "start", "prepare_ms")}

    def _hearth(self, side, model):
        if side == report.COLD:
            self.clear()
        (self._folder / "files").mkdir(parents=True, exist_ok=True)
        sample, start = self._bench(model, "--api", "nnapi", "--cache-dir", self._folder / "files")
        cache = start.get("cache")
        if (cache == "hit") != (side == report.CACHED):
            raise Failure(f"the cache says: {cache or 'nothing'}")
        return {"libraries": number(sample, "libraries_ms"), "finish": number(sample, "finish_ms"),
                "first": number(sample, "first_inference_ms")}

    def clear(self):
        shutil.rmtree(self._folder, ignore_errors=True)


def number(sample, *keys):
    for key in keys:
        sample = sample.get(key) if isinstance(sample, dict) else None
    if not isinstance(sample, (int, float)) or isinstance(sample, bool):
        raise Failure(f"the output has no number {'.'.join(keys)}")
    return sample


def measure(programs, model, rounds):
    row = report.Row(model.name, model.path.stat().st_size)
    # The cold start writes what the other one finds.
    orders = ((report.COLD, report.CACHED, report.DIRECT, report.PEER),
              (report.PEER, report.DIRECT, report.COLD, report.CACHED))
    row.failures = comparison.takeTurns(
        [orders[number % len(orders)] for number in range(rounds)],
        lambda side, _: row.add(side, programs.run(side, model)), model.name)
    programs.clear()
    return row


def parseArguments(words):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    comparison.addRows(parser, ", ".join(CHOSEN))
    parser.add_argument("--model", type=Path, nargs="+", help="these files in place of the rows")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", type=Path, help="for the caches (a temporary one)")
    comparison.addPrograms(parser)
    comparison.addLauncher(parser)
    comparison.addReports(parser)
    arguments = parser.parse_args(words)
    comparison.requirePositive(parser, threads=arguments.threads, rounds=arguments.rounds)
    return arguments


def collect(arguments):
    if arguments.model is not None:
        return [Model(path.stem, path) for path in arguments.model]
    return [Model(row.name, row.path(comparison.CACHE / "workloads", say), CHOSEN[row.name])
            for row in comparison.chosen(ROWS, arguments.rows) if row.name in CHOSEN]


def write(rows, arguments):
    about = comparison.facts(rounds=arguments.rounds, threads=arguments.threads)
    text = report.markdown(rows, about)
    if arguments.output is not None and arguments.output.exists():
        text = report.place(arguments.output.read_text(), text)
    comparison.writeText(arguments.output, text)
    comparison.writeJson(arguments.json, about, rows)


def main(words=None):
    arguments = parseArguments(words)
    try:
        models = collect(arguments)
        if not models:
            say(f"compare.py: no row matches {' '.join(arguments.rows)}")
            return 2
        python = arguments.python or peers.environmentPython(comparison.CACHE)
        rows = []
        with tempfile.TemporaryDirectory(prefix="hearth-bench-", dir=arguments.folder) as folder:
            programs = Programs(arguments.hearth, python, arguments.threads,
                                shlex.split(arguments.launcher), Path(folder) / "kept")
            for model in models:
                say(model.name)
                rows.append(measure(programs, model, arguments.rounds))
        write(rows, arguments)
    except (Failure, OSError, subprocess.CalledProcessError) as error:
        say(f"compare.py: {error}")
        return 1
    return 1 if any(row.failures for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
