# SPDX-License-Identifier: Apache-2.0
"""Writes a graph.Model as a .tflite file, one constant at a time."""

import numpy as np

from . import flexbuffer
from . import tflite_schema as schema
from .flatbuffer import Blob, Scalar, String, Table, TableVector, Vector, encode
from .graph import BlockQuantization, Graph, Model

# Constants that lie behind the FlatBuffer are larger than this and aligned to a cache line.
_LARGEST_INLINE = 1024
_OUTSIDE_ALIGNMENT = 64


def write(model, path, isInline=True, metadata=b""):
    """Writes a Model, or a Graph as a model of its own, to `path`; returns the size in bytes.

    The bytes depend on the model alone. With `isInline` all constants are parts of the FlatBuffer,
    and a file of more than 2 GB is a ValueError; else the large ones follow behind it, as
    converters store quantised weights. `metadata` is what the buffer TFLITE_METADATA holds.
    """
    if isinstance(model, Graph):
        model = Model.of(model)
    constants = _Constants(model.graphs(), isInline)
    if metadata:
        constants.metadata = len(constants.arrays)
        constants.arrays.append(np.frombuffer(metadata, np.uint8))
    # The places of the outside constants depend on the size of the FlatBuffer, which does not
    # depend on them.
    head, places = encode(_model(model, constants), schema.FILE_IDENTIFIER,
                          schema.BUFFER_ALIGNMENT)
    end = max([len(head)] + [position + constants.arrays[key].nbytes for key, position in places])
    for number in constants.outside:
        end += -end % _OUTSIDE_ALIGNMENT
        constants.places[number] = end
        end += constants.arrays[number].nbytes
    head, places = encode(_model(model, constants), schema.FILE_IDENTIFIER,
                          schema.BUFFER_ALIGNMENT)
    with open(path, "wb") as file:
        file.write(head)
        for number, position in places:
            file.write(bytes(position - 4 - file.tell()))
            file.write(np.array([constants.arrays[number].nbytes], "<u4").tobytes())
            _writeArray(file, constants.arrays[number])
        for number in constants.outside:
            file.write(bytes(constants.places[number] - file.tell()))
            _writeArray(file, constants.arrays[number])
        return file.tell()


def _writeArray(file, data):
    array = np.asarray(data)
    array = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<"), copy=False))
    file.write(array.reshape(-1).view(np.uint8).data)


class _Constants:
    """The buffers of a file. Buffer 0 is by convention the empty one, used by all tensors without
    data."""

    def __init__(self, graphs, isInline):
        self.arrays = [None]
        self.outside = []
        self.places = {}
        self.metadata = 0
        self._numbers = {}
        for graph in graphs:
            for tensor in graph.tensors:
                data = tensor.data
                if data is None or id(data) in self._numbers:
                    continue
                if not isInline and data.nbytes > _LARGEST_INLINE:
                    self.outside.append(len(self.arrays))
                    self.places[len(self.arrays)] = 0
                self._numbers[id(data)] = len(self.arrays)
                self.arrays.append(data)

    def numberOf(self, tensor):
        return 0 if tensor.data is None else self._numbers[id(tensor.data)]

    def table(self, number):
        if number == 0:
            return Table({})
        size = self.arrays[number].nbytes
        if number in self.places:
            return Table({schema.BUFFER_OFFSET: Scalar("Q", self.places[number]),
                          schema.BUFFER_SIZE: Scalar("Q", size)})
        return Table({schema.BUFFER_DATA: Blob(number, size)})


class _OperatorCodes:
    """The kinds of operators of a model with the version of each."""

    def __init__(self, graphs):
        self._isInteger = {id(graph): bool(graph.inputs) and
                           graph.tensors[graph.inputs[0]].quantization is not None
                           for graph in graphs}
        self.entries = sorted({self.entryOf(graph, operator)
                               for graph in graphs for operator in graph.operators})

    def entryOf(self, graph, operator):
        entry = schema.OPERATORS[operator.kind]
        if operator.options.get("keep_num_dims"):
            return operator.kind, 5
        isInteger = self._isInteger[id(graph)]
        return operator.kind, entry.int8Version if isInteger else entry.floatVersion


def _model(model, constants):
    graphs = model.graphs()
    codes = _OperatorCodes(graphs)
    return Table({
        schema.MODEL_VERSION: Scalar("I", schema.SCHEMA_VERSION),
        schema.MODEL_OPERATOR_CODES: TableVector([_operatorCode(*one) for one in codes.entries]),
        schema.MODEL_SUBGRAPHS: TableVector(
            [_subgraph(graph, number, graphs, codes, constants)
             for number, graph in enumerate(graphs)]),
        schema.MODEL_DESCRIPTION: String(model.name),
        schema.MODEL_BUFFERS: TableVector(
            [constants.table(number) for number in range(len(constants.arrays))]),
        schema.MODEL_SIGNATURE_DEFS: TableVector(
            [_signature(signature, graphs) for signature in model.signatures]),
        schema.MODEL_METADATA: None if constants.metadata == 0 else TableVector(
            [Table({schema.METADATA_NAME: String("TFLITE_METADATA"),
                    schema.METADATA_BUFFER: Scalar("I", constants.metadata)})]),
    })


