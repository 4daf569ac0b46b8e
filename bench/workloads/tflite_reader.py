# SPDX-License-Identifier: Apache-2.0
"""Reads a .tflite file: `TableView` for single fields, `read` for a graph.Graph, `readModel` for
all graphs of a file.

It is meant for files that this project made or ships; it does not defend against hostile ones.
"""

import struct

import numpy as np

from . import flexbuffer
from . import tflite_schema as schema
from .graph import (BlockQuantization, Graph, Model, Operator, PackedArray, Quantization,
                    Signature)


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
    return readModel(path).graphs()[0]


def readModel(path):
    """A file with signatures, or one of a single subgraph; constants stay in the file's mapping."""
    data = np.memmap(path, np.uint8, "r").data
    model = TableView.root(data)
    buffers = model.tables(schema.MODEL_BUFFERS)
    # Files of earlier converters have only the first of the two fields.
    codes = [max(table.scalar(schema.OPERATOR_CODE_DEPRECATED, "b", 0),
                 table.scalar(schema.OPERATOR_CODE_BUILTIN, "i", 0))
             for table in model.tables(schema.MODEL_OPERATOR_CODES)]
    tables = model.tables(schema.MODEL_SUBGRAPHS)
    graphs = [Graph(table.string(schema.SUBGRAPH_NAME)) for table in tables]
    graphs[0].name = model.string(schema.MODEL_DESCRIPTION)
    constants = _Constants(data, buffers)
    for graph, table in zip(graphs, tables):
        for tensor in table.tables(schema.SUBGRAPH_TENSORS):
            _readTensor(graph, tensor, constants)
        for operator in table.tables(schema.SUBGRAPH_OPERATORS):
            graph.operators.append(_readOperator(operator, codes, graphs))
        graph.inputs = table.vector(schema.SUBGRAPH_INPUTS, np.int32).tolist()
        graph.outputs = table.vector(schema.SUBGRAPH_OUTPUTS, np.int32).tolist()
    signatures = [
        Signature(table.string(schema.SIGNATURE_KEY),
                  graphs[table.scalar(schema.SIGNATURE_SUBGRAPH, "I", 0)],
                  _readMap(table, schema.SIGNATURE_INPUTS),
                  _readMap(table, schema.SIGNATURE_OUTPUTS))
        for table in model.tables(schema.MODEL_SIGNATURE_DEFS)]
    if not signatures:
        return Model.of(graphs[0])
    return Model(graphs[0].name, signatures)


def _readMap(table, slot):
    return {entry.string(schema.TENSOR_MAP_NAME): entry.scalar(schema.TENSOR_MAP_INDEX, "I", 0)
            for entry in table.tables(slot)}


class _Constants:
    """The arrays of buffers; tensors of one buffer, type and shape get the same object."""

    def __init__(self, data, buffers):
        self._data = data
        self._buffers = buffers
        self._arrays = {}

    def array(self, number, dtype, shape):
        key = number, dtype, tuple(shape)
        if key not in self._arrays:
            self._arrays[key] = self._read(*key)
        return self._arrays[key]

    def _read(self, number, dtype, shape):
        if 0 in shape:
            return np.zeros(shape, dtype)
        buffer = self._buffers[number]
        content = buffer.vector(schema.BUFFER_DATA, np.uint8)
        size = buffer.scalar(schema.BUFFER_SIZE, "Q", 0)
        if not len(content) and size:
            content = np.frombuffer(self._data, np.uint8, size,
                                    buffer.scalar(schema.BUFFER_OFFSET, "Q", 0))
        if not len(content):
            return None
        if dtype == schema.INT4:
            return PackedArray(shape, lambda: content)
        return content.view(dtype.newbyteorder("<")).reshape(shape)


def _readTensor(graph, table, constants):
    shape = table.vector(schema.TENSOR_SHAPE, np.int32)
    dtype = schema.TYPES[table.scalar(schema.TENSOR_TYPE, "b", 0)]
    data = constants.array(table.scalar(schema.TENSOR_BUFFER, "I", 0), dtype, shape)
    graph.addTensor(table.string(schema.TENSOR_NAME), shape, dtype, data, _quantization(table))


def _readOperator(table, codes, graphs):
    kind = schema.OPERATOR_NAMES[codes[table.scalar(schema.OPERATOR_OPCODE_INDEX, "I", 0)]]
    if kind == "STABLEHLO_COMPOSITE":
        source = table.table(schema.OPERATOR_OPTIONS_2)
        options = {
            "composite": source.string(schema.COMPOSITE_NAME),
            "attributes": flexbuffer.decode(source.vector(schema.COMPOSITE_ATTRIBUTES, np.uint8)),
            "decomposition": graphs[source.scalar(schema.COMPOSITE_DECOMPOSITION, "i", 0)],
        }
    else:
        source = table.table(schema.OPERATOR_OPTIONS)
        options = {name: source.scalar(slot, format, default) if source else default
                   for slot, (name, format, default) in enumerate(schema.OPERATORS[kind].fields)}
    return Operator(kind, table.vector(schema.OPERATOR_INPUTS, np.int32).tolist(),
                    table.vector(schema.OPERATOR_OUTPUTS, np.int32).tolist(), options)


def _quantization(tensor):
    table = tensor.table(schema.TENSOR_QUANTIZATION)
    if table is None:
        return None
    if table.scalar(schema.QUANTIZATION_DETAILS_TYPE, "B", 0) == schema.BLOCKWISE:
        details = table.table(schema.QUANTIZATION_DETAILS)
        return BlockQuantization(details.scalar(schema.BLOCKWISE_SCALES, "i", 0),
                                 details.scalar(schema.BLOCKWISE_SIZE, "i", 0))
    scale = table.vector(schema.QUANTIZATION_SCALE, np.float32)
    if not len(scale):
        return None
    return Quantization(scale, table.vector(schema.QUANTIZATION_ZERO_POINT, np.int64),
                        table.scalar(schema.QUANTIZATION_DIMENSION, "i", 0))
