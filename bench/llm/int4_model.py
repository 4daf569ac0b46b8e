#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a language model with weights of int4 per channel of one with int8.

    int4_model.py MODEL.litertlm OUT.litertlm

The weights of matrix products, and tables of embeddings that are the same tensor, are rounded to 4 bits with a scale for
each row. That costs quality, and shows what products of this kind take. Everything else stays. Needs the Python packages
ai-edge-litert and numpy.
"""

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

ROOT = Path(__file__).resolve().parents[2]
READERS = {schema.BuiltinOperator.FULLY_CONNECTED, schema.BuiltinOperator.EMBEDDING_LOOKUP}


class Builder(flatbuffers.Builder):
    """Aligns constants as the format asks for, which the Python package does not."""

    def StartVector(self, elemSize, numElems, alignment):  # noqa: N802 - the name is the package's
        return super().StartVector(elemSize, numElems, 16 if elemSize == 1 else alignment)


def weightsOf(model):
    """{buffer: tensors} of int8 weights with a scale for each row that products read, and nothing but READERS."""
    tensors, others, products = {}, set(), set()
    for subgraph in model.subgraphs:
        for tensor in subgraph.tensors:
            tensors.setdefault(tensor.buffer, []).append(tensor)
        for operator in subgraph.operators:
            code = model.operatorCodes[operator.opcodeIndex].builtinCode
            for position, index in enumerate(operator.inputs):
                if index < 0:
                    continue
                buffer = subgraph.tensors[index].buffer
                if code not in READERS or position != 1:
                    others.add(buffer)
                elif code == schema.BuiltinOperator.FULLY_CONNECTED:
                    products.add(buffer)

    def isWeight(tensor):
        scales = tensor.quantization.scale if tensor.quantization else None
        return (tensor.type == schema.TensorType.INT8 and scales is not None and len(tensor.shape) == 2 and
                len(scales) == tensor.shape[0] and tensor.shape[1] % 2 == 0 and not any(tensor.quantization.zeroPoint))

    return {buffer: tensors[buffer] for buffer in sorted(products - others - {0})
            if all(isWeight(tensor) for tensor in tensors[buffer])}


def narrow(model):
    """Rounds the weights; returns how many there were."""
    found = weightsOf(model)
    for index, tensors in found.items():
        rows, columns = (int(size) for size in tensors[0].shape)
        values = np.asarray(model.buffers[index].data, np.uint8).view(np.int8).reshape(rows, columns)
        # The row's largest magnitude becomes 7.
        factors = np.maximum(np.abs(values.astype(np.int32)).max(axis=1), 1) / 7
        codes = np.clip(np.rint(values / factors[:, None]), -7, 7).astype(np.int8).view(np.uint8) & 15
        model.buffers[index].data = (codes[:, ::2] | codes[:, 1::2] << 4).reshape(-1)
        for tensor in tensors:
            tensor.type = schema.TensorType.INT4
            tensor.quantization.scale = (np.asarray(tensor.quantization.scale) * factors).astype(np.float32)
    return len(found)


def placeOf(hearth, path):
    """Offset and size of the model in the file."""
    text = subprocess.run([hearth, "inspect", path, "--json"], capture_output=True, text=True, check=True).stdout
    [part] = [part for part in json.loads(text)["parts"] if part["name"] == "prefill_decode"]
    return part["offset"], part["bytes"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--hearth", type=Path, default=ROOT / "build" / "release" / "bin" / "hearth")
    arguments = parser.parse_args()
    offset, size = placeOf(arguments.hearth, arguments.model)
    data = arguments.model.read_bytes()
    section = data[offset:offset + size]
    model = schema.ModelT.InitFromPackedBuf(section)
    for buffer in model.buffers:
        # Constants may lie behind the tables.
        if buffer.offset > 1:
            buffer.data = np.frombuffer(section, np.uint8, buffer.size, buffer.offset)
            buffer.offset = buffer.size = 0
    count = narrow(model)
    builder = Builder(size)
    builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
    made = bytes(builder.Output())
    if not count or len(made) > size:
        sys.exit(f"The model has {count} weights of int8, and {len(made)} bytes afterwards.")
    # The section keeps its place; its end is noted in the header.
    end = (offset + size).to_bytes(8, "little")
    if data[:offset].count(end) != 1:
        sys.exit("The header does not say where the model ends.")
    shutil.copyfile(arguments.model, arguments.out)
    arguments.out.chmod(0o644)
    with arguments.out.open("r+b") as file:
        file.seek(data.index(end))
        file.write((offset + len(made)).to_bytes(8, "little"))
        file.seek(offset)
        file.write(made)
    print(f"{count} weights, {size} bytes before, {len(made)} now")


if __name__ == "__main__":
    main()
