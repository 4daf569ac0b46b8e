# SPDX-License-Identifier: Apache-2.0
"""A network in memory: tensors, operators, inputs and outputs."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import tflite_schema as schema


class LazyArray:
    """A constant that is made when it is needed, so that a large file is written layer by layer.

    `make` takes no argument and returns the same array at every call.
    """

    def __init__(self, shape, dtype, make):
        self.shape = tuple(shape)
        self.dtype = np.dtype(dtype)
        self.nbytes = int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize
        self._make = make

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self._make(), dtype)


@dataclass
class Quantization:
    """real = scale * (stored - zero_point); more than one scale: one per index of `axis`."""

    scale: np.ndarray
    zero_point: np.ndarray
    axis: int = 0

    @staticmethod
    def perTensor(scale, zeroPoint=0):
        return Quantization(np.array([scale], np.float32), np.array([zeroPoint], np.int64))

    def broadcast(self, rank):
        """(scale, zero_point) shaped so that they broadcast against a tensor of this rank."""
        if len(self.scale) == 1:
            return self.scale[0], self.zero_point[0]
        shape = [1] * rank
        shape[self.axis] = -1
        return self.scale.reshape(shape), self.zero_point.reshape(shape)

    def quantize(self, real, dtype):
        scale, zeroPoint = self.broadcast(np.ndim(real))
        limits = np.iinfo(dtype)
        return np.clip(np.rint(real / scale) + zeroPoint, limits.min, limits.max).astype(dtype)

    def dequantize(self, stored):
        scale, zeroPoint = self.broadcast(np.ndim(stored))
        return ((stored.astype(np.float64) - zeroPoint) * scale).astype(np.float32)


@dataclass
class Tensor:
    name: str
    shape: tuple
    dtype: np.dtype
    data: Any = None  # ndarray or LazyArray for constants
    quantization: Quantization | None = None


@dataclass
class Operator:
    kind: str
    inputs: list
    outputs: list
    options: dict = field(default_factory=dict)


class Graph:
    """Tensors are named by their index; operators are in execution order.

    The methods that add an operator return the index of its output and infer its shape.
    """

    def __init__(self, name):
        self.name = name
        self.tensors = []
        self.operators = []
        self.inputs = []
        self.outputs = []

    def shape(self, index):
        return self.tensors[index].shape

    def addTensor(self, name, shape, dtype=np.float32, data=None, quantization=None):
        shape = tuple(int(extent) for extent in shape)
        self.tensors.append(Tensor(name, shape, np.dtype(dtype), data, quantization))
        return len(self.tensors) - 1

    def addInput(self, name, shape):
        self.inputs.append(self.addTensor(name, shape))
        return self.inputs[-1]

    def addConstant(self, name, data):
        return self.addTensor(name, data.shape, data.dtype, data)

    def addOperator(self, kind, name, inputs, shape, **options):
        output = self.addTensor(name, shape)
        self.operators.append(Operator(kind, list(inputs), [output], options))
        return output

    def pad(self, name, x, before, after):
        """Zeros around height and width."""
        n, h, w, c = self.shape(x)
        margins = [[0, 0], [before, after], [before, after], [0, 0]]
        amounts = self.addConstant(name + "/paddings", np.array(margins, np.int32))
        extra = before + after
        return self.addOperator("PAD", name, [x, amounts], (n, h + extra, w + extra, c))

    def _window(self, x, kernel, stride, padding):
        n, h, w, _ = self.shape(x)
        if padding == schema.PADDING_SAME:
            return n, -(-h // stride), -(-w // stride)
        return n, (h - kernel) // stride + 1, (w - kernel) // stride + 1

    def conv(self, name, x, weights, bias, stride=1, padding=schema.PADDING_SAME, activation=0):
        """`weights` is [out, k, k, in]."""
        extent = self._window(x, weights.shape[1], stride, padding)
        inputs = [x, self.addConstant(name + "/weights", weights),
                  self.addConstant(name + "/bias", bias)]
        return self.addOperator("CONV_2D", name, inputs, (*extent, weights.shape[0]),
                                padding=padding, stride_w=stride, stride_h=stride,
                                activation=activation)

    def depthwiseConv(self, name, x, weights, bias, stride=1, padding=schema.PADDING_SAME,
                      activation=0):
        """`weights` is [1, k, k, channels]."""
        extent = self._window(x, weights.shape[1], stride, padding)
        inputs = [x, self.addConstant(name + "/weights", weights),
                  self.addConstant(name + "/bias", bias)]
        return self.addOperator("DEPTHWISE_CONV_2D", name, inputs, (*extent, weights.shape[3]),
                                padding=padding, stride_w=stride, stride_h=stride,
                                depth_multiplier=1, activation=activation)

    def maxPool(self, name, x, kernel, stride, padding=schema.PADDING_VALID):
        extent = self._window(x, kernel, stride, padding)
        return self.addOperator("MAX_POOL_2D", name, [x], (*extent, self.shape(x)[3]),
                                padding=padding, stride_w=stride, stride_h=stride,
                                filter_w=kernel, filter_h=kernel)

    def add(self, name, a, b, activation=0):
        return self.addOperator("ADD", name, [a, b], self.shape(a), activation=activation)

    def globalMean(self, name, x):
        n, _, _, c = self.shape(x)
        axes = self.addConstant(name + "/axes", np.array([1, 2], np.int32))
        return self.addOperator("MEAN", name, [x, axes], (n, c), keep_dims=False)

    def reshape(self, name, x, shape):
        target = self.addConstant(name + "/shape", np.array(shape, np.int32))
        return self.addOperator("RESHAPE", name, [x, target], shape)

    def fullyConnected(self, name, x, weights, bias, activation=0):
        """`weights` is [out, in]."""
        inputs = [x, self.addConstant(name + "/weights", weights),
                  self.addConstant(name + "/bias", bias)]
        return self.addOperator("FULLY_CONNECTED", name, inputs,
                                (self.shape(x)[0], weights.shape[0]), activation=activation)

    def softmax(self, name, x):
        return self.addOperator("SOFTMAX", name, [x], self.shape(x), beta=1.0)
