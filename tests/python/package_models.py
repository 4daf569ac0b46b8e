# SPDX-License-Identifier: Apache-2.0
"""What the tests of the Python package run: the package of the build, the model of digits, and a slower model."""

import pathlib
import sys

import numpy as np
from PIL import Image

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "release"
sys.path[:0] = [str(BUILD / "python"), str(ROOT / "bench")]

from workloads import tflite_writer  # noqa: E402
from workloads.graph import Graph  # noqa: E402

DIGITS = ROOT / "models" / "digits" / "digits.tflite"


def picture(digit):
    image = Image.open(DIGITS.parent / "samples" / f"digit_{digit}.png").convert("L")
    return np.asarray(image, np.float32).reshape(1, 28, 28, 1) / 127.5 - 1


def writeSlowModel(path):
    """A model of [1, 2048] that takes some milliseconds; its output "y" is its input."""
    graph = Graph("slow")
    x = graph.addInput("x", (1, 2048))
    weights = np.eye(2048, dtype=np.float32)
    for layer in range(6):
        x = graph.fullyConnected(f"layer{layer}" if layer < 5 else "y", x, weights,
                                 np.zeros(2048, np.float32), 0)
    graph.outputs = [x]
    graph.tensors[x].name = "y"
    tflite_writer.write(graph, path)
