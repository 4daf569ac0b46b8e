# SPDX-License-Identifier: Apache-2.0
"""Writes a model of what LiteRT computes with strings, by LiteRT's schema; tflite_litert_test.py runs it.

usage: strings_model.py FILE
"""

import pathlib
import sys

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

Type = schema.TensorType


class Model:
    def __init__(self):
        self._graph = schema.SubGraphT()
        self._graph.tensors, self._graph.operators = [], []
        self._model = schema.ModelT()
        self._model.version = 3
        self._model.subgraphs, self._model.operatorCodes = [self._graph], []
        self._model.buffers = [schema.BufferT()]

    def tensor(self, kind, shape, content=None):
        made = schema.TensorT()
        made.type, made.shape, made.name, made.buffer = kind, list(shape), f"t{len(self._graph.tensors)}", 0
        if content is not None:
            buffer = schema.BufferT()
            buffer.data = np.frombuffer(content, np.uint8)
            made.buffer = len(self._model.buffers)
            self._model.buffers.append(buffer)
        self._graph.tensors.append(made)
        return len(self._graph.tensors) - 1

    def numbers(self, kind, values):
        return self.tensor(kind, np.shape(values), np.asarray(values).tobytes())

    def strings(self, *texts):
        """A constant of rank 1: the number of strings, where each begins and the last ends, the bytes."""
        ends = 4 * (len(texts) + 2) + np.cumsum([0, *map(len, texts)])
        head = np.array([len(texts), *ends], np.int32)
        return self.tensor(Type.STRING, (len(texts),), head.tobytes() + b"".join(texts))

    def operator(self, name, inputs, outputs, **options):
        code = schema.OperatorCodeT()
        code.builtinCode = getattr(schema.BuiltinOperator, name)
        code.deprecatedBuiltinCode, code.version = min(code.builtinCode, 127), 1
        self._model.operatorCodes.append(code)
        made = schema.OperatorT()
        made.opcodeIndex = len(self._model.operatorCodes) - 1
        made.inputs, made.outputs = inputs, outputs
        kind = name.title().replace("_", "") + "Options"
        made.builtinOptionsType = getattr(schema.BuiltinOptions, kind)
        made.builtinOptions = getattr(schema, kind + "T")()
        for option, value in options.items():
            setattr(made.builtinOptions, option, value)
        self._graph.operators.append(made)

    def content(self, inputs, outputs):
        self._graph.inputs, self._graph.outputs = inputs, outputs
        builder = flatbuffers.Builder(0)
        builder.Finish(self._model.Pack(builder), b"TFL3")
        return bytes(builder.Output())


def main():
    model = Model()
    words = model.tensor(Type.STRING, (2, 3))
    row = model.tensor(Type.STRING, (6,))
    model.operator("RESHAPE", [words, model.numbers(Type.INT32, np.array([6], np.int32))], [row], newShape=[6])
    # LiteRT gathers strings of rank 1 alone.
    some = model.tensor(Type.STRING, (4,))
    model.operator("GATHER", [row, model.numbers(Type.INT32, np.array([5, 0, 2, 0], np.int32))], [some])
    isEqual, differs = model.tensor(Type.BOOL, (2, 3)), model.tensor(Type.BOOL, (2, 3))
    model.operator("EQUAL", [words, model.strings("b\u00e4".encode())], [isEqual])
    model.operator("NOT_EQUAL", [words, model.strings(b"")], [differs])
    table = model.tensor(Type.RESOURCE, ())
    model.operator("HASHTABLE", [], [table], tableId=3, keyDtype=Type.STRING, valueDtype=Type.INT64)
    model.operator("HASHTABLE_IMPORT", [table, model.strings(b"a", "b\u00e4".encode(), b""),
                                        model.numbers(Type.INT64, np.array([7, 8, 9]))], [])
    found = model.tensor(Type.INT64, (2, 3))
    model.operator("HASHTABLE_FIND", [table, words, model.numbers(Type.INT64, np.array([-1]))], [found])
    outputs = [row, some, isEqual, differs, found]
    pathlib.Path(sys.argv[1]).write_bytes(model.content([words], outputs))


if __name__ == "__main__":
    main()
