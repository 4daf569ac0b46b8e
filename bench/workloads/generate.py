#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes .tflite workloads: the layers of known networks with generated weights.

    generate.py resnet50     OUT --quant f32|i8 [--resolution 224] [--seed 1]
    generate.py mobilenet_v2 OUT --quant f32|i8 [--resolution 224] [--seed 1]
    generate.py mlp          OUT --megabytes 400 [--any-batch] [--seed 1]
    generate.py gemma_2b|phi_2 OUT --form f32|f16|i8|i4|i4b32 [--layers N] [--composite] [...]
    generate.py text_encoder|unet|image_decoder OUT --form f32|f16|i8 [...]

resnet50 and mobilenet_v2 (width 1.0) have the operators that the TFLite converter makes of the
Keras networks: batch normalisation folded, padding of strided layers as PAD where Keras pads
explicitly, MEAN for the global pooling, and 1000 logits without a soft-max at the end. The input
"image" is [1, resolution, resolution, 3] with values in [-1, 1). Weights are random and scaled so
that activations keep their size through all layers; the networks recognise nothing, but they cost
what the trained ones cost, and their logits depend on the input.

With --quant i8 all tensors are int8: weights with a scale per output channel (one scale for the
fully connected layer), int32 biases, activation scales from a run of the float network in NumPy.

mlp is a stack of fully connected float32 layers of a chosen size, for tests of large models.

gemma_2b and phi_2 are language models with the signatures `prefill` and `decode`, which share their
weights; their sizes are parameters, and the defaults are the real ones (2.5 GB of int8 for
Gemma 2B). text_encoder, unet and image_decoder are the networks of Stable Diffusion 1. --form is
how matrices are stored: float32, float16, int8 or int4 with a scale for each row, or int4 with a
scale for each run of 32 elements; norms and biases are float32. Large constants lie behind the
FlatBuffer, as converters put them there, except with --inline. With --composite norms and attention
are composite operators. check.py compares what Hearth computes with NumPy.

The same arguments give the same bytes. Only Python 3 and NumPy are needed; a small file takes
seconds, 2.5 GB half a minute.
"""

import argparse
import dataclasses
import os
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from workloads import diffusion, networks, quantize, stored_weights  # noqa: E402
from workloads import tflite_writer, transformer  # noqa: E402

LANGUAGE_MODELS = {"gemma_2b": transformer.GEMMA_2B, "phi_2": transformer.PHI_2}
# Sizes of a transformer.Shape that are options of the command.
SHAPE_SIZES = {"layers": "layers", "hidden": "hidden", "feed_forward": "feedForward",
               "heads": "heads", "groups": "groups", "head_size": "headSize",
               "vocabulary": "vocabulary"}
DIFFUSION = {"text_encoder": diffusion.textEncoder, "unet": diffusion.unet,
             "image_decoder": diffusion.imageDecoder}
# Their sizes, with the real ones as defaults.
DIFFUSION_SIZES = {
    "text_encoder": {"depth": 12, "width": 768, "heads": 12, "vocabulary": 49408},
    "unet": {"latent": 64, "channels": 320, "levels": 4, "blocks": 2, "heads": 8, "groups": 32},
    "image_decoder": {"latent": 64, "channels": 128, "groups": 32},
}


def calibrationSample(shape, seed):
    """Uniform values in [-1, 1), exact multiples of 1/128."""
    generator = np.random.Generator(np.random.SFC64([seed, 0x5A3B1E]))
    pixels = np.frombuffer(generator.bytes(int(np.prod(shape))), np.uint8)
    return (pixels.astype(np.float32) / 128 - 1).reshape(shape)


def build(arguments):
    """The graph or model that the parsed command line asks for."""
    if arguments.kind in LANGUAGE_MODELS:
        sizes = {field: getattr(arguments, name) for name, field in SHAPE_SIZES.items()
                 if getattr(arguments, name) is not None}
        shape = dataclasses.replace(LANGUAGE_MODELS[arguments.kind], **sizes)
        return transformer.languageModel(arguments.kind, shape, arguments.form, arguments.prefill,
                                         arguments.cache, arguments.composite, arguments.seed)
    if arguments.kind in DIFFUSION:
        sizes = {name: getattr(arguments, name) for name in DIFFUSION_SIZES[arguments.kind]}
        return DIFFUSION[arguments.kind](arguments.form, isComposite=arguments.composite,
                                         seed=arguments.seed, **sizes)
    if arguments.kind == "mlp":
        return networks.mlp(arguments.megabytes, seed=arguments.seed,
                            hasAnyBatch=arguments.any_batch)
    network = {"resnet50": networks.resnet50, "mobilenet_v2": networks.mobilenetV2}[arguments.kind]
    graph = network(resolution=arguments.resolution, seed=arguments.seed)
    if arguments.quant == "i8":
        sample = calibrationSample(graph.shape(graph.inputs[0]), arguments.seed)
        graph = quantize.toInt8(graph, [sample])
    return graph


def writeAtomically(graph, path, isInline=True):
    """Writes beside `path` and renames, so that an interrupted run leaves no half file."""
    partial = Path(f"{path}.{os.getpid()}.partial")
    try:
        size = tflite_writer.write(graph, partial, isInline)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return size


def parseArguments(words):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(dest="kind", required=True)
    for kind in ("resnet50", "mobilenet_v2", "mlp", *LANGUAGE_MODELS, *DIFFUSION):
        command = kinds.add_parser(kind)
        command.add_argument("out", type=Path, help="the file to write")
        command.add_argument("--seed", type=_atLeast(0), default=1, help="of all random values")
        if kind == "mlp":
            command.add_argument("--megabytes", type=_atLeast(1), default=400,
                                 help="size of the weights in MiB, at most about 2000")
            command.add_argument("--any-batch", action="store_true",
                                 help="the number of rows is unknown, 1 by default")
        elif kind in LANGUAGE_MODELS or kind in DIFFUSION:
            _addTransformerOptions(command, kind)
        else:
            command.add_argument("--quant", choices=["f32", "i8"], default="f32")
            command.add_argument("--resolution", type=_atLeast(32), default=224,
                                 help="height and width of the input in pixels")
    return parser.parse_args(words)


def _addTransformerOptions(command, kind):
    command.add_argument("--form", choices=stored_weights.FORMS, default="f32",
                         help="how matrices are stored")
    command.add_argument("--composite", action="store_true",
                         help="norms and attention as composite operators")
    command.add_argument("--inline", action="store_true",
                         help="all constants inside the FlatBuffer")
    if kind in DIFFUSION:
        for name, default in DIFFUSION_SIZES[kind].items():
            command.add_argument("--" + name, type=_atLeast(1), default=default)
        return
    command.add_argument("--prefill", type=_atLeast(2), default=128,
                         help="tokens of the signature prefill")
    command.add_argument("--cache", type=_atLeast(2), default=512,
                         help="entries of the key-value cache")
    for name in SHAPE_SIZES:
        command.add_argument("--" + name.replace("_", "-"), type=_atLeast(1))


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
        size = writeAtomically(build(arguments), arguments.out,
                               getattr(arguments, "inline", True))
    except (OSError, ValueError) as error:
        print(f"generate.py: {arguments.out} cannot be written: {error}", file=sys.stderr)
        return 1
    print(f"{arguments.out}: {size / 2**20:.1f} MiB in {time.monotonic() - start:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
