# SPDX-License-Identifier: Apache-2.0
"""Copies of models with another value in a few fields: a file that is whole, but whose shapes, types,
tensors, scales or options may not fit each other. Programs that check offsets first get farther with
these than with copies whose bytes are damaged anywhere."""

import pathlib
import struct
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))

from workloads import tflite_schema as schema  # noqa: E402
from workloads.tflite_reader import TableView  # noqa: E402

TELLING_NUMBERS = (-0x80000000, -129, -128, -2, -1, 0, 1, 2, 3, 4, 5, 7, 8, 16, 127, 128, 255, 256,
                   65535, 65536, 0x7FFFFFFF)
TELLING_SCALES = (0.0, -1.0, 1e-30, 1e-4, 0.5, 1.0, 256.0, 1e30, float("inf"), float("nan"))


class _Field:
    """A number of `format` at `position`; a reference to one of `count` things, if that is given."""

    def __init__(self, position, format, count=None):
        self.position = position
        self.format = "<" + format
        self.count = count

    def edit(self, rng, data):
        if self.format == "<f":
            struct.pack_into(self.format, data, self.position, rng.choice(TELLING_SCALES))
            return
        if self.count and rng.random() < 0.8:
            value = rng.randrange(self.count)
        elif rng.random() < 0.5:
            value = struct.unpack_from(self.format, data, self.position)[0] + rng.choice((-1, 1))
        else:
            value = rng.choice(TELLING_NUMBERS)
        bits = 8 * struct.calcsize(self.format)
        struct.pack_into(self.format.upper(), data, self.position, value & ((1 << bits) - 1))


def _scalar(table, slot, format, count=None):
    position = table.fieldPosition(slot)
    return [] if position is None else [_Field(position, format, count)]


def _elements(table, slot, format, count=None):
    position = table.fieldPosition(slot)
    if position is None:
        return []
    start = position + struct.unpack_from("<I", table.data, position)[0]
    length = struct.unpack_from("<I", table.data, start)[0]
    size = struct.calcsize(format)
    return [_Field(start + 4 + size * number, format, count) for number in range(length)]


def _inlineFields(table):
    """Whatever a table of options holds itself, offsets of vectors among it."""
    vtable = table.position - struct.unpack_from("<i", table.data, table.position)[0]
    vtableSize, tableSize = struct.unpack_from("<HH", table.data, vtable)
    offsets = sorted(set(struct.unpack_from(f"<{vtableSize // 2 - 2}H", table.data, vtable + 4)) - {0})
    fields = []
    for offset, end in zip(offsets, offsets[1:] + [tableSize]):
        fields.append(_Field(table.position + offset, "i" if end - offset >= 4 else "b"))
    return fields


def _kinds(data):
    """Lists of fields, each of one kind."""
    model = TableView.root(data)
    codes = model.tables(schema.MODEL_OPERATOR_CODES)
    buffers = [len(buffer.vector(schema.BUFFER_DATA, np.uint8))
               for buffer in model.tables(schema.MODEL_BUFFERS)]
    kinds = {}
    add = lambda kind, fields: kinds.setdefault(kind, []).extend(fields)
    for code in codes:
        add("code", _scalar(code, schema.OPERATOR_CODE_BUILTIN, "i"))
        add("version", _scalar(code, schema.OPERATOR_CODE_VERSION, "i"))
    for graph in model.tables(schema.MODEL_SUBGRAPHS):
        tensors = graph.tables(schema.SUBGRAPH_TENSORS)
        for tensor in tensors:
            add("shape", _elements(tensor, schema.TENSOR_SHAPE, "i"))
            add("type", _scalar(tensor, schema.TENSOR_TYPE, "b", max(schema.TYPES) + 1))
            # An input of the graph with a constant would be written to where the file is.
            if buffers[tensor.scalar(schema.TENSOR_BUFFER, "I", 0)]:
                add("buffer", _scalar(tensor, schema.TENSOR_BUFFER, "i", len(buffers)))
            add("variable", _scalar(tensor, schema.TENSOR_IS_VARIABLE, "b", 2))
            quantization = tensor.table(schema.TENSOR_QUANTIZATION)
            if quantization is not None:
                add("scale", _elements(quantization, schema.QUANTIZATION_SCALE, "f"))
                add("zero point", _elements(quantization, schema.QUANTIZATION_ZERO_POINT, "q"))
                add("dimension", _scalar(quantization, schema.QUANTIZATION_DIMENSION, "i", 5))
        count = len(tensors)
        for slot in (schema.SUBGRAPH_INPUTS, schema.SUBGRAPH_OUTPUTS):
            add("end", _elements(graph, slot, "i", count))
        for operator in graph.tables(schema.SUBGRAPH_OPERATORS):
            add("operator", _scalar(operator, schema.OPERATOR_OPCODE_INDEX, "i", len(codes)))
            for slot in (schema.OPERATOR_INPUTS, schema.OPERATOR_OUTPUTS):
                add("operand", _elements(operator, slot, "i", count))
            options = operator.table(schema.OPERATOR_OPTIONS)
            if options is not None:
                add("option", _inlineFields(options))
    return [fields for fields in kinds.values() if fields]


def edited(rng, original):
    """The copy that the random numbers choose."""
    data = bytearray(original)
    kinds = _kinds(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        rng.choice(rng.choice(kinds)).edit(rng, data)
    return bytes(data)
