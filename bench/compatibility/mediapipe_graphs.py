#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes models with MediaPipe's operators, and what MediaPipe computes of them.

    mediapipe_graphs.py tests/compatibility/mediapipe

Runs in a virtual environment with MediaPipe's wheel (mediapipe==1.2.3), which needs libGL and libEGL. The
wheel has no interpreter: its ImageSegmenter runs any network from a picture to a tensor of the picture's
height and width. So each model ends with its result folded into that shape, zeros behind it.

Left out is what MediaPipe does not compute: of windows that leave out elements its MaxUnpooling2D writes
beyond its output, and where its delegate takes the pool but not the unpool, because that says SAME, the
places between the two are of another type than the unpool reads.
"""

import json
import pathlib
import struct
import sys

import flatbuffers
import mediapipe
import numpy as np
from mediapipe.tasks.metadata import schema_py_generated as schema
from mediapipe.tasks.python import BaseOptions, vision

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from workloads import flatbuffer, tflite_metadata  # noqa: E402

HEIGHT, WIDTH = 8, 12
SAME, VALID = 1, 2
MEAN = 127.5


class Model:
    """A model of one picture, in the object interface of TFLite's schema."""

    def __init__(self):
        self._graph = schema.SubGraphT()
        self._graph.tensors, self._graph.operators = [], []
        self._model = schema.ModelT()
        self._model.version = 3
        self._model.subgraphs, self._model.operatorCodes = [self._graph], []
        self._model.buffers = [schema.BufferT()]
        self.picture = self.tensor((1, HEIGHT, WIDTH, 3), "picture")

    def buffer(self, content):
        made = schema.BufferT()
        made.data = np.frombuffer(content, np.uint8)
        self._model.buffers.append(made)
        return len(self._model.buffers) - 1

    def tensor(self, shape, name=None, values=None):
        made = schema.TensorT()
        made.shape, made.name = list(shape), name or f"t{len(self._graph.tensors)}"
        made.type = schema.TensorType.FLOAT32
        made.buffer = 0
        if values is not None:
            values = np.asarray(values)
            if values.dtype == np.int32:
                made.type = schema.TensorType.INT32
            made.buffer = self.buffer(values.tobytes())
        self._graph.tensors.append(made)
        return len(self._graph.tensors) - 1

    def constant(self, values):
        return self.tensor(np.shape(values), values=values)

    def _operator(self, code, name, inputs, outputs):
        made = schema.OperatorCodeT()
        made.builtinCode, made.deprecatedBuiltinCode, made.version = code, code, 1
        made.customCode = name
        self._model.operatorCodes.append(made)
        operator = schema.OperatorT()
        operator.opcodeIndex = len(self._model.operatorCodes) - 1
        operator.inputs, operator.outputs = inputs, outputs
        self._graph.operators.append(operator)
        return operator

    def custom(self, name, inputs, outputs, options):
        operator = self._operator(schema.BuiltinOperator.CUSTOM, name, inputs, outputs)
        operator.customOptions = np.frombuffer(struct.pack(f"<{len(options)}i", *options), np.uint8)

    def _reshape(self, x, shape, name=None):
        y = self.tensor(shape, name)
        operator = self._operator(schema.BuiltinOperator.RESHAPE, None,
                                  [x, self.constant(np.array(shape, np.int32))], [y])
        operator.builtinOptionsType = schema.BuiltinOptions.ReshapeOptions
        operator.builtinOptions = schema.ReshapeOptionsT()
        operator.builtinOptions.newShape = list(shape)
        return y

    def content(self, result):
        """The bytes of the model whose result is folded."""
        size = int(np.prod(self._graph.tensors[result].shape))
        depth = -(-size // (HEIGHT * WIDTH))
        flat = self._reshape(result, (1, size))
        padded = self.tensor((1, HEIGHT * WIDTH * depth))
        paddings = np.array([[0, 0], [0, HEIGHT * WIDTH * depth - size]], np.int32)
        operator = self._operator(schema.BuiltinOperator.PAD, None, [flat, self.constant(paddings)], [padded])
        operator.builtinOptionsType = schema.BuiltinOptions.PadOptions
        operator.builtinOptions = schema.PadOptionsT()
        self._graph.inputs = [self.picture]
        self._graph.outputs = [self._reshape(padded, (1, HEIGHT, WIDTH, depth), "folded")]
        rgb = {0: flatbuffer.Scalar("b", 1)}
        entry = schema.MetadataT()
        entry.name = "TFLITE_METADATA"
        entry.buffer = self.buffer(tflite_metadata.metadata(
            "model", [tflite_metadata.tensor("picture", content="image", properties=rgb, mean=[MEAN], std=[MEAN])],
            [tflite_metadata.tensor("folded")]))
        self._model.metadata = [entry]
        builder = flatbuffers.Builder(0)
        builder.Finish(self._model.Pack(builder), b"TFL3")
        return bytes(builder.Output())


def pooledSide(side, window, stride, padding):
    return -(-side // stride) if padding == SAME else (side - window) // stride + 1


def pools(window, stride, padding, unpoolPadding):
    """MaxPoolingWithArgmax2D, whose maxima MaxUnpooling2D puts back."""
    model = Model()
    shape = (1, pooledSide(HEIGHT, window, stride, padding), pooledSide(WIDTH, window, stride, padding), 3)
    maxima, places = model.tensor(shape), model.tensor(shape)
    model.custom("MaxPoolingWithArgmax2D", [model.picture], [maxima, places],
                 [padding, stride, stride, window, window, 0])
    image = model.tensor((1, shape[1] * window, shape[2] * window, 3))
    model.custom("MaxUnpooling2D", [maxima, places], [image], [unpoolPadding, stride, stride, window, window])
    return model.content(image)


def transposed(size, stride, padding):
    """Convolution2DTransposeBias to five channels."""
    model = Model()
    generator = np.random.default_rng(3)
    weights = model.constant(generator.normal(size=(5, size, size, 3)).astype(np.float32))
    bias = model.constant(generator.normal(size=5).astype(np.float32))
    side = lambda length: length * stride if padding == SAME else (length - 1) * stride + size
    result = model.tensor((1, side(HEIGHT), side(WIDTH), 5))
    model.custom("Convolution2DTransposeBias", [model.picture, weights, bias], [result], [padding, stride, stride])
    return model.content(result)


def models():
    """{name: bytes}."""
    result = {"pool 2x2": pools(2, 2, VALID, VALID)}
    for window, stride, padding in ((3, 2, SAME), (2, 1, VALID), (3, 1, SAME), (4, 2, VALID)):
        for word, unpoolPadding in (("same", SAME), ("valid", VALID)):
            result[f"pool {window}x{window} stride {stride}, unpool {word}"] = pools(window, stride, padding,
                                                                                     unpoolPadding)
    for size, stride, padding in ((2, 2, SAME), (3, 2, SAME), (3, 2, VALID), (3, 1, SAME), (2, 3, VALID)):
        word = "same" if padding == SAME else "valid"
        result[f"transposed {size}x{size} stride {stride}, {word}"] = transposed(size, stride, padding)
    return result


def computed(content, picture):
    options = vision.ImageSegmenterOptions(base_options=BaseOptions(model_asset_buffer=content),
                                           output_confidence_masks=True, output_category_mask=False)
    with vision.ImageSegmenter.create_from_options(options) as segmenter:
        image = mediapipe.Image(image_format=mediapipe.ImageFormat.SRGB, data=picture)
        masks = segmenter.segment(image).confidence_masks
        return np.stack([np.squeeze(mask.numpy_view()) for mask in masks], -1)[np.newaxis].copy()


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    picture = np.random.default_rng(1).integers(0, 256, (HEIGHT, WIDTH, 3), np.uint8)
    results = {"picture": (picture[np.newaxis] - np.float32(MEAN)) / np.float32(MEAN)}
    files = {}
    for number, (name, content) in enumerate(models().items()):
        files[name] = f"model_{number}.tflite"
        (folder / files[name]).write_bytes(content)
        results[name] = computed(content, picture)
    np.savez_compressed(folder / "results.npz", **results)
    (folder / "models.json").write_text(json.dumps(files, indent=1) + "\n")


if __name__ == "__main__":
    main()
