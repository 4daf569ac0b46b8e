#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One measurement of LiteRT in a process of its own; prints one JSON object.

Runs inside the virtual environment that `compare.py` makes. The keys are those of
`hearth bench --json`, so that both sides are read by the same code.
"""

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np


def randomArray(generator, shape, dtype):
    """Values of the same kinds as `hearth --random-input`, though not the same values."""
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        return generator.uniform(-1, 1, shape).astype(dtype)
    if dtype in (np.int8, np.uint8, np.int16):
        limits = np.iinfo(dtype)
        return generator.integers(limits.min, limits.max + 1, shape).astype(dtype)
    return generator.integers(0, 2, shape).astype(dtype)


class InterpreterSide:
    """`delegate`: the library of an external delegate and its options, or None."""

    def __init__(self, path, threads, delegate=None):
        from ai_edge_litert.interpreter import Interpreter, load_delegate
        self.start = time.perf_counter()
        delegates = [] if delegate is None else [load_delegate(*delegate)]
        self._interpreter = Interpreter(str(path), num_threads=threads,
                                        experimental_delegates=delegates)
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


def compiledModel(path, threads, weightCache=None):
    """The model, and the time at which its preparation began. `weightCache` is a file, though
    LiteRT's documentation speaks of a folder."""
    from ai_edge_litert.compiled_model import CompiledModel
    from ai_edge_litert.cpu_options import CpuOptions
    from ai_edge_litert.options import Options
    cache = {} if weightCache is None else {"xnnpack_weight_cache_path": str(weightCache)}
    start = time.perf_counter()
    return CompiledModel.from_file(
        str(path), options=Options(cpu_options=CpuOptions(num_threads=threads, **cache))), start


class CompiledModelSide:
    def __init__(self, path, threads, weightCache=None):
        self._model, self.start = compiledModel(path, threads, weightCache)
        self.loaded = time.perf_counter()
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


class Generation:
    """A language model's signatures with one key-value cache: the output of one call is the input
    of the next, without a copy."""

    def __init__(self, path, threads, weightCache):
        self._model, start = compiledModel(path, threads, weightCache)
        self._signatures = {}
        for index in range(self._model.get_num_signatures()):
            signature = self._model.get_signature_by_index(index)
            self._signatures[signature["key"]] = (
                index, dict(zip(signature["inputs"], self._model.create_input_buffers(index))),
                dict(zip(signature["outputs"], self._model.create_output_buffers(index))))
        self.prepareMs = 1e3 * (time.perf_counter() - start)
        details = self._model.get_input_tensor_details("prefill")
        self.prefillTokens = int(details["tokens"]["shape"][-1])
        self._cache = {name: buffer for name, buffer in self._signatures["prefill"][1].items()
                       if name.startswith("kv_cache")}
        for name, buffer in self._cache.items():
            buffer.write(np.zeros(details[name]["shape"], np.float32))

    def run(self, key, tokens, position):
        """Milliseconds that one call takes."""
        index, inputs, outputs = self._signatures[key]
        inputs["tokens"].write(np.asarray([tokens], np.int32))
        inputs["input_pos"].write(
            np.arange(position, position + len(tokens), dtype=np.int32))
        start = time.perf_counter()
        self._model.run_by_index(
            index, [self._cache.get(name, buffer) for name, buffer in inputs.items()],
            list(outputs.values()))
        milliseconds = 1e3 * (time.perf_counter() - start)
        for name in self._cache:
            self._cache[name], outputs[name] = outputs[name], self._cache[name]
        return milliseconds


def generate(arguments):
    model = Generation(arguments.model, arguments.threads, arguments.weight_cache)
    startPeak = memory()["peak_rss_kib"]
    count = model.prefillTokens
    tokens = [1 + i % 100 for i in range(count + 1)]
    prefills = [model.run("prefill", tokens[:count], 0) for _ in range(arguments.prefills)]
    decodes = [model.run("decode", tokens[count:], count + i) for i in range(arguments.repeat)]
    steady = lambda times: float(np.median(times[1:] or times))
    result = {"prepare_ms": model.prepareMs, "first_prefill_ms": prefills[0],
              "prefill_ms": steady(prefills), "first_decode_ms": decodes[0],
              "decode_ms": steady(decodes), "start_peak_rss_kib": startPeak, **memory()}
    print(json.dumps(result))


def memory():
    """KiB of this process, including Python and LiteRT's libraries."""
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
    parser.add_argument("--weight-cache", type=Path, help="with --api compiled")
    parser.add_argument("--delegate", metavar="LIBRARY", help="with --api interpreter")
    parser.add_argument("--delegate-store", metavar="FOLDER", help="the delegate's option `store`")
    parser.add_argument("--wait", action="store_true",
                        help="ends when standard input does, so that others can be measured beside")
    parser.add_argument("--only-start", action="store_true",
                        help="with --api compiled: no inference, and from_file_ms apart")
    parser.add_argument("--generate", action="store_true",
                        help="prefill and decode of a language model; --repeat tokens")
    parser.add_argument("--prefills", type=int, default=1, help="with --generate")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--random-input", type=int, default=1, metavar="SEED")
    parser.add_argument("--input", type=Path, help=".npy file for the only input")
    parser.add_argument("--output", type=Path, help=".npy file for the first output")
    arguments = parser.parse_args()

    if arguments.generate:
        return generate(arguments)
    if arguments.api == "interpreter":
        store = {"store": arguments.delegate_store} if arguments.delegate_store else {}
        side = InterpreterSide(arguments.model, arguments.threads,
                               arguments.delegate and (arguments.delegate, store))
    else:
        side = CompiledModelSide(arguments.model, arguments.threads, arguments.weight_cache)
    startPeak = memory()["peak_rss_kib"]
    if arguments.only_start:
        start = {"prepare_ms": 1e3 * (side.prepared - side.start),
                 "from_file_ms": 1e3 * (side.loaded - side.start)}
        print(json.dumps({"model": str(arguments.model), "start": start, "memory": memory()}))
        return
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
                      "inference_ms": inference,
                      "memory": {"start_peak_rss_kib": startPeak, **memory()}}), flush=True)
    if arguments.wait:
        sys.stdin.read()


if __name__ == "__main__":
    main()
