#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares programs written for TensorFlow Lite on Hearth and on what they were written for.

    compare.py                      ResNet-50 with 97 MiB of float32 weights
    compare.py --model FILE --processes 10 --output table.md

Four things are measured, all sides in turn and warm; medians of the rounds, with the least and the greatest:
- the sum of the proportional set sizes of ten processes of a C program (program.cc), with TensorFlow Lite's
  C library 2.17.1, that library with its XNNPACK delegate, and Hearth's;
- the time from its main() to the first result, alone, and of a further run;
- the processor time of a Python program from its start to the first result, with LiteRT's interpreter and
  with hearth.tflite;
- the processor time that TfLiteInterpreterInvoke takes over hearth_execution_run with a small model
  (tflite_call_bench).

The wheels of the peers are installed in the cache folder (${XDG_CACHE_HOME:-~/.cache}/hearth).
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import comparison  # noqa: E402
from comparison import Failure, say  # noqa: E402
from peers import models  # noqa: E402

RELEASE = ROOT / "build" / "release"
ORIGINAL, DELEGATE, HEARTH = "TensorFlow Lite", "TensorFlow Lite with XNNPACK", "Hearth"
LITERT = "LiteRT's interpreter"
TIMEOUT_S = 300
# Largest accepted ratios to the original with XNNPACK, whose results are Hearth's, and to LiteRT, of models
# with a hundred megabytes of weights; and nanoseconds of a call.
MEMORY_LIMIT, START_LIMIT, CALL_LIMIT = 0.35, 0.5, 1000
SMALL = ROOT / "models" / "digits" / "digits.tflite"
SCRIPT = """
import sys, time
import numpy
from tflite_runtime.interpreter import Interpreter
interpreter = Interpreter(model_path=sys.argv[1], num_threads=1)
interpreter.allocate_tensors()
for detail in interpreter.get_input_details():
    interpreter.set_tensor(detail["index"], numpy.zeros(detail["shape"], detail["dtype"]))
interpreter.invoke()
interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
print(1000 * time.process_time())
"""


def proportionalSize(process):
    for line in Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1])
    raise Failure(f"process {process.pid} has no proportional size")


class Programs:
    def __init__(self, arguments, original, folder):
        self._arguments = arguments
        self._libraries = {ORIGINAL: original, DELEGATE: original, HEARTH: RELEASE / "lib"}
        self._environment = {**os.environ, "HEARTH_STORE": str(folder / "store")}
        # As after an installation by pip, both sides find their modules compiled.
        self._environment.pop("PYTHONDONTWRITEBYTECODE", None)
        self._environment["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")

    def run(self, side, model, count):
        """(MiB of `count` processes together, what each says)"""
        words = [RELEASE / "bin" / "tflite_program", model, str(self._arguments.repeat)]
        environment = {**self._environment, "LD_LIBRARY_PATH": str(self._libraries[side])}
        processes = [subprocess.Popen(words + ["xnnpack"] * (side == DELEGATE), stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                      env=environment) for _ in range(count)]
        try:
            lines = [process.stdout.readline() for process in processes]
            if not all(lines):
                raise Failure(f"a process ended early with {side}")
            return sum(map(proportionalSize, processes)) / 1024, [json.loads(line) for line in lines]
        finally:
            for process in processes:
                process.communicate()

    def python(self, side, model, script, peer):
        """Milliseconds of processor time from the start to the first result."""
        own = [sys.executable, "-m", "hearth.tflite", script]
        words = own if side == HEARTH else [peer, script]
        path = RELEASE / "python" if side == HEARTH else script.parent / "peer"
        done = subprocess.run([*map(str, words), str(model)], capture_output=True, text=True, check=False,
                              timeout=TIMEOUT_S, env={**self._environment, "PYTHONPATH": str(path)})
        if done.returncode != 0:
            raise Failure(f"{side}: {(done.stderr.splitlines() or ['no message'])[-1]}")
        return float(done.stdout)

    def call(self):
        """Nanoseconds of a call over hearth_execution_run."""
        done = subprocess.run([RELEASE / "bin" / "tflite_call_bench", SMALL], capture_output=True, text=True,
                              check=False, timeout=TIMEOUT_S, env=self._environment)
        found = re.search(r"^overhead +(-?\d+) ", done.stdout, re.MULTILINE)
        if not found:
            raise Failure(f"tflite_call_bench: {(done.stderr.splitlines() or ['no result'])[-1]}")
        return int(found[1])


def pythonScript(folder):
    """The program; for LiteRT tflite_runtime is a name of its interpreter."""
    script = folder / "program.py"
    script.write_text(SCRIPT)
    peer = folder / "peer" / "tflite_runtime"
    peer.mkdir(parents=True)
    (peer / "__init__.py").touch()
    (peer / "interpreter.py").write_text("from ai_edge_litert.interpreter import Interpreter\n")
    return script


