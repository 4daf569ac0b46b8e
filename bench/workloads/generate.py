#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes .tflite workloads: the layers of known networks with generated weights.

    generate.py resnet50     OUT --quant f32|i8 [--resolution 224] [--seed 1]
    generate.py mobilenet_v2 OUT --quant f32|i8 [--resolution 224] [--seed 1]
    generate.py mlp          OUT --megabytes 400 [--seed 1]

resnet50 and mobilenet_v2 (width 1.0) have the operators that the TFLite converter makes of the
Keras networks: batch normalisation folded, padding of strided layers as PAD where Keras pads
explicitly, MEAN for the global pooling, and 1000 logits without a soft-max at the end. The input
"image" is [1, resolution, resolution, 3] with values in [-1, 1). Weights are random and scaled so
that activations keep their size through all layers; the networks recognise nothing, but they cost
what the trained ones cost, and their logits depend on the input.

With --quant i8 all tensors are int8: weights with a scale per output channel (one scale for the
fully connected layer), int32 biases, activation scales from a run of the float network in NumPy.

mlp is a stack of fully connected float32 layers of a chosen size, for tests of large models.

The same arguments give the same bytes. Only Python 3 and NumPy are needed; a file takes seconds.
"""

import argparse
import os
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from workloads import networks, quantize, tflite_writer  # noqa: E402


def calibrationSample(shape, seed):
    """Uniform values in [-1, 1), exact multiples of 1/128."""
    generator = np.random.Generator(np.random.SFC64([seed, 0x5A3B1E]))
    pixels = np.frombuffer(generator.bytes(int(np.prod(shape))), np.uint8)
    return (pixels.astype(np.float32) / 128 - 1).reshape(shape)


def build(arguments):
    """The graph that the parsed command line asks for."""
    if arguments.kind == "mlp":
        return networks.mlp(arguments.megabytes, seed=arguments.seed)
    network = {"resnet50": networks.resnet50, "mobilenet_v2": networks.mobilenetV2}[arguments.kind]
    graph = network(resolution=arguments.resolution, seed=arguments.seed)
    if arguments.quant == "i8":
        sample = calibrationSample(graph.shape(graph.inputs[0]), arguments.seed)
        graph = quantize.toInt8(graph, [sample])
    return graph


def writeAtomically(graph, path):
    """Writes beside `path` and renames, so that an interrupted run leaves no half file."""
    partial = Path(f"{path}.{os.getpid()}.partial")
    try:
        size = tflite_writer.write(graph, partial)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return size


def parseArguments(words):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(dest="kind", required=True)
    for kind in ("resnet50", "mobilenet_v2", "mlp"):
        command = kinds.add_parser(kind)
        command.add_argument("out", type=Path, help="the file to write")
        command.add_argument("--seed", type=_atLeast(0), default=1, help="of all random values")
        if kind == "mlp":
            command.add_argument("--megabytes", type=_atLeast(1), default=400,
                                 help="size of the weights in MiB, at most about 2000")
        else:
            command.add_argument("--quant", choices=["f32", "i8"], default="f32")
            command.add_argument("--resolution", type=_atLeast(32), default=224,
                                 help="height and width of the input in pixels")
    return parser.parse_args(words)


def _atLeast(minimum):
    def parse(text):
        value = int(text)
        if value < minimum:
            raise argparse.ArgumentTypeError(f"{value} is less than {minimum}")
        return value
    parse.__name__ = "integer"
    return parse


def main(words=None):
    arguments = parseArguments(words)
    start = time.monotonic()
    try:
        size = writeAtomically(build(arguments), arguments.out)
    except (OSError, ValueError) as error:
        print(f"generate.py: {arguments.out} cannot be written: {error}", file=sys.stderr)
        return 1
    print(f"{arguments.out}: {size / 2**20:.1f} MiB in {time.monotonic() - start:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
