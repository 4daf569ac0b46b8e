# SPDX-License-Identifier: Apache-2.0
"""Writes models again with a batch that is unknown, in the form of TensorFlow's converter: the shapes
stay [1, ...] and get the signature [-1, ...]. Needs LiteRT's wheel.

usage: unknown_batch.py FOLDER MODEL...

Prints the path of each model that was written to FOLDER. One without a batch of 1 in all of its
inputs is left out.
"""

import sys
from pathlib import Path

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema


def isConstant(model, tensor):
    data = model.buffers[tensor.buffer].data
    return data is not None and len(data) > 0


def hasBatch(tensor):
    return tensor.shape is not None and len(tensor.shape) > 1 and tensor.shape[0] == 1


def opened(shape):
    """A list of numbers to which RESHAPE changes, with the batch open; the same where it has none."""
    shape = np.array(shape, np.int32)
    if len(shape) > 0 and shape[0] == 1 and (shape >= 0).all():
        shape[0] = -1
    return shape


def openReshape(model, graph, operator):
    if operator.builtinOptions is not None and operator.builtinOptions.newShape is not None:
        operator.builtinOptions.newShape = opened(operator.builtinOptions.newShape)
    if len(operator.inputs) < 2:
        return
    tensor = graph.tensors[operator.inputs[1]]
    if isConstant(model, tensor):
        # The buffer may be that of other constants, too.
        buffer = schema.BufferT()
        data = np.array(model.buffers[tensor.buffer].data, np.uint8)
        buffer.data = opened(data.view(np.int32)).view(np.uint8)
        model.buffers.append(buffer)
        tensor.buffer = len(model.buffers) - 1


def withUnknownBatch(content):
    """The bytes of the model; None where it has no batch."""
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(bytearray(content), 0))
    if not all(hasBatch(model.subgraphs[0].tensors[index]) for index in model.subgraphs[0].inputs):
        return None
    for graph in model.subgraphs:
        for tensor in graph.tensors:
            if hasBatch(tensor) and not isConstant(model, tensor):
                tensor.shapeSignature = np.array([-1, *tensor.shape[1:]], np.int32)
        for operator in graph.operators or []:
            code = model.operatorCodes[operator.opcodeIndex]
            if max(code.builtinCode, code.deprecatedBuiltinCode) == schema.BuiltinOperator.RESHAPE:
                openReshape(model, graph, operator)
    builder = flatbuffers.Builder(len(content) + 4096)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def main(folder, *paths):
    for number, path in enumerate(map(Path, paths)):
        content = withUnknownBatch(path.read_bytes())
        if content is not None:
            target = Path(folder) / str(number) / f"{path.stem}-unknown-batch.tflite"
            target.parent.mkdir()
            target.write_bytes(content)
            print(target)


if __name__ == "__main__":
    main(*sys.argv[1:])
