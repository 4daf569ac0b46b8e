# SPDX-License-Identifier: Apache-2.0
"""Writes a graph.Graph as a .tflite file, one constant at a time."""

import numpy as np

from . import tflite_schema as schema
from .flatbuffer import Blob, Scalar, String, Table, TableVector, Vector, encode


def write(graph, path):
    """Writes `graph` to `path` and returns the size in bytes.

    The bytes depend on the graph alone. Raises ValueError when the file would pass 2 GB, the end
    of what references inside a FlatBuffer reach.
    """
    constants = [tensor.data for tensor in graph.tensors if tensor.data is not None]
    head, places = encode(_model(graph), schema.FILE_IDENTIFIER, schema.BUFFER_ALIGNMENT)
    with open(path, "wb") as file:
        file.write(head)
        for number, position in places:
            data = constants[number - 1]
            file.write(bytes(position - 4 - file.tell()))
            file.write(np.array([data.nbytes], "<u4").tobytes())
            array = np.asarray(data)
            file.write(array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes())
        return file.tell()


def _model(graph):
    isInteger = graph.tensors[graph.inputs[0]].quantization is not None
    kinds = sorted({operator.kind for operator in graph.operators})
    # Buffer 0 is by convention the empty one, used by all tensors without data.
    buffers = [Table({})]
    numbers = []
    for tensor in graph.tensors:
        if tensor.data is None:
            numbers.append(0)
        else:
            numbers.append(len(buffers))
            buffers.append(Table({schema.BUFFER_DATA: Blob(len(buffers), tensor.data.nbytes)}))
    subgraph = Table({
        schema.SUBGRAPH_TENSORS: TableVector(
            [_tensor(tensor, number) for tensor, number in zip(graph.tensors, numbers)]),
        schema.SUBGRAPH_INPUTS: Vector(np.int32, graph.inputs),
        schema.SUBGRAPH_OUTPUTS: Vector(np.int32, graph.outputs),
        schema.SUBGRAPH_OPERATORS: TableVector(
            [_operator(operator, kinds) for operator in graph.operators]),
        schema.SUBGRAPH_NAME: String("main"),
    })
    signature = Table({
        schema.SIGNATURE_INPUTS: _tensorMap(graph, graph.inputs),
        schema.SIGNATURE_OUTPUTS: _tensorMap(graph, graph.outputs),
        schema.SIGNATURE_KEY: String("serving_default"),
        schema.SIGNATURE_SUBGRAPH: Scalar("I", 0),
    })
    return Table({
        schema.MODEL_VERSION: Scalar("I", schema.SCHEMA_VERSION),
        schema.MODEL_OPERATOR_CODES: TableVector([_operatorCode(k, isInteger) for k in kinds]),
        schema.MODEL_SUBGRAPHS: TableVector([subgraph]),
        schema.MODEL_DESCRIPTION: String(graph.name),
        schema.MODEL_BUFFERS: TableVector(buffers),
        schema.MODEL_SIGNATURE_DEFS: TableVector([signature]),
    })


def _tensor(tensor, buffer):
    quantization = None
    if tensor.quantization is not None:
        quantization = Table({
            schema.QUANTIZATION_SCALE: Vector(np.float32, tensor.quantization.scale),
            schema.QUANTIZATION_ZERO_POINT: Vector(np.int64, tensor.quantization.zero_point),
            schema.QUANTIZATION_DIMENSION: Scalar("i", tensor.quantization.axis),
        })
    return Table({
        schema.TENSOR_SHAPE: Vector(np.int32, tensor.shape),
        schema.TENSOR_TYPE: Scalar("b", schema.TYPE_CODES[tensor.dtype]),
        schema.TENSOR_BUFFER: Scalar("I", buffer),
        schema.TENSOR_NAME: String(tensor.name),
        schema.TENSOR_QUANTIZATION: quantization,
        schema.TENSOR_HAS_RANK: Scalar("?", True),
    })


def _operatorCode(kind, isInteger):
    entry = schema.OPERATORS[kind]
    version = entry.int8Version if isInteger else entry.floatVersion
    return Table({
        # The old one-byte field holds the code too, as far as it fits.
        schema.OPERATOR_CODE_DEPRECATED: Scalar("b", min(entry.code, 127)),
        schema.OPERATOR_CODE_VERSION: Scalar("i", version),
        schema.OPERATOR_CODE_BUILTIN: Scalar("i", entry.code),
    })


def _operator(operator, kinds):
    entry = schema.OPERATORS[operator.kind]
    unknown = set(operator.options) - {name for name, _, _ in entry.fields}
    assert not unknown, (operator.kind, unknown)
    options = {slot: Scalar(format, operator.options.get(name, default))
               for slot, (name, format, default) in enumerate(entry.fields)}
    return Table({
        schema.OPERATOR_OPCODE_INDEX: Scalar("I", kinds.index(operator.kind)),
        schema.OPERATOR_INPUTS: Vector(np.int32, operator.inputs),
        schema.OPERATOR_OUTPUTS: Vector(np.int32, operator.outputs),
        schema.OPERATOR_OPTIONS_TYPE: Scalar("B", entry.union),
        schema.OPERATOR_OPTIONS: Table(options),
    })


def _tensorMap(graph, indices):
    return TableVector([Table({schema.TENSOR_MAP_NAME: String(graph.tensors[index].name),
                               schema.TENSOR_MAP_INDEX: Scalar("I", index)})
                        for index in indices])
