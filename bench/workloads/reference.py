# SPDX-License-Identifier: Apache-2.0
"""Runs a graph in NumPy: convolutions as matrix products over patches."""

import numpy as np

from . import tflite_schema as schema


def run(graph, inputs, onTensor=None):
    """Returns the graph's outputs for a list of input arrays.

    Everything is computed in float32. A quantised graph takes and gives stored integers; each of
    its intermediate results is rounded to its tensor's grid, which is what an integer runtime
    computes up to the rounding of single steps. `onTensor(index, array)` sees every real-valued
    input and result.
    """
    values = {}
    remaining = _lastUses(graph)

    def store(index, value):
        tensor = graph.tensors[index]
        if value.shape != tensor.shape:
            raise ValueError(f"tensor {tensor.name} has the shape {value.shape}, "
                             f"its declaration says {tensor.shape}")
        if tensor.quantization is not None:
            value = tensor.quantization.dequantize(
                tensor.quantization.quantize(value, tensor.dtype))
        values[index] = value
        if onTensor is not None:
            onTensor(index, value)

    def fetch(index):
        tensor = graph.tensors[index]
        if tensor.data is None:
            return values[index]
        data = np.asarray(tensor.data)
        return data if tensor.quantization is None else tensor.quantization.dequantize(data)

    for index, value in zip(graph.inputs, inputs):
        quantization = graph.tensors[index].quantization
        store(index, value if quantization is None else quantization.dequantize(value))
    for position, operator in enumerate(graph.operators):
        evaluate = _EVALUATORS[operator.kind]
        result = evaluate(operator.options, *(fetch(index) for index in operator.inputs))
        result = _activate(result, operator.options.get("activation", schema.ACTIVATION_NONE))
        store(operator.outputs[0], result)
        for index in operator.inputs:
            if remaining[index] == position and index not in graph.outputs:
                values.pop(index, None)
    outputs = []
    for index in graph.outputs:
        tensor = graph.tensors[index]
        value = values[index]
        if tensor.quantization is not None:
            value = tensor.quantization.quantize(value, tensor.dtype)
        outputs.append(value)
    return outputs


def _lastUses(graph):
    return {index: position for position, operator in enumerate(graph.operators)
            for index in operator.inputs}


def _activate(x, activation):
    if activation == schema.ACTIVATION_RELU:
        return np.maximum(x, 0)
    if activation == schema.ACTIVATION_RELU6:
        return np.clip(x, 0, 6)
    return x


def _windows(options, x, height, width, fill):
    """A view [n, h, w, c, height, width] on all windows of a pooling or convolution."""
    strides = options["stride_h"], options["stride_w"]
    if options["padding"] == schema.PADDING_SAME:
        margins = [(0, 0)]
        for extent, kernel, stride in zip(x.shape[1:3], (height, width), strides):
            total = max((-(-extent // stride) - 1) * stride + kernel - extent, 0)
            margins.append((total // 2, total - total // 2))
        x = np.pad(x, margins + [(0, 0)], constant_values=fill)
    view = np.lib.stride_tricks.sliding_window_view(x, (height, width), (1, 2))
    return view[:, ::strides[0], ::strides[1]]


def _conv(options, x, weights, bias):
    outputs, height, width, depth = weights.shape
    if height == width == 1:
        patches = x[:, ::options["stride_h"], ::options["stride_w"]]
    else:
        patches = _windows(options, x, height, width, 0).transpose(0, 1, 2, 4, 5, 3)
    matrix = patches.reshape(-1, height * width * depth)
    product = matrix @ weights.reshape(outputs, -1).T + bias
    return product.reshape(*patches.shape[:3], outputs)


def _depthwiseConv(options, x, weights, bias):
    _, height, width, _ = weights.shape
    windows = _windows(options, x, height, width, 0)
    result = np.zeros(windows.shape[:4], np.float32) + bias
    for row in range(height):
        for column in range(width):
            result += windows[..., row, column] * weights[0, row, column]
    return result


def _maxPool(options, x):
    return _windows(options, x, options["filter_h"], options["filter_w"], -np.inf).max((4, 5))


def _softmax(options, x):
    exponentials = np.exp(options["beta"] * (x - x.max(-1, keepdims=True)))
    return exponentials / exponentials.sum(-1, keepdims=True)


_EVALUATORS = {
    "ADD": lambda options, a, b: a + b,
    "CONV_2D": _conv,
    "DEPTHWISE_CONV_2D": _depthwiseConv,
    "FULLY_CONNECTED": lambda options, x, weights, bias: x @ weights.T + bias,
    "MAX_POOL_2D": _maxPool,
    "MEAN": lambda options, x, axes: x.mean(tuple(axes), keepdims=options["keep_dims"]),
    "PAD": lambda options, x, paddings: np.pad(x, paddings),
    "RESHAPE": lambda options, x, shape: x.reshape(shape),
    "SOFTMAX": _softmax,
}
