# SPDX-License-Identifier: Apache-2.0
"""Reads a .tflite file: `TableView` for single fields, `read` for a whole graph.Graph.

It is meant for files that this project made or ships; it does not defend against hostile ones.
"""

import struct

import numpy as np

from . import tflite_schema as schema
from .graph import Graph, Operator, Quantization


class TableView:
    """One FlatBuffers table inside `data`."""

    def __init__(self, data, position):
        self.data = data
        self.position = position

    @staticmethod
    def root(data):
        if bytes(data[4:8]) != schema.FILE_IDENTIFIER:
            raise ValueError("the file is no .tflite model: its identifier is "
                             f"{bytes(data[4:8])!r}, not {schema.FILE_IDENTIFIER!r}")
        return TableView(data, struct.unpack_from("<I", data, 0)[0])

    def fieldPosition(self, slot):
        """Where the field's value lies in the file; None when the field is absent."""
        vtable = self.position - struct.unpack_from("<i", self.data, self.position)[0]
        size = struct.unpack_from("<H", self.data, vtable)[0]
        if 4 + 2 * slot >= size:
            return None
        offset = struct.unpack_from("<H", self.data, vtable + 4 + 2 * slot)[0]
        return self.position + offset if offset else None

    def scalar(self, slot, format, default):
        position = self.fieldPosition(slot)
        if position is None:
            return default
        return struct.unpack_from("<" + format, self.data, position)[0]

    def _target(self, slot):
        position = self.fieldPosition(slot)
        if position is None:
            return None
        return position + struct.unpack_from("<I", self.data, position)[0]

    def string(self, slot):
        return self.vector(slot, np.uint8).tobytes().decode()

    def vector(self, slot, dtype):
        """The numbers of a vector; an absent one is empty."""
        target = self._target(slot)
        if target is None:
            return np.zeros(0, dtype)
        count = struct.unpack_from("<I", self.data, target)[0]
        return np.frombuffer(self.data, np.dtype(dtype).newbyteorder("<"), count, target + 4)

    def table(self, slot):
        target = self._target(slot)
        return None if target is None else TableView(self.data, target)

    def tables(self, slot):
        """The tables of a vector of tables."""
        target = self._target(slot)
        if target is None:
            return []
        count = struct.unpack_from("<I", self.data, target)[0]
        slots = range(target + 4, target + 4 + 4 * count, 4)
        return [TableView(self.data, at + struct.unpack_from("<I", self.data, at)[0])
                for at in slots]


def read(path):
    """The first subgraph of a file whose operators are all in tflite_schema.OPERATORS."""
    data = np.fromfile(path, np.uint8).data
    model = TableView.root(data)
    buffers = model.tables(schema.MODEL_BUFFERS)
    subgraph = model.tables(schema.MODEL_SUBGRAPHS)[0]
    graph = Graph(model.string(schema.MODEL_DESCRIPTION))
    for table in subgraph.tables(schema.SUBGRAPH_TENSORS):
        shape = table.vector(schema.TENSOR_SHAPE, np.int32)
        dtype = schema.TYPES[table.scalar(schema.TENSOR_TYPE, "b", 0)]
        content = buffers[table.scalar(schema.TENSOR_BUFFER, "I", 0)].vector(
            schema.BUFFER_DATA, np.uint8)
        constant = None
        if len(content):
            constant = content.view(dtype.newbyteorder("<")).reshape(shape)
        graph.addTensor(table.string(schema.TENSOR_NAME), shape, dtype, constant,
                        _quantization(table))
    codes = [table.scalar(schema.OPERATOR_CODE_BUILTIN, "i", 0)
             for table in model.tables(schema.MODEL_OPERATOR_CODES)]
    for table in subgraph.tables(schema.SUBGRAPH_OPERATORS):
        kind = schema.OPERATOR_NAMES[codes[table.scalar(schema.OPERATOR_OPCODE_INDEX, "I", 0)]]
        options = table.table(schema.OPERATOR_OPTIONS)
        fields = enumerate(schema.OPERATORS[kind].fields)
        graph.operators.append(Operator(
            kind,
            table.vector(schema.OPERATOR_INPUTS, np.int32).tolist(),
            table.vector(schema.OPERATOR_OUTPUTS, np.int32).tolist(),
            {name: options.scalar(slot, format, default)
             for slot, (name, format, default) in fields}))
    graph.inputs = subgraph.vector(schema.SUBGRAPH_INPUTS, np.int32).tolist()
    graph.outputs = subgraph.vector(schema.SUBGRAPH_OUTPUTS, np.int32).tolist()
    return graph


def _quantization(tensor):
    table = tensor.table(schema.TENSOR_QUANTIZATION)
    if table is None:
        return None
    scale = table.vector(schema.QUANTIZATION_SCALE, np.float32)
    if not len(scale):
        return None
    return Quantization(scale, table.vector(schema.QUANTIZATION_ZERO_POINT, np.int64),
                        table.scalar(schema.QUANTIZATION_DIMENSION, "i", 0))
