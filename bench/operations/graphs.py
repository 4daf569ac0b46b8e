# SPDX-License-Identifier: Apache-2.0
"""Networks of one operator: its tensors, and the graph around it."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from workloads.graph import Graph, Operator, Quantization


@dataclass
class Value:
    """A tensor of the operator: an argument of the network, or a constant with `data`."""

    shape: tuple
    dtype: Any
    scale: float = 0.0
    zeroPoint: int = 0
    data: Any = None
    isVariable: bool = False
    scales: Any = None  # scales for each channel of dimension `axis`, instead of one scale
    axis: int = 0

    @property
    def quantization(self):
        if self.scales is not None:
            zeros = np.zeros(len(self.scales), np.int64)
            return Quantization(np.asarray(self.scales, np.float32), zeros, self.axis)
        return Quantization.perTensor(self.scale, self.zeroPoint) if self.scale else None


def f32(*shape):
    return Value(shape, np.float32)


def i32(*shape):
    return Value(shape, np.int32)


def i64(*shape):
    return Value(shape, np.int64)


def boolean(*shape):
    return Value(shape, np.bool_)


def i8(*shape, scale=1 / 64, zeroPoint=3):
    return Value(shape, np.int8, scale, zeroPoint)


def u8(*shape, scale=1 / 64, zeroPoint=131):
    return Value(shape, np.uint8, scale, zeroPoint)


def i16(*shape, scale=1 / 4096):
    return Value(shape, np.int16, scale, 0)


def state(value):
    value.isVariable = True
    return value


def constant(data, scale=0.0, zeroPoint=0, **others):
    data = np.asarray(data)
    return Value(data.shape, data.dtype, scale, zeroPoint, data, **others)


def ints(*values):
    return constant(np.array(values, np.int32))


def weights(*shape, dtype=np.float32, scale=0.0, zeroPoint=0, **others):
    """Constants that are the same in each run."""
    generator = np.random.default_rng(1)
    if np.dtype(dtype).kind == "f":
        data = generator.uniform(-0.5, 0.5, shape).astype(dtype)
    else:
        data = generator.integers(-100, 101, shape).astype(dtype)
    return constant(data, scale, zeroPoint, **others)


def indices(highest, *shape):
    """Random places in [0, highest)."""
    return constant(np.random.default_rng(1).integers(0, highest, shape).astype(np.int32))


def network(kind, inputs, outputs, **options):
    """A graph of one operator; None is an omitted argument."""
    graph = Graph(kind.lower())
    tensors = []
    for number, value in enumerate(inputs):
        if value is None:
            tensors.append(-1)
            continue
        tensors.append(add(graph, f"input_{number}", value))
        if value.data is None and not value.isVariable:
            graph.inputs.append(tensors[-1])
    graph.outputs = [add(graph, f"output_{number}", value)
                     for number, value in enumerate(outputs)]
    graph.operators.append(Operator(kind, tensors, list(graph.outputs), options))
    return graph


def add(graph, name, value):
    index = graph.addTensor(name, value.shape, value.dtype, value.data, value.quantization)
    graph.tensors[index].isVariable = value.isVariable
    return index
