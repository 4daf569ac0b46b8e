# SPDX-License-Identifier: Apache-2.0
"""Runs a model from Python and prints the median milliseconds of a run as JSON: with new arrays for
the outputs (`new`), and with the caller's (`given`).

usage: python_run.py MODEL RUNS
"""

import json
import statistics
import sys
import time

import hearth


def median(run, count):
    times = []
    for _ in range(count):
        start = time.perf_counter_ns()
        run()
        times.append(time.perf_counter_ns() - start)
    return statistics.median(times) / 1e6


def main():
    path, count = sys.argv[1], int(sys.argv[2])
    compiled = hearth.Model(path).compile(threads=1)
    inputs = {tensor.name: tensor.empty() for tensor in compiled.inputs}
    for array in inputs.values():
        array[...] = 0
    outputs = {tensor.name: tensor.empty() for tensor in compiled.outputs}
    execution = compiled.create_execution()
    print(json.dumps({"new": median(lambda: execution.run(inputs), count),
                      "given": median(lambda: execution.run(inputs, outputs=outputs), count)}))


if __name__ == "__main__":
    main()
