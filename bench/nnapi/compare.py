#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares compilation through NNAPI, cold and from its cache, with LiteRT's loading of a model.

    compare.py                                      all rows, tables on stdout
    compare.py --rows 'mobilenet*' --rounds 3
    compare.py --output docs/benchmarks.md --json figures.json

Each measurement is a fresh process: `hearth bench --api nnapi` without anything cached and with the
files that another process left, and LiteRT's CompiledModel.from_file without a cache. They follow one
another in an order that turns from round to round. Files, store and map are made anew in each round.

--output puts the section into the file in place of the one with the same heading; the rest of the
file stays. Models are generated and kept in the cache folder (${XDG_CACHE_HOME:-~/.cache}/hearth), as
is the virtual environment with LiteRT's wheel. Exit code: 0 when both sides ran each row, 1 when not
(the report says what failed), 2 for wrong arguments. A missed goal is shown in the report and does
not change the exit code.
"""

import argparse
import fnmatch
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "bench" / "weight-cache")]
from litert import compare as litert  # noqa: E402
from nnapi import report  # noqa: E402
from rows import ROWS  # noqa: E402

# By name, with the signature that is compiled.
CHOSEN = {"mobilenet_v2_f32": "", "mobilenet_v2_i8": "", "resnet50_f32": "", "resnet50_i8": "",
          "text_encoder_f32": "", "gemma_4_layers_i8": "decode"}


def say(text):
    print(text, file=sys.stderr, flush=True)


@dataclass
class Model:
    name: str
    path: Path
    signature: str = ""


class Programs:
    """How each side is started; one folder holds all that Hearth keeps."""

    def __init__(self, hearth, python, threads, launcher, folder):
        self._launched = litert.Programs(hearth, python, launcher)
        self._threads = threads
        self._folder = folder

    def run(self, side, model):
        """Milliseconds by quantity. Failure when the process fails, or tells of another start than
        the one that is measured."""
        return self._peer(model) if side == report.PEER else self._hearth(side, model)

    def _peer(self, model):
        sample = litert.parseSample(self._launched.run(
            [self._launched.python, litert.PEER, model.path, "--api", "compiled", "--only-start",
             "--threads", self._threads]))
        return {"from_file": number(sample, "start", "from_file_ms")}

    def _hearth(self, side, model):
        if side == report.COLD:
            self.clear()
        (self._folder / "files").mkdir(parents=True, exist_ok=True)
        settings = {"HEARTH_STORE": self._folder / "store", "HEARTH_STORE_MODE": "read-write",
                    "XDG_STATE_HOME": self._folder / "state", "HEARTH_THREADS": self._threads}
        words = ["env", "-u", "HEARTH_TRACE", "-u", "HEARTH_LOG",
                 *(f"{name}={value}" for name, value in settings.items()),
                 self._launched.hearth, "bench", "--api", "nnapi", model.path, "--json",
                 "--repeat", 0, "--cache-dir", self._folder / "files"]
        if model.signature:
            words += ["--signature", model.signature]
        sample = litert.parseSample(self._launched.run(words))
        start = sample.get("start") if isinstance(sample, dict) else None
        cache = start.get("cache") if isinstance(start, dict) else None
        if (cache == "hit") != (side == report.CACHED):
            raise litert.Failure(f"the cache says: {cache or 'nothing'}")
        return {"libraries": number(sample, "libraries_ms"), "finish": number(sample, "finish_ms"),
                "first": number(sample, "first_inference_ms")}

    def clear(self):
        shutil.rmtree(self._folder, ignore_errors=True)


def number(sample, *keys):
    for key in keys:
        sample = sample.get(key) if isinstance(sample, dict) else None
    if not isinstance(sample, (int, float)) or isinstance(sample, bool):
        raise litert.Failure(f"the output has no number {'.'.join(keys)}")
    return sample


def measure(programs, model, rounds):
    row = report.Row(model.name, model.path.stat().st_size)
    # The cold start leaves what the other one finds.
    orders = ((report.COLD, report.CACHED, report.PEER), (report.PEER, report.COLD, report.CACHED))
    for number in range(rounds):
        for side in orders[number % len(orders)]:
            # A side that fails once is not asked again: it would only cost time.
            if side in row.failures:
                continue
            try:
                row.add(side, programs.run(side, model))
            except litert.Failure as failure:
                row.failures[side] = str(failure)
                say(f"{model.name}, {side}: {failure}")
    programs.clear()
    return row


def parseArguments(words):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="+", metavar="PATTERN", default=["*"],
                        help="names, with * and ?: " + ", ".join(CHOSEN))
    parser.add_argument("--model", type=Path, nargs="+", help="these files in place of the rows")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", type=Path, help="for the caches (a temporary one)")
    parser.add_argument("--hearth", type=Path, help="the program; default: the one on PATH, "
                        "else that of the release build")
    parser.add_argument("--python", type=Path, help="Python with LiteRT, instead of making one")
    parser.add_argument("--launcher", default="", help="command put before all programs, for "
                        "example one that waits until the machine is idle")
    parser.add_argument("--output", type=Path, help="Markdown file; default: stdout")
    parser.add_argument("--json", type=Path, help="file for the figures")
    arguments = parser.parse_args(words)
    if min(arguments.rounds, arguments.threads) < 1:
        parser.error("--threads and --rounds are at least 1")
    if arguments.hearth is None:
        arguments.hearth = shutil.which("hearth") or ROOT / "build" / "release" / "bin" / "hearth"
    return arguments


def collect(arguments, cache):
    if arguments.model is not None:
        return [Model(path.stem, path) for path in arguments.model]
    return [Model(row.name, row.path(cache / "workloads", say), CHOSEN[row.name]) for row in ROWS
            if row.name in CHOSEN
            and any(fnmatch.fnmatch(row.name, pattern) for pattern in arguments.rows)]


def facts(arguments):
    about = litert.facts(argparse.Namespace(rounds=arguments.rounds, repeat=0))
    return [fact for fact in about if fact[0] != "inferences per round"] + [
        ("threads", arguments.threads)]


def write(rows, arguments):
    section = report.markdown(rows, facts(arguments))
    if arguments.output is None:
        sys.stdout.write(section)
    else:
        before = arguments.output.read_text() if arguments.output.exists() else ""
        arguments.output.write_text(report.place(before, section))
    if arguments.json is not None:
        content = {"about": dict(facts(arguments)), "rows": [row.json() for row in rows]}
        arguments.json.write_text(json.dumps(content, indent=1) + "\n")


def main(words=None):
    arguments = parseArguments(words)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hearth"
    try:
        models = collect(arguments, cache)
        if not models:
            say(f"compare.py: no row matches {' '.join(arguments.rows)}")
            return 2
        python = arguments.python or litert.environmentPython(cache)
        rows = []
        with tempfile.TemporaryDirectory(prefix="hearth-bench-", dir=arguments.folder) as folder:
            programs = Programs(arguments.hearth, python, arguments.threads,
                                shlex.split(arguments.launcher), Path(folder) / "kept")
            for model in models:
                say(model.name)
                rows.append(measure(programs, model, arguments.rounds))
        write(rows, arguments)
    except (litert.Failure, OSError, subprocess.CalledProcessError) as error:
        say(f"compare.py: {error}")
        return 1
    return 1 if any(row.failures for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
