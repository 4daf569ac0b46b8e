#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One measurement of a peer in a process of its own; prints one JSON object.

Runs inside the virtual environment that `compare.py` makes for the peer. The keys are those of
`hearth bench --json`, so that all sides are read by the same code.
"""

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
import litert_side  # noqa: E402


def randomArray(generator, shape, dtype):
    """Values of the same kinds as `hearth --random-input`, though not the same values."""
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        return generator.uniform(-1, 1, shape).astype(dtype)
    if dtype in (np.int8, np.uint8, np.int16):
        limits = np.iinfo(dtype)
        return generator.integers(limits.min, limits.max + 1, shape).astype(dtype)
    return generator.integers(0, 2, shape).astype(dtype)


def generate(arguments):
    model = litert_side.Generation(arguments.model, arguments.threads, arguments.weight_cache)
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
    """KiB of this process, including Python and the peer's libraries."""
    words = {}
    for name in ("/proc/self/status", "/proc/self/smaps_rollup"):
        for line in Path(name).read_text().splitlines():
            key, _, value = line.partition(":")
            if value.endswith(" kB"):
                words[key] = int(value.split()[0])
    return {"peak_rss_kib": words["VmHWM"], "anonymous_rss_kib": words["Anonymous"],
            "pss_kib": words["Pss"]}


def sideOf(arguments):
    """The peer that --api names, ready to run."""
    if arguments.api == "compiled":
        return litert_side.CompiledModelSide(arguments.model, arguments.threads,
                                             arguments.weight_cache)
    if arguments.api in ("openvino", "openvino-float32"):
        from openvino_side import OpenVinoSide
        return OpenVinoSide(arguments.model, arguments.threads,
                            "f32" if arguments.api == "openvino-float32" else None)
    if arguments.api == "onnxruntime":
        from onnxruntime_side import OnnxRuntimeSide
        return OnnxRuntimeSide(arguments.model, arguments.threads)
    store = {"store": arguments.delegate_store} if arguments.delegate_store else {}
    return litert_side.InterpreterSide(arguments.model, arguments.threads,
                                       arguments.delegate and (arguments.delegate, store),
                                       isReference=arguments.api == "reference")


def runCases(side, casesFile, resultsFile):
    """Runs each case, from the state that the model has at its start, and writes the outputs."""
    cases, results = np.load(casesFile), {}
    for case in dict.fromkeys(key.rpartition("/")[0] for key in cases.files):
        side.reset()
        side.write([cases[f"{case}/{number}"] for number in range(len(side.inputs))])
        side.run()
        results.update((f"{case}/{number}", array) for number, array in enumerate(side.read()))
    np.savez(resultsFile, **results)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--api", default="interpreter",
                        choices=["interpreter", "compiled", "reference", "openvino",
                                 "openvino-float32", "onnxruntime"])
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
    parser.add_argument("--cases", type=Path, metavar="FILE",
                        help=".npz file with CASE/NUMBER for each input of cases to run at the end")
    parser.add_argument("--results", type=Path, metavar="FILE",
                        help="with --cases: .npz file for CASE/NUMBER of each output")
    arguments = parser.parse_args()

    if arguments.generate:
        return generate(arguments)
    side = sideOf(arguments)
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

    times, processorTimes = [], []
    for _ in range(1 + arguments.repeat):
        processorStart = time.process_time()
        start = time.perf_counter()
        side.run()
        times.append(1e3 * (time.perf_counter() - start))
        processorTimes.append(1e3 * (time.process_time() - processorStart))
    if arguments.output is not None:
        np.save(arguments.output, side.read()[0])
    inference = {"first": times[0]}
    if arguments.repeat:
        for percent in (50, 90, 99):
            inference[f"p{percent}"] = float(np.percentile(times[1:], percent))
        inference["processor_p50"] = float(np.median(processorTimes[1:]))
    report = {"model": str(arguments.model),
              "start": {"prepare_ms": 1e3 * (side.prepared - side.start)},
              "inference_ms": inference,
              "memory": {"start_peak_rss_kib": startPeak, **memory()}}
    if hasattr(side, "kernels"):
        report["kernels"] = side.kernels()
    if arguments.cases is not None:
        runCases(side, arguments.cases, arguments.results)
    print(json.dumps(report), flush=True)
    if arguments.wait:
        sys.stdin.read()


if __name__ == "__main__":
    main()
