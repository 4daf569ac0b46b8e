# SPDX-License-Identifier: Apache-2.0
"""A network in memory: tensors, operators, inputs and outputs; models of several networks."""

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


class PackedArray(LazyArray):
    """A LazyArray of INT4; `make` returns the pairs as a one-dimensional array of uint8."""

    def __init__(self, shape, make):
        super().__init__(shape, schema.INT4, make)
        self.nbytes = (self.nbytes + 1) // 2


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
        # Some converters give a bias the axis of the weights.
        shape[self.axis if rank > 1 else 0] = -1
        return self.scale.reshape(shape), self.zero_point.reshape(shape)

    def quantize(self, real, dtype):
        scale, zeroPoint = self.broadcast(np.ndim(real))
        limits = np.iinfo(dtype)
        return np.clip(np.rint(real / scale) + zeroPoint, limits.min, limits.max).astype(dtype)

    def dequantize(self, stored):
        scale, zeroPoint = self.broadcast(np.ndim(stored))
        if stored.dtype == np.int8:
            # Exact in float32 up to the last product, and half the memory.
            return (stored.astype(np.float32) - np.float32(zeroPoint)) * np.float32(scale)
        return ((stored.astype(np.float64) - zeroPoint) * scale).astype(np.float32)


@dataclass
class BlockQuantization:
    """INT4 without zero points; tensor `scales` of the same graph, [rows, blocks], has a scale for
    each run of `blockSize` elements of a row."""

    scales: int
    blockSize: int


@dataclass
class Tensor:
    name: str
    shape: tuple
    dtype: np.dtype
    data: Any = None  # ndarray or LazyArray for constants
    quantization: Quantization | BlockQuantization | None = None
    isVariable: bool = False  # keeps its value between inferences
    hasAnyBatch: bool = False  # the first dimension is unknown; the shape has its default


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

    def addInput(self, name, shape, dtype=np.float32):
        self.inputs.append(self.addTensor(name, shape, dtype))
        return self.inputs[-1]

    def addConstant(self, name, data):
        return self.addTensor(name, data.shape, data.dtype, data)

    def addOperator(self, kind, name, inputs, shape, dtype=np.float32, **options):
        output = self.addTensor(name, shape, dtype)
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
        return self._binary("ADD", name, a, b, activation=activation)

    def subtract(self, name, a, b):
        return self._binary("SUB", name, a, b)

    def multiply(self, name, a, b):
        return self._binary("MUL", name, a, b)

    def _binary(self, kind, name, a, b, **options):
        shape = np.broadcast_shapes(self.shape(a), self.shape(b))
        return self.addOperator(kind, name, [a, b], shape, self.tensors[a].dtype, **options)

    def unary(self, kind, name, x, **options):
        """An operator on each element."""
        return self.addOperator(kind, name, [x], self.shape(x), **options)

    def mean(self, name, x, axes):
        """The dimensions stay, with one element."""
        kept = [1 if axis in axes else extent for axis, extent in enumerate(self.shape(x))]
        indices = self.addConstant(name + "/axes", np.array(axes, np.int32))
        return self.addOperator("MEAN", name, [x, indices], kept, keep_dims=True)

    def slice(self, name, x, begin, size):
        limits = [self.addConstant(f"{name}/{role}", np.array(values, np.int32))
                  for role, values in (("begin", begin), ("size", size))]
        return self.addOperator("SLICE", name, [x, *limits], size, self.tensors[x].dtype)

    def concatenate(self, name, parts, axis):
        shape = list(self.shape(parts[0]))
        shape[axis] = sum(self.shape(part)[axis] for part in parts)
        return self.addOperator("CONCATENATION", name, parts, shape, axis=axis)

    def transpose(self, name, x, order):
        permutation = self.addConstant(name + "/order", np.array(order, np.int32))
        return self.addOperator("TRANSPOSE", name, [x, permutation],
                                [self.shape(x)[axis] for axis in order])

    def batchMatmul(self, name, a, b, isTransposed=False):
        """a @ b, or a @ b^T."""
        shape = np.broadcast_shapes(self.shape(a)[:-2], self.shape(b)[:-2])
        columns = self.shape(b)[-2 if isTransposed else -1]
        return self.addOperator("BATCH_MATMUL", name, [a, b],
                                (*shape, self.shape(a)[-2], columns), adj_y=isTransposed)

    def composite(self, name, kind, inputs, attributes, decomposition):
        """STABLEHLO_COMPOSITE `kind`, whose meaning is the graph `decomposition`."""
        [result] = decomposition.outputs
        return self.addOperator("STABLEHLO_COMPOSITE", name, inputs, decomposition.shape(result),
                                composite=kind, attributes=attributes,
                                decomposition=decomposition)

    def globalMean(self, name, x):
        n, _, _, c = self.shape(x)
        axes = self.addConstant(name + "/axes", np.array([1, 2], np.int32))
        return self.addOperator("MEAN", name, [x, axes], (n, c), keep_dims=False)

    def reshape(self, name, x, shape):
        target = self.addConstant(name + "/shape", np.array(shape, np.int32))
        return self.addOperator("RESHAPE", name, [x, target], shape, self.tensors[x].dtype)

    def fullyConnected(self, name, x, weights, bias, activation=0):
        """`weights` is [out, in]."""
        inputs = [x, self.addConstant(name + "/weights", weights),
                  self.addConstant(name + "/bias", bias)]
        return self.addOperator("FULLY_CONNECTED", name, inputs,
                                (self.shape(x)[0], weights.shape[0]), activation=activation)

    def softmax(self, name, x):
        return self.addOperator("SOFTMAX", name, [x], self.shape(x), beta=1.0)


@dataclass
class Signature:
    """An entry point of a model: names of inputs and outputs, and their tensors."""

    key: str
    graph: Graph
    inputs: dict
    outputs: dict


@dataclass
class Model:
    """Constants that are the same object are stored once, whichever graphs use them."""

    name: str
    signatures: list

    @staticmethod
    def of(graph):
        """A model of one graph, whose tensors' names are those of the arguments."""
        def named(indices):
            return {graph.tensors[index].name: index for index in indices}
        return Model(graph.name, [Signature("serving_default", graph, named(graph.inputs),
                                            named(graph.outputs))])

    def signature(self, key):
        [found] = [one for one in self.signatures if one.key == key]
        return found

    def graphs(self):
        """Those of the signatures first, then the decompositions of their composites."""
        graphs = []
        queue = [signature.graph for signature in self.signatures]
        for graph in queue:
            if any(graph is known for known in graphs):
                continue
            graphs.append(graph)
            queue += [operator.options["decomposition"] for operator in graph.operators
                      if operator.kind == "STABLEHLO_COMPOSITE"]
        return graphs
