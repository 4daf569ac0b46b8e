# SPDX-License-Identifier: Apache-2.0
"""One side of one model in a process of its own: the first result, the memory that it takes, and
inferences. Prints one JSON object.

usage: measure.py hearth|litert|openvino MODEL --threads N --inferences N [--store FOLDER]
                  [--clock wall|processor]

`first_ms` is the time from opening the file to the first result, `memory_mib` and `anonymous_mib`
what the process has gained by then (all resident pages; those of no file). `inference_ms` is the
least mean of several rounds, in wall time or in the processor time of all threads. All sides are called from Python, with inputs that stay where they
are. What loading the libraries costs counts on neither side. A dimension that the file leaves open
is 1, as in most files the shape for a start has it. Hearth stores what it has packed before the
process ends, so that the next one starts warm.
"""

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np

ROUNDS = 5
# A round takes about this long, but has at most --inferences inferences and at least 3.
ROUND_SECONDS = 0.04


def values(generator, shape, dtype):
    """Inputs that most models take: indices among them are small."""
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        return generator.uniform(0, 1, shape).astype(dtype)
    return generator.integers(0, 2, shape).astype(dtype)


def memory():
    """MiB of this process: resident, and of no file."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()[1:]
    kib = {line.split(":")[0]: int(line.split()[1]) for line in lines}
    return kib["Rss"] / 1024, kib["Anonymous"] / 1024


class HearthSide:
    def __init__(self, store):
        import hearth
        self._hearth = hearth
        self._store = store
        hearth.devices()

    def open(self, path, threads):
        options = {"store": str(self._store)} if self._store is not None else {"cache": "off"}
        self._compiled = self._hearth.Model(str(path)).compile(threads=threads, **options)
        self._execution = self._compiled.create_execution()
        self._inputs = []
        for tensor, shape in zip(self._compiled.inputs, self._shapes()):
            self._inputs.append(tensor.empty(shape))
        self._outputs = {tensor.name: tensor.empty() for tensor in self._compiled.outputs
                         if None not in tensor.shape}

    def _shapes(self):
        return [[1 if size is None else size for size in tensor.shape]
                for tensor in self._compiled.inputs]

    def write(self, generator):
        for array in self._inputs:
            array[...] = values(generator, array.shape, array.dtype)

    def run(self):
        self._execution.run(self._inputs, outputs=self._outputs)

    def about(self):
        report = self._compiled.start_report
        self._hearth.flush()
        return {"state": report["state"], "reason": report["reason"]}


class LiteRtSide:
    def __init__(self):
        from ai_edge_litert import interpreter
        self._litert = interpreter

    def open(self, path, threads):
        self._interpreter = self._litert.Interpreter(str(path), num_threads=threads)
        for detail in self._interpreter.get_input_details():
            shape = [1 if size < 0 else size for size in detail["shape_signature"]]
            if shape != list(detail["shape"]):
                self._interpreter.resize_tensor_input(detail["index"], shape)
        self._interpreter.allocate_tensors()
        self.run = self._interpreter.invoke

    def write(self, generator):
        for detail in self._interpreter.get_input_details():
            self._interpreter.set_tensor(
                detail["index"], values(generator, detail["shape"], detail["dtype"]))

    def about(self):
        return {}


class OpenVinoSide:
    """OpenVINO's CPU device, which computes in float32, as the others do."""

    def __init__(self):
        import openvino
        self._openvino = openvino

    def open(self, path, threads):
        core = self._openvino.Core()
        model = core.read_model(str(path))
        shapes = {port: [dimension.get_length() if dimension.is_static else 1
                         for dimension in port.partial_shape] for port in model.inputs}
        if any(port.partial_shape.is_dynamic for port in model.inputs):
            model.reshape(shapes)
        self._compiled = core.compile_model(model, "CPU", {
            "INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1})
        self._request = self._compiled.create_infer_request()
        self.run = self._request.infer

    def write(self, generator):
        for number in range(len(self._compiled.inputs)):
            data = self._request.get_input_tensor(number).data
            data[...] = values(generator, data.shape, data.dtype)

    def about(self):
        return {}


SIDES = {"hearth": HearthSide, "litert": LiteRtSide, "openvino": OpenVinoSide}
CLOCKS = {"wall": time.perf_counter, "processor": time.process_time}


def inferenceMs(run, most, clock):
    run()
    start = clock()
    run()
    once = clock() - start
    count = max(3, min(most, int(ROUND_SECONDS / max(once, 1e-7))))
    least = float("inf")
    for _ in range(ROUNDS):
        start = clock()
        for _ in range(count):
            run()
        least = min(least, (clock() - start) / count)
    return 1e3 * least


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("side", choices=SIDES)
    parser.add_argument("model", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--inferences", type=int, default=2000)
    parser.add_argument("--store", type=Path)
    parser.add_argument("--clock", choices=CLOCKS, default="wall")
    arguments = parser.parse_args()
    side = SIDES[arguments.side](*([arguments.store] if arguments.side == "hearth" else []))
    generator = np.random.default_rng(1)
    resident, anonymous = memory()
    start = time.perf_counter()
    side.open(arguments.model, arguments.threads)
    side.write(generator)
    side.run()
    first = 1e3 * (time.perf_counter() - start)
    residentThen, anonymousThen = memory()
    result = {"first_ms": first, "memory_mib": residentThen - resident,
              "anonymous_mib": anonymousThen - anonymous}
    if arguments.inferences:
        result["inference_ms"] = inferenceMs(side.run, arguments.inferences,
                                             CLOCKS[arguments.clock])
    print(json.dumps({**result, **side.about()}), flush=True)


if __name__ == "__main__":
    sys.exit(main())
