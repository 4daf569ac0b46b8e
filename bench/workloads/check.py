#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares what `hearth run` computes of generated models with the NumPy reference.

    check.py MODEL... [--device NAME] [--hearth PATH] [--steps 4] [--limit 2e-5]

A model with the signatures `prefill` and `decode` runs one prefill and --steps single tokens over
one key-value cache, any other model its first signature on random inputs. Prints for each output the
largest error as a part of the largest value, and for logits how often both agree on the greatest
one. Exit code 1 when an error is above --limit.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
from workloads import reference, tflite_reader  # noqa: E402


class Runner:
    """Runs signatures of one model file by the command."""

    def __init__(self, path, model, hearth, device):
        self.path = path
        self.model = model
        self.command = [str(hearth), "run", str(path)] + (["--device", device] if device else [])

    def run(self, key, inputs):
        """Outputs by name for inputs by name."""
        signature = self.model.signature(key)
        graph = signature.graph
        names = {index: name for name, index in signature.inputs.items()}
        with tempfile.TemporaryDirectory(prefix="hearth-check-") as folder:
            files = []
            for number, index in enumerate(graph.inputs):
                files.append(f"{folder}/input_{number}.npy")
                np.save(files[-1], inputs[names[index]])
            subprocess.run([*self.command, "--signature", key, "--output-dir", folder, "--input",
                            *files], check=True, stdout=subprocess.DEVNULL)
            return {name: np.load(f"{folder}/output_{graph.outputs.index(index)}.npy")
                    for name, index in signature.outputs.items()}


def relativeError(actual, expected):
    """NaN where only one side is NaN or infinite."""
    largest = np.abs(expected).max()
    return float(np.abs(actual - expected).max() / (largest if largest > 0 else 1))


def decodedLogits(model, run, steps, seed=0):
    """Logits of `steps` tokens behind a prefill; `run(key, inputs)` computes a signature."""
    prefill = model.signature("prefill")
    shape = {name: prefill.graph.shape(index) for name, index in prefill.inputs.items()}
    count = shape["tokens"][1]
    table = model.signature("decode").graph.shape(model.signature("decode").outputs["logits"])[-1]
    stream = np.random.default_rng(seed)
    tokens = stream.integers(0, table, count + steps).astype(np.int32)
    cache = {name: np.zeros(extent, np.float32) for name, extent in shape.items()
             if name.startswith("kv_cache")}
    cache = run("prefill", {"tokens": tokens[None, :count],
                            "input_pos": np.arange(count, dtype=np.int32), **cache})
    logits = []
    for step in range(count, count + steps):
        results = run("decode", {"tokens": tokens[None, step:step + 1],
                                 "input_pos": np.array([step], np.int32), **cache})
        logits.append(results.pop("logits").reshape(-1))
        cache = results
    return np.stack(logits)


def randomInputs(signature, seed=0):
    """Small normal numbers, and token numbers below 128."""
    stream = np.random.default_rng(seed)
    inputs = {}
    for name, index in signature.inputs.items():
        tensor = signature.graph.tensors[index]
        if tensor.dtype == np.int32:
            inputs[name] = stream.integers(0, 128, tensor.shape).astype(np.int32)
        else:
            inputs[name] = stream.standard_normal(tensor.shape).astype(np.float32)
    return inputs


def checkModel(path, hearth, device, steps, limit):
    """Prints one line for each output; returns whether all are within the limit."""
    model = tflite_reader.readModel(path)
    runner = Runner(path, model, hearth, device)

    def expect(key, inputs):
        return reference.runSignature(model, key, inputs)

    if {"prefill", "decode"} <= {one.key for one in model.signatures}:
        actual = decodedLogits(model, runner.run, steps)
        expected = decodedLogits(model, expect, steps)
        error = relativeError(actual, expected)
        agreed = int((actual.argmax(1) == expected.argmax(1)).sum())
        print(f"{path}: logits of {steps} tokens: error {error:.2g}, {agreed} of {steps} greatest "
              "logits agree")
        return error <= limit
    signature = model.signatures[0]
    inputs = randomInputs(signature)
    actual = runner.run(signature.key, inputs)
    expected = expect(signature.key, inputs)
    errors = [relativeError(actual[name], expected[name]) for name in expected]
    for name, error in zip(expected, errors):
        print(f"{path}: {name}: error {error:.2g}")
    return all(error <= limit for error in errors)


def main(words=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path, metavar="MODEL")
    parser.add_argument("--device", help="device of the command (the first that can)")
    parser.add_argument("--hearth", type=Path, default=ROOT / "build/release/bin/hearth",
                        help="the command (that of the release build)")
    parser.add_argument("--steps", type=int, default=4, help="decoded tokens (4)")
    parser.add_argument("--limit", type=float, default=2e-5,
                        help="largest error as a part of the largest value (2e-5)")
    arguments = parser.parse_args(words)
    results = [checkModel(path, arguments.hearth, arguments.device, arguments.steps,
                          arguments.limit) for path in arguments.models]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
