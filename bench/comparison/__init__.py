# SPDX-License-Identifier: Apache-2.0
"""What the programs that compare Hearth with a peer share: options of their command lines, taking
turns, facts about the run, and writing the figures."""

import datetime
import fnmatch
import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# The folder in which models and the peer's virtual environment are kept.
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hearth"
PEER_WHEEL = "ai-edge-litert==2.3.0"
# Brings the C library of TensorFlow Lite 2.17.1.
TFLITE_C_WHEEL = "pymicro-wakeword==2.5.0"
OPENVINO_WHEEL = "openvino==2026.4.1"
# The second one writes the models for the first.
ONNX_WHEELS = ("onnxruntime==1.32.0", "onnx==1.23.2")


class Failure(Exception):
    """A measurement that failed; the text is for the report."""


def say(text):
    print(text, file=sys.stderr, flush=True)


def installedPython(folder, *wheels):
    """The interpreter of the virtual environment with these pinned wheels; None if there is none."""
    python = folder / "bin" / "python"
    # A name may be followed by extras: ray[data].
    versions = {name.partition("[")[0]: version
                for name, version in (wheel.split("==") for wheel in wheels)}
    check = ("import importlib.metadata as m, numpy; "
             f"assert all(m.version(n) == v for n, v in {versions!r}.items())")
    isWhole = python.exists() and subprocess.run([python, "-c", check],
                                                 capture_output=True).returncode == 0
    return python if isWhole else None


def environmentPython(folder, *wheels):
    """The interpreter of the virtual environment with these pinned wheels. Creates or repairs the
    environment if necessary."""
    if found := installedPython(folder, *wheels):
        return found
    python = folder / "bin" / "python"
    names = ", ".join(wheels)
    say(f"installing {names} in {folder}")
    shutil.rmtree(folder, ignore_errors=True)
    for command in ([sys.executable, "-m", "venv", folder],
                    [python, "-m", "pip", "install", "--quiet", *wheels, "numpy"]):
        if subprocess.run(command, stdout=sys.stderr).returncode != 0:
            raise Failure(f"{names} cannot be installed in {folder}")
    return python


def addHearth(parser):
    parser.add_argument("--hearth", type=Path, help="the program; default: the one on PATH, "
                        "else that of the release build",
                        default=shutil.which("hearth") or ROOT / "build" / "release" / "bin" /
                        "hearth")


def addPrograms(parser):
    """Adds the options that name the programs to start."""
    addHearth(parser)
    parser.add_argument("--python", type=Path, help="Python with LiteRT, instead of making one")


def addLauncher(parser):
    parser.add_argument("--launcher", default="", help="command put before all programs, for "
                        "example one that masks instruction sets or waits for an idle machine")


def addReports(parser):
    """Adds the options that name the files to which the figures are written."""
    parser.add_argument("--output", type=Path, help="Markdown file; default: stdout")
    parser.add_argument("--json", type=Path, help="file for the figures")


def addRows(parser, note="--rows list prints them"):
    parser.add_argument("--rows", nargs="+", metavar="PATTERN", default=["*"],
                        help=f"names, with * and ?; {note}")


def chosen(rows, patterns):
    """The rows whose name matches one of the patterns."""
    return [row for row in rows
            if any(fnmatch.fnmatchcase(row.name, pattern) for pattern in patterns)]


def choose(rows, patterns):
    """(chosen rows, None), or (None, exit code) if the program is done: it has printed the names of
    all rows, for the pattern "list", or a sentence because no row matches."""
    if patterns == ["list"]:
        print("\n".join(row.name for row in rows))
        return None, 0
    if found := chosen(rows, patterns):
        return found, None
    say(f"compare.py: no row matches {' '.join(patterns)}")
    return None, 2


def addRounds(parser, rounds, repeat, quickRounds, quickRepeat):
    """Adds the options that set how often is measured; setRounds() sets their values."""
    parser.add_argument("--rounds", type=int, help=f"default: {rounds}")
    parser.add_argument("--repeat", type=int, help=f"inferences in each round; default: {repeat}")
    parser.add_argument("--quick", action="store_true", help=f"makes {quickRounds} "
                        f"round{'s' * (quickRounds > 1)} of {quickRepeat} inferences the default")
    parser.set_defaults(usual=(rounds, repeat), short=(quickRounds, quickRepeat))


def setRounds(parser, arguments):
    rounds, repeat = arguments.short if arguments.quick else arguments.usual
    if arguments.rounds is None:
        arguments.rounds = rounds
    if arguments.repeat is None:
        arguments.repeat = repeat
    requirePositive(parser, threads=arguments.threads, rounds=arguments.rounds,
                    repeat=arguments.repeat)


def parse(parser, words):
    """The arguments, with what addRounds() announced."""
    arguments = parser.parse_args(words)
    setRounds(parser, arguments)
    return arguments


def requirePositive(parser, **numbers):
    """Ends the program with a sentence if a number, or one of a list of numbers, is below 1."""
    for number in numbers.values():
        if min(number if isinstance(number, list) else [number]) < 1:
            names = [f"--{name}" for name in numbers]
            parser.error(f"{', '.join(names[:-1])} and {names[-1]} are at least 1")


def takeTurns(orders, take, name):
    """Calls take(side, round) for the sides in each round's order and returns {side: sentence} for
    those that failed. A side that has failed once is not called again."""
    failures = {}
    for number, order in enumerate(orders):
        for side in order:
            if side in failures:
                continue
            try:
                take(side, number)
            except Failure as failure:
                failures[side] = str(failure)
                say(f"{name}, {side}: {failure}")
    return failures


def facts(peers=(PEER_WHEEL,), **settings):
    """(name, value) pairs about a run on this machine, followed by those that are given."""
    processor = next((line.partition(":")[2].strip()
                      for line in Path("/proc/cpuinfo").read_text().splitlines()
                      if line.startswith("model name")), platform.machine())
    return [("processor", f"{processor}, {os.cpu_count()} cores visible"),
            *([("peer" if len(peers) == 1 else "peers", ", ".join(peers))] if peers else []),
            ("date", datetime.date.today().isoformat()),
            *((name.replace("_", " "), value) for name, value in settings.items())]


def writeJson(path, about, results):
    """Writes the figures of all results if they were requested."""
    if path is None:
        return
    content = {"about": dict(about), "rows": [result.json() for result in results]}
    path.write_text(json.dumps(content, indent=1) + "\n")


def writeText(path, text):
    if path is None:
        sys.stdout.write(text)
    else:
        path.write_text(text)