class Row:
    """Of each part what each side took in each round."""

    def __init__(self, model):
        self.model = model
        self.memory = {}
        self.first = {}
        self.run = {}
        self.python = {}

    def ratio(self, part, peer):
        values = getattr(self, part)
        return statistics.median(values[HEARTH]) / statistics.median(values[peer])

    def json(self):
        return {"model": self.model.name, "memory_mib": self.memory, "first_ms": self.first,
                "run_us": self.run, "python_first_processor_ms": self.python,
                "memory_ratio": self.ratio("memory", DELEGATE), "first_ratio": self.ratio("first", DELEGATE),
                "python_ratio": self.ratio("python", LITERT)}


def measure(programs, model, arguments, script, peer):
    row = Row(model)
    programs.run(HEARTH, model.path, 1)
    for side in (LITERT, HEARTH):
        programs.python(side, model.path, script, peer)
    for _ in range(arguments.rounds):
        for side in (ORIGINAL, DELEGATE, HEARTH):
            row.memory.setdefault(side, []).append(programs.run(side, model.path, arguments.processes)[0])
            _, [said] = programs.run(side, model.path, 1)
            row.first.setdefault(side, []).append(said["first_ms"])
            row.run.setdefault(side, []).append(said["run_us"])
        for side in (LITERT, HEARTH):
            row.python.setdefault(side, []).append(programs.python(side, model.path, script, peer))
    return row


def spread(values, digits=1):
    middle, low, high = (f"{value:.{digits}f}" for value in (statistics.median(values), min(values), max(values)))
    return f"{middle} ({low}–{high})"


def markdown(rows, calls, facts):
    lines = ["# Programs for TensorFlow Lite", "", "Written by `bench/tflite-programs/compare.py`.", "",
             *(f"- {name}: {value}" for name, value in facts)]
    for title, part, peer, limit in (
            ("Memory of all processes, MiB", "memory", DELEGATE, MEMORY_LIMIT),
            ("From main() to the first result, ms", "first", DELEGATE, START_LIMIT),
            ("A further run, us", "run", DELEGATE, None),
            ("Python, processor ms to the first result", "python", LITERT, START_LIMIT)):
        sides = list(getattr(rows[0], part))
        lines += ["", f"## {title}", "", f"| model | {' | '.join(sides)} | ratio to {peer} | limit |",
                  "|---|" + "---|" * (len(sides) + 2)]
        for row in rows:
            figures = " | ".join(spread(getattr(row, part)[side]) for side in sides)
            lines.append(f"| {row.model.name} | {figures} | {row.ratio(part, peer):.2f} | {limit or '–'} |")
    lines += ["", "## A call over hearth_execution_run, ns", "", "| model | nanoseconds | limit |", "|---|---|---|",
              f"| {SMALL.stem} | {spread(calls, 0)} | {CALL_LIMIT} |"]
    return "\n".join(lines) + "\n"


def parseArguments(words):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, action="append", help="another one; may be repeated")
    parser.add_argument("--processes", type=int, default=10, metavar="N")
    comparison.addRounds(parser, 5, 20, quickRounds=1, quickRepeat=3)
    comparison.addReports(parser)
    parser.set_defaults(threads=1)
    arguments = comparison.parse(parser, words)
    comparison.requirePositive(parser, processes=arguments.processes, rounds=arguments.rounds)
    return arguments


def chosenModels(arguments):
    if arguments.model:
        return [models.Model(path.stem, path.resolve()) for path in arguments.model]
    cache = comparison.CACHE / "workloads"
    cache.mkdir(parents=True, exist_ok=True)
    return [models.Model("resnet50_f32", models.generated("resnet50", "f32", cache, say))]


def main(words=None):
    arguments = parseArguments(words)
    try:
        peer = comparison.environmentPython(comparison.CACHE / "litert-venv", comparison.PEER_WHEEL)
        library = comparison.environmentPython(comparison.CACHE / "tflite-c-venv", comparison.TFLITE_C_WHEEL)
        found = subprocess.run([library, "-c", "import pymicro_wakeword as p; print(p.__path__[0])"],
                               capture_output=True, text=True, check=True).stdout.strip()
        with tempfile.TemporaryDirectory(prefix="hearth-tflite-programs-") as folder:
            folder = Path(folder)
            programs = Programs(arguments, Path(found) / "lib", folder)
            script = pythonScript(folder)
            rows = [measure(programs, model, arguments, script, peer) for model in chosenModels(arguments)]
            calls = [programs.call() for _ in range(arguments.rounds)]
    except (Failure, OSError, subprocess.SubprocessError) as error:
        say(f"compare.py: {error}")
        return 1
    about = comparison.facts((comparison.TFLITE_C_WHEEL, comparison.PEER_WHEEL), processes=arguments.processes,
                             rounds=arguments.rounds)
    comparison.writeText(arguments.output, markdown(rows, calls, about))
    comparison.writeJson(arguments.json, about, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
