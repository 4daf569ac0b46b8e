#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One measurement of LiteRT in a process of its own; prints one JSON object.

Runs inside the virtual environment that `compare.py` makes. The keys are those of
`hearth bench --json`, so that both sides are read by the same code.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np


def randomArray(generator, shape, dtype):
    """The same kinds of values as `hearth --random-input`, though not the same values."""
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        return generator.uniform(-1, 1, shape).astype(dtype)
    if dtype in (np.int8, np.uint8, np.int16):
        limits = np.iinfo(dtype)
        return generator.integers(limits.min, limits.max + 1, shape).astype(dtype)
    return generator.integers(0, 2, shape).astype(dtype)


class InterpreterSide:
    def __init__(self, path, threads):
        from ai_edge_litert.interpreter import Interpreter
        self.start = time.perf_counter()
        self._interpreter = Interpreter(str(path), num_threads=threads)
        self._interpreter.allocate_tensors()
        self.prepared = time.perf_counter()
        self.inputs = [(detail["shape"], detail["dtype"])
                       for detail in self._interpreter.get_input_details()]
        self.run = self._interpreter.invoke

    def write(self, arrays):
        for detail, array in zip(self._interpreter.get_input_details(), arrays):
            self._interpreter.set_tensor(detail["index"], array)

    def read(self):
        return [self._interpreter.get_tensor(detail["index"])
                for detail in self._interpreter.get_output_details()]


class CompiledModelSide:
    def __init__(self, path, threads):
        from ai_edge_litert.compiled_model import CompiledModel
        from ai_edge_litert.cpu_options import CpuOptions
        from ai_edge_litert.options import Options
        self.start = time.perf_counter()
        self._model = CompiledModel.from_file(
            str(path), options=Options(cpu_options=CpuOptions(num_threads=threads)))
        self._inputs = self._model.create_input_buffers(0)
        self._outputs = self._model.create_output_buffers(0)
        self.prepared = time.perf_counter()
        signature = self._model.get_signature_by_index(0)
        self._key, self._outputNames = signature["key"], signature["outputs"]
        details = self._model.get_input_tensor_details(self._key)
        self.inputs = [(details[name]["shape"], details[name]["dtype"])
                       for name in signature["inputs"]]
        self.run = lambda: self._model.run_by_index(0, self._inputs, self._outputs)

    def write(self, arrays):
        for buffer, array in zip(self._inputs, arrays):
            buffer.write(array)

    def read(self):
        details = self._model.get_output_tensor_details(self._key)
        result = []
        for buffer, name in zip(self._outputs, self._outputNames):
            shape, dtype = details[name]["shape"], np.dtype(details[name]["dtype"])
            result.append(np.asarray(buffer.read(int(np.prod(shape)), dtype)).reshape(shape))
        return result


def memory():
    """KiB of this process, Python and LiteRT's libraries included."""
    words = {}
    for name in ("/proc/self/status", "/proc/self/smaps_rollup"):
        for line in Path(name).read_text().splitlines():
            key, _, value = line.partition(":")
            if value.endswith(" kB"):
                words[key] = int(value.split()[0])
    return {"peak_rss_kib": words["VmHWM"], "anonymous_rss_kib": words["Anonymous"],
            "pss_kib": words["Pss"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--api", choices=["interpreter", "compiled"], default="interpreter")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--random-input", type=int, default=1, metavar="SEED")
    parser.add_argument("--input", type=Path, help=".npy file for the only input")
    parser.add_argument("--output", type=Path, help=".npy file for the first output")
    arguments = parser.parse_args()

    sides = {"interpreter": InterpreterSide, "compiled": CompiledModelSide}
    side = sides[arguments.api](arguments.model, arguments.threads)
    if arguments.input is not None:
        arrays = [np.load(arguments.input)]
    else:
        generator = np.random.default_rng(arguments.random_input)
        arrays = [randomArray(generator, shape, dtype) for shape, dtype in side.inputs]
    side.write(arrays)

    times = []
    for _ in range(1 + arguments.repeat):
        start = time.perf_counter()
        side.run()
        times.append(1e3 * (time.perf_counter() - start))
    if arguments.output is not None:
        np.save(arguments.output, side.read()[0])
    inference = {"first": times[0]}
    if arguments.repeat:
        for percent in (50, 90, 99):
            inference[f"p{percent}"] = float(np.percentile(times[1:], percent))
    print(json.dumps({"model": str(arguments.model),
                      "start": {"prepare_ms": 1e3 * (side.prepared - side.start)},
                      "inference_ms": inference, "memory": memory()}))


if __name__ == "__main__":
    main()
