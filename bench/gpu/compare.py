#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures a GPU in a few minutes, wherever one is at hand: networks, starts, large products, fenced
executions, and the same networks in what else computes on that GPU.

    compare.py --drivers build/release/share/hearth/gpu-drivers        table on stdout
    compare.py --output gpu.md --json gpu.json --peers torch onnxruntime
    HEARTH_VULKAN_DEVICE=llvmpipe compare.py --resolution 64 --size 64 --rounds 1 --repeat 2

The networks are those of bench/workloads, MobileNetV2 and ResNet-50, in float32 and with all tensors in
float16, at batch 1. Each measurement is a fresh process; the sides take turns. A start is measured with
a compilation cache, with the driver in the program's process, and in a host that runs already: from
opening the file to the first result. Peers are looked for in this Python, and in the one that --python
names: PyTorch (cuDNN, channels last, CUDA graphs where they work) and ONNX Runtime with the CUDA or
DirectML provider. What is not there, or fails, is said in the report. Limits are those for an H100 and
are told, not enforced.

Exit code: 0 when the device was measured, 1 when not, 2 for wrong arguments.
"""

import argparse
import copy
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(ROOT / "bench")]
import comparison  # noqa: E402
from comparison import Failure, say  # noqa: E402
from workloads import networks, tflite_writer  # noqa: E402
from workloads.graph import Graph  # noqa: E402

DEVICE = "vulkan-gpu"
CPU = "hearth-cpu"
PEERS = ("torch", "onnxruntime")
NETWORKS = {"mobilenet_v2": networks.mobilenetV2, "resnet50": networks.resnet50}
# For an H100, milliseconds of an inference.
LIMITS = {("mobilenet_v2", "float16"): 0.30, ("resnet50", "float16"): 0.75}
LEAST_TERAFLOPS = 150
MOST_WARM_MS = 15
MOST_COLD_MS = 1000
MOST_FENCED_US = 5
TIMEOUT_S = 600
HOST_PATIENCE_S = 30


def toFloat16(graph):
    """The same network with all its real numbers in float16."""
    result = Graph(graph.name + " float16")
    result.inputs, result.outputs = list(graph.inputs), list(graph.outputs)
    result.operators = copy.deepcopy(graph.operators)
    for tensor in graph.tensors:
        data, dtype = tensor.data, tensor.dtype
        if np.dtype(dtype) == np.float32:
            dtype = np.float16
            data = None if data is None else np.asarray(data).astype(dtype)
        result.addTensor(tensor.name, tensor.shape, dtype, data)
    return result


class Row:
    """Samples in milliseconds of one network in one type, by side."""

    def __init__(self, network, number):
        self.network, self.number = network, number
        self.samples, self.failures = {}, {}

    @property
    def name(self):
        return f"{self.network} {self.number}"

    def add(self, side, value):
        self.samples.setdefault(side, []).append(value)

    def cell(self, side):
        values = self.samples.get(side)
        if not values:
            return "–"
        return f"{statistics.median(values):.3g} ({min(values):.3g}–{max(values):.3g})"

    def json(self):
        return {"row": self.name, "ms": self.samples, "failures": self.failures}


class Programs:
    def __init__(self, arguments, folder):
        self.hearth, self.threads = arguments.hearth, arguments.threads
        self.gpuBench = Path(arguments.hearth).parent / "gpu_bench"
        self.repeat, self.folder = arguments.repeat, Path(folder)
        self.environment = dict(os.environ, HEARTH_STORE=str(self.folder / "store"),
                                XDG_STATE_HOME=str(self.folder / "state"))
        # Where a measurement has no other place for it.
        self.environment["HEARTH_DRIVER_HOSTS"] = f"{DEVICE}=process"
        if arguments.drivers is not None:
            self.environment["HEARTH_DRIVER_PATH"] = str(arguments.drivers)

    def output(self, words, **environment):
        try:
            run = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False,
                                 timeout=TIMEOUT_S, env={**self.environment, **environment})
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Failure(str(error)) from None
        if run.returncode != 0:
            raise Failure((run.stderr.strip().splitlines() or [f"{words[0]} fails."])[-1])
        return json.loads(run.stdout)

    def device(self):
        for device in self.output([self.hearth, "devices", "--json"])["devices"]:
            if device["name"] == DEVICE:
                return device
        raise Failure(f"There is no device {DEVICE}; hearth devices says why.")

    def bench(self, path, device):
        report = self.output([self.hearth, "bench", path, "--json", "--random-input", 1, "--threads",
                              self.threads, "--repeat", self.repeat, "--device", device])
        return report["inference_ms"]["p50"]

    def start(self, path, cache, host=""):
        """Milliseconds from opening the file to the first result, and whether the cache was used."""
        hosts = {"HEARTH_DRIVER_HOSTS": f"{DEVICE}={host}"} if host else {}
        report = self.output([self.hearth, "run", path, "--json", "--random-input", 1, "--threads",
                              self.threads, "--device", DEVICE, "--cache-dir", cache, "--token", "5a" * 32],
                             **hosts)
        return (report["start"]["prepare_ms"] + report["inference_ms"]["first_result"],
                report["start"]["cache"])

    def serve(self, socket):
        host = subprocess.Popen([self.hearth, "serve", "--device", DEVICE, "--socket", socket],
                                env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + HOST_PATIENCE_S
        while not socket.exists():
            if host.poll() is not None or time.monotonic() > end:
                host.kill()
                host.wait()
                raise Failure("The host does not listen.")
            time.sleep(0.05)
        return host

    def peer(self, python, peer, row, resolution):
        words = [python, HERE / "peer_side.py", peer, row.network, row.number, "--resolution", resolution,
                 "--repeat", self.repeat, "--threads", self.threads]
        return self.output(words)["ms"]


def starts(programs, path):
    """(what, milliseconds, note) of starts of one file."""
    found = []
    for place in ("in the program", "host running"):
        cache = programs.folder / f"cache {place}"
        cache.mkdir()
        host, socket = None, ""
        try:
            if place == "host running":
                socket = programs.folder / "gpu.sock"
                host = programs.serve(socket)
            cold, _ = programs.start(path, cache, socket)
            found.append((f"cold, {place}", cold, ""))
            warm = [programs.start(path, cache, socket) for _ in range(3)]
            found.append((f"warm, {place}", statistics.median(each[0] for each in warm),
                          f"compilation cache: {warm[-1][1]}"))
        except Failure as failure:
            found.append((place, None, str(failure)))
        finally:
            if host is not None:
                host.terminate()
                host.wait()
    return found


def measure(programs, arguments, folder):
    rows, files = [], {}
    for network, make in NETWORKS.items():
        graph = make(resolution=arguments.resolution)
        for number, converted in (("float32", graph), ("float16", toFloat16(graph))):
            row = Row(network, number)
            files[row.name] = Path(folder) / f"{network}_{number}.tflite"
            tflite_writer.write(converted, files[row.name])
            rows.append(row)
    for row in rows:
        say(row.name)
        sides = [DEVICE, CPU, *arguments.peers]

        def take(side, _, row=row):
            if side in arguments.peers:
                row.add(side, programs.peer(arguments.python or sys.executable, side, row,
                                            arguments.resolution))
            else:
                row.add(side, programs.bench(files[row.name], side))

        orders = [sides if number % 2 == 0 else sides[::-1] for number in range(arguments.rounds)]
        row.failures = comparison.takeTurns(orders, take, row.name)
    return rows, files


def markdown(about, rows, started, products, arguments):
    sides = [DEVICE, CPU, *arguments.peers]
    lines = ["## A GPU", "",
             "Written by `bench/gpu/compare.py`: medians over the rounds of the median of an inference in "
             "milliseconds, with their range. Limits are those for an H100.", "",
             *(f"- {name}: {value}" for name, value in about), "",
             "| network | " + " | ".join(sides) + " | limit |", "|---" * (len(sides) + 2) + "|"]
    for row in rows:
        limit = LIMITS.get((row.network, row.number), "–")
        lines.append(f"| {row.name} | " + " | ".join(row.cell(side) for side in sides) + f" | {limit} |")
    lines += ["", "| start of mobilenet_v2 float32, to the first result | ms | limit | |", "|---|---|---|---|"]
    for what, milliseconds, note in started:
        limit = {"warm, host running": MOST_WARM_MS, "cold, in the program": MOST_COLD_MS}.get(what, "–")
        shown = "–" if milliseconds is None else f"{milliseconds:.3g}"
        lines.append(f"| {what} | {shown} | {limit} | {note} |")
    lines += ["", "| | value | limit |", "|---|---|---|"]
    if isinstance(products, Failure):
        lines.append(f"| products and fenced executions | {products} | – |")
    else:
        operations = 2 * products["size"] ** 3
        for number, limit in (("float16", f"≥ {LEAST_TERAFLOPS}"), ("float32", "–")):
            rate = operations / products[f"{number}_product_s"] / 1e12 if products[f"{number}_product_s"] > 0 else 0
            lines.append(f"| product of {products['size']}³, {number}, TFLOP/s | {rate:.3g} | {limit} |")
        lines += [f"| processor time of a fenced execution, µs | {products['fenced_processor_us']:.3g} | "
                  f"≤ {MOST_FENCED_US} |",
                  f"| time of a fenced execution, µs | {products['fenced_wall_us']:.3g} | – |"]
    failures = [f"- {row.name}, {side}: {sentence}" for row in rows for side, sentence in row.failures.items()]
    if failures:
        lines += ["", "Not measured:", "", *failures]
    return "\n".join(lines) + "\n"


def parseArguments(words):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--drivers", type=Path, help="folder of manifests; default: the installed ones")
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=list(PEERS))
    parser.add_argument("--resolution", type=int, default=224)
    parser.add_argument("--size", type=int, default=4096, help="of the matrices; default: 4096")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3, help="default: 3")
    parser.add_argument("--repeat", type=int, default=100, help="inferences in each round; default: 100")
    comparison.addPrograms(parser)
    comparison.addReports(parser)
    arguments = parser.parse_args(words)
    comparison.requirePositive(parser, rounds=arguments.rounds, repeat=arguments.repeat, size=arguments.size,
                               threads=arguments.threads, resolution=arguments.resolution)
    return arguments


def main(words=None):
    arguments = parseArguments(words)
    try:
        with tempfile.TemporaryDirectory(prefix="hearth-gpu-") as folder:
            programs = Programs(arguments, folder)
            device = programs.device()
            say(device["version"])
            rows, files = measure(programs, arguments, folder)
            say("starts")
            started = starts(programs, files["mobilenet_v2 float32"])
            say("products and fences")
            try:
                products = programs.output([programs.gpuBench, DEVICE, arguments.size])
            except Failure as failure:
                products = failure
    except Failure as failure:
        say(f"compare.py: {failure}")
        return 1
    about = [("device", device["version"]),
             *comparison.facts((), threads=arguments.threads, rounds=arguments.rounds,
                               repeat=arguments.repeat, resolution=arguments.resolution)]
    comparison.writeText(arguments.output, markdown(about, rows, started, products, arguments))
    comparison.writeJson(arguments.json, about, rows)
    return 0 if all(DEVICE in row.samples for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
