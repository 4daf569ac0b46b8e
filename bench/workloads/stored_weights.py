# SPDX-License-Identifier: Apache-2.0
"""Weights in the forms in which converters store them.

A `Weight` belongs to a model: each graph that uses it gets a tensor of its own for the same data.
`WeightMaker` makes them: reproducible, and only as long as they are written.
"""

import zlib

import numpy as np

from . import tflite_schema as schema
from .graph import BlockQuantization, LazyArray, PackedArray, Quantization
from .weights import bell

# float32; float16 behind a DEQUANTIZE; int8 and int4 with a scale for each row; int4 with a scale
# for each run of 32 elements of a row.
FORMS = ("f32", "f16", "i8", "i4", "i4b32")
_BLOCK = 32
# Standard deviations of uniform integers from -127 to 127 (with one in 256 of them 0 instead of
# -128), and from -7 to 7 (one in 16 likewise).
_INT8_STD = 73.5
_INT4_STD = 4.18


class Weight:
    def __init__(self, name, data, quantization=None, blockScales=None):
        self.name = name
        self.data = data
        self.quantization = quantization
        self.blockScales = blockScales
        self._tensors = {}

    @property
    def shape(self):
        return self.data.shape

    def tensorIn(self, graph):
        """The tensor by which the layers of `graph` know this weight, made at its first use."""
        if id(graph) not in self._tensors:
            # The graph is kept, so that no other gets its identity.
            self._tensors[id(graph)] = graph, self._addTo(graph)
        return self._tensors[id(graph)][1]

    def _addTo(self, graph):
        quantization = self.quantization
        if self.blockScales is not None:
            scales = graph.addConstant(self.name + "/scales", self.blockScales)
            quantization = BlockQuantization(scales, _BLOCK)
        tensor = graph.addTensor(self.name, self.shape, self.data.dtype, self.data, quantization)
        if self.data.dtype != np.float16:
            return tensor
        return graph.addOperator("DEQUANTIZE", self.name + "/wide", [tensor], self.shape)


class WeightMaker:
    def __init__(self, seed, form):
        self.seed = seed
        self.form = form

    def vector(self, name, size, std, mean=0.0):
        """float32, for norms and biases."""
        return Weight(name, bell(self.seed, name, (size,), std) + np.float32(mean))

    def array(self, name, shape, std):
        """float32 of any shape."""
        return Weight(name, bell(self.seed, name, shape, std))

    def matrix(self, name, shape, std, form=None):
        """A layer's weights, one row (a slice along dimension 0) for each output."""
        form = form or self.form
        if form == "f32":
            return Weight(name, LazyArray(shape, np.float32,
                                          lambda: bell(self.seed, name, shape, std)))
        if form == "f16":
            return Weight(name, LazyArray(
                shape, np.float16, lambda: bell(self.seed, name, shape, std).astype(np.float16)))
        if form == "i8":
            return Weight(name, LazyArray(shape, np.int8, lambda: self._int8(name, shape)),
                          _rowScales(shape[0], std / _INT8_STD))
        packed = PackedArray(shape, lambda: self._int4(name, shape))
        if form == "i4":
            return Weight(name, packed, _rowScales(shape[0], std / _INT4_STD))
        assert form == "i4b32", form
        if len(shape) != 2 or shape[1] % _BLOCK:
            raise ValueError(f"the weights {name} of shape {shape} have no blocks of {_BLOCK}")
        scales = np.outer(_spread(shape[0]), _spread(shape[1] // _BLOCK)) * (std / _INT4_STD)
        return Weight(name, packed, blockScales=scales.astype(np.float16))

    def _bytes(self, name, count):
        stream = np.random.Generator(np.random.SFC64([self.seed, zlib.crc32(name.encode())]))
        return np.frombuffer(stream.bytes(count), np.uint8)

    def _int8(self, name, shape):
        values = self._bytes(name, int(np.prod(shape, dtype=np.int64))).view(np.int8).copy()
        values[values == -128] = 0
        return values.reshape(shape)

    def _int4(self, name, shape):
        pairs = self._bytes(name, (int(np.prod(shape, dtype=np.int64)) + 1) // 2).copy()
        pairs[(pairs & 0x0F) == 0x08] &= 0xF0
        pairs[(pairs & 0xF0) == 0x80] &= 0x0F
        return pairs


def _spread(count):
    """Numbers around 1 that differ, so that a mixed-up scale shows."""
    return 1 + (np.arange(count) * 7 % 16 - 7.5) / 64


def _rowScales(rows, scale):
    return Quantization((_spread(rows) * scale).astype(np.float32), np.zeros(rows, np.int64))


def unpackInt4(pairs, shape):
    """The values of INT4 pairs as int8."""
    pairs = np.asarray(pairs)
    halves = np.stack([pairs & 0x0F, pairs >> 4], -1).reshape(-1).view(np.int8)
    halves = np.where(halves < 8, halves, halves - 16).astype(np.int8)
    return halves[:int(np.prod(shape, dtype=np.int64))].reshape(shape)


def dequantizeRows(tensor, data, scales=None, rows=slice(None)):
    """Rows of a tensor of weights as float32; `scales` are those of blocks."""
    if tensor.dtype == schema.INT4:
        data = unpackInt4(data, tensor.shape)
    values = data[rows]
    if scales is not None:
        wide = np.repeat(np.asarray(scales)[rows].astype(np.float32),
                         tensor.quantization.blockSize, -1)
        return values.astype(np.float32) * wide
    if tensor.quantization is None:
        return values.astype(np.float32, copy=False)
    if len(tensor.quantization.scale) == 1 or tensor.quantization.axis != 0:
        return tensor.quantization.dequantize(values)
    scale = tensor.quantization.scale[rows]
    return values.astype(np.float32) * scale.reshape(-1, *[1] * (values.ndim - 1))