def _subgraph(graph, number, graphs, codes, constants):
    return Table({
        schema.SUBGRAPH_TENSORS: TableVector(
            [_tensor(tensor, constants.numberOf(tensor)) for tensor in graph.tensors]),
        schema.SUBGRAPH_INPUTS: Vector(np.int32, graph.inputs),
        schema.SUBGRAPH_OUTPUTS: Vector(np.int32, graph.outputs),
        schema.SUBGRAPH_OPERATORS: TableVector(
            [_operator(graph, operator, graphs, codes) for operator in graph.operators]),
        schema.SUBGRAPH_NAME: String("main" if number == 0 else graph.name),
    })


def _signature(signature, graphs):
    return Table({
        schema.SIGNATURE_INPUTS: _tensorMap(signature.inputs),
        schema.SIGNATURE_OUTPUTS: _tensorMap(signature.outputs),
        schema.SIGNATURE_KEY: String(signature.key),
        schema.SIGNATURE_SUBGRAPH: Scalar("I", _indexOf(signature.graph, graphs)),
    })


def _indexOf(graph, graphs):
    return next(index for index, known in enumerate(graphs) if known is graph)


def _tensor(tensor, buffer):
    fields = {
        schema.TENSOR_SHAPE: Vector(np.int32, tensor.shape),
        schema.TENSOR_TYPE: Scalar("b", schema.TYPE_CODES[tensor.dtype]),
        schema.TENSOR_BUFFER: Scalar("I", buffer),
        schema.TENSOR_NAME: String(tensor.name),
        schema.TENSOR_QUANTIZATION: _quantization(tensor.quantization),
        schema.TENSOR_HAS_RANK: Scalar("?", True),
    }
    if tensor.isVariable:
        fields[schema.TENSOR_IS_VARIABLE] = Scalar("?", True)
    if tensor.hasAnyBatch:
        fields[schema.TENSOR_SHAPE_SIGNATURE] = Vector(np.int32, (-1, *tensor.shape[1:]))
    return Table(fields)


def _quantization(quantization):
    if quantization is None:
        return None
    if isinstance(quantization, BlockQuantization):
        return Table({
            schema.QUANTIZATION_DETAILS_TYPE: Scalar("B", schema.BLOCKWISE),
            schema.QUANTIZATION_DETAILS: Table({
                schema.BLOCKWISE_SCALES: Scalar("i", quantization.scales),
                schema.BLOCKWISE_ZERO_POINTS: Scalar("i", -1),
                schema.BLOCKWISE_SIZE: Scalar("i", quantization.blockSize),
            }),
        })
    return Table({
        schema.QUANTIZATION_SCALE: Vector(np.float32, quantization.scale),
        schema.QUANTIZATION_ZERO_POINT: Vector(np.int64, quantization.zero_point),
        schema.QUANTIZATION_DIMENSION: Scalar("i", quantization.axis),
    })


def _operatorCode(kind, version):
    code = schema.OPERATORS[kind].code
    return Table({
        # The old one-byte field holds the code too, as far as it fits.
        schema.OPERATOR_CODE_DEPRECATED: Scalar("b", min(code, 127)),
        schema.OPERATOR_CODE_VERSION: Scalar("i", version),
        schema.OPERATOR_CODE_BUILTIN: Scalar("i", code),
    })


def _operator(graph, operator, graphs, codes):
    fields = {
        schema.OPERATOR_OPCODE_INDEX: Scalar(
            "I", codes.entries.index(codes.entryOf(graph, operator))),
        schema.OPERATOR_INPUTS: Vector(np.int32, operator.inputs),
        schema.OPERATOR_OUTPUTS: Vector(np.int32, operator.outputs),
    }
    if operator.kind == "STABLEHLO_COMPOSITE":
        fields |= _compositeOptions(operator, graphs)
    elif schema.OPERATORS[operator.kind].union:
        fields |= _options(operator)
    return Table(fields)


def _options(operator):
    entry = schema.OPERATORS[operator.kind]
    unknown = set(operator.options) - {name for name, _, _ in entry.fields}
    assert not unknown, (operator.kind, unknown)
    options = {slot: Scalar(format, operator.options.get(name, default))
               for slot, (name, format, default) in enumerate(entry.fields)}
    return {schema.OPERATOR_OPTIONS_TYPE: Scalar("B", entry.union),
            schema.OPERATOR_OPTIONS: Table(options)}


def _compositeOptions(operator, graphs):
    options = operator.options
    attributes = np.frombuffer(flexbuffer.encode(options["attributes"]), np.uint8)
    return {schema.OPERATOR_OPTIONS_2_TYPE: Scalar("B", schema.COMPOSITE_OPTIONS),
            schema.OPERATOR_OPTIONS_2: Table({
                schema.COMPOSITE_NAME: String(options["composite"]),
                schema.COMPOSITE_DECOMPOSITION: Scalar(
                    "i", _indexOf(options["decomposition"], graphs)),
                schema.COMPOSITE_ATTRIBUTES: Vector(np.uint8, attributes),
            })}


def _tensorMap(arguments):
    return TableVector([Table({schema.TENSOR_MAP_NAME: String(name),
                               schema.TENSOR_MAP_INDEX: Scalar("I", index)})
                        for name, index in arguments.items()])
