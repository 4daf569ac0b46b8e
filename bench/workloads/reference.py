# SPDX-License-Identifier: Apache-2.0
"""Runs a graph in NumPy: convolutions as matrix products over patches."""

import math

import numpy as np

from . import tflite_schema as schema
from .graph import BlockQuantization
from .stored_weights import dequantizeRows

# How many rows of weights exist as float32 at a time.
_ROWS = 4096


def run(graph, inputs, onTensor=None):
    """Returns the graph's outputs for a list of input arrays.

    Everything is computed in float32. A quantised graph takes and gives stored integers; each of
    its intermediate results is rounded to its tensor's grid, which is what an integer runtime
    computes up to the rounding of single steps. Where float32 activations meet weights of 8 or 4
    bits they are rounded to 256 steps, as TFLite quantises them while such a layer runs.
    `onTensor(index, array)` sees every real-valued input and result.
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
        if isinstance(tensor.quantization, BlockQuantization) or tensor.dtype == schema.INT4:
            return dequantizeRows(tensor, np.asarray(tensor.data), blockScales(tensor))
        data = np.asarray(tensor.data)
        return data if tensor.quantization is None else tensor.quantization.dequantize(data)

    def blockScales(tensor):
        if isinstance(tensor.quantization, BlockQuantization):
            return graph.tensors[tensor.quantization.scales].data
        return None

    def rowsOf(index):
        """Reads rows of a table or matrix, which may be too large to be dequantised whole."""
        tensor = graph.tensors[index]
        if tensor.data is None:
            return lambda rows: values[index][rows]
        data = np.asarray(tensor.data)
        return lambda rows: dequantizeRows(tensor, data, blockScales(tensor), rows)

    def isHybrid(operator):
        x, weights = (graph.tensors[index] for index in operator.inputs[:2])
        return weights.quantization is not None and x.quantization is None

    def evaluate(operator):
        if operator.kind == "STABLEHLO_COMPOSITE":
            arguments = [fetch(index) for index in operator.inputs]
            if operator.options["composite"] == "odml.scaled_dot_product_attention":
                return _attention(operator.options["attributes"], *arguments)
            return run(operator.options["decomposition"], arguments)[0]
        if operator.kind == "EMBEDDING_LOOKUP":
            return rowsOf(operator.inputs[1])(fetch(operator.inputs[0]))
        arguments = [None if index < 0 else fetch(index) for index in operator.inputs[:1]]
        if operator.kind == "FULLY_CONNECTED":
            x = _roundToSteps(arguments[0], (-1,)) if isHybrid(operator) else arguments[0]
            bias = operator.inputs[2] if len(operator.inputs) > 2 else -1
            product = _product(x, rowsOf(operator.inputs[1]),
                               graph.shape(operator.inputs[1])[0])
            return product if bias < 0 else product + fetch(bias)
        if operator.kind == "CONV_2D" and isHybrid(operator):
            arguments[0] = _roundToSteps(arguments[0], (1, 2, 3))
        arguments += [None if index < 0 else fetch(index) for index in operator.inputs[1:]]
        return _EVALUATORS[operator.kind](operator.options, *arguments)

    for index, value in zip(graph.inputs, inputs):
        quantization = graph.tensors[index].quantization
        store(index, value if quantization is None else quantization.dequantize(value))
    for position, operator in enumerate(graph.operators):
        result = evaluate(operator)
        if operator.kind == "RESHAPE":
            result = result.reshape(graph.shape(operator.outputs[0]))
        result = _activate(result, operator.options.get("activation", schema.ACTIVATION_NONE))
        store(operator.outputs[0], result)
        for index in operator.inputs:
            if index >= 0 and remaining[index] == position and index not in graph.outputs:
                values.pop(index, None)
    outputs = []
    for index in graph.outputs:
        tensor = graph.tensors[index]
        value = values[index]
        if tensor.quantization is not None:
            value = tensor.quantization.quantize(value, tensor.dtype)
        outputs.append(value)
    return outputs


def runSignature(model, key, inputs):
    """Outputs by name for inputs by name."""
    signature = model.signature(key)
    byIndex = {index: inputs[name] for name, index in signature.inputs.items()}
    graph = signature.graph
    results = run(graph, [byIndex[index] for index in graph.inputs])
    return {name: results[graph.outputs.index(index)]
            for name, index in signature.outputs.items()}


def _roundToSteps(x, axes):
    """256 steps from the least to the greatest value along `axes`, 0 included."""
    least = np.minimum(x.min(axes, keepdims=True), 0)
    greatest = np.maximum(x.max(axes, keepdims=True), 0)
    scale = ((greatest - least) / np.float32(255)).astype(np.float32)
    scale = np.where(scale > 0, scale, np.float32(1))
    zeroPoint = np.rint(-128 - least / scale)
    return (np.clip(np.rint(x / scale) + zeroPoint, -128, 127) - zeroPoint) * scale


def _product(x, rowsOf, count):
    """x @ weights^T with some rows of the weights at a time."""
    parts = [x @ rowsOf(slice(first, first + _ROWS)).T for first in range(0, count, _ROWS)]
    return np.concatenate(parts, -1)


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


def _conv(options, x, weights, bias=None):
    outputs, height, width, depth = weights.shape
    if height == width == 1:
        patches = x[:, ::options["stride_h"], ::options["stride_w"]]
    else:
        patches = _windows(options, x, height, width, 0).transpose(0, 1, 2, 4, 5, 3)
    matrix = patches.reshape(-1, height * width * depth)
    product = matrix @ weights.reshape(outputs, -1).T
    if bias is not None:
        product = product + bias
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


def _attention(attributes, queries, keys, values, mask=None):
    """Queries [n, t, heads, d], keys and values [n, s, groups, d]."""
    shared = queries.shape[2] // keys.shape[2]
    keys, values = (np.repeat(array, shared, 2) for array in (keys, values))
    scale = np.float32(attributes.get("scale", queries.shape[3] ** -0.5))
    logits = np.einsum("nthd,nshd->nhts", queries * scale, keys)
    if mask is not None:
        logits = logits + mask
    return np.einsum("nhts,nshd->nthd", _softmax({"beta": 1.0}, logits), values)


def _gelu(options, x):
    if options["approximate"]:
        return 0.5 * x * (1 + np.tanh(np.float32((2 / np.pi) ** 0.5) * (x + 0.044715 * x**3)))
    return 0.5 * x * (1 + np.vectorize(math.erf, otypes=[np.float32])(x * np.float32(0.5 ** 0.5)))


def _updateSlice(options, data, update, begin):
    begin = [min(max(int(first), 0), whole - part)
             for first, whole, part in zip(begin, data.shape, update.shape)]
    result = data.copy()
    result[tuple(slice(first, first + part) for first, part in zip(begin, update.shape))] = update
    return result


def _slice(options, x, begin, size):
    return x[tuple(slice(first, first + count) for first, count in zip(begin, size))]


def _enlarge(options, x, size):
    assert tuple(size) == (2 * x.shape[1], 2 * x.shape[2]), size
    return x.repeat(2, 1).repeat(2, 2)


_EVALUATORS = {
    "ADD": lambda options, a, b: a + b,
    "BATCH_MATMUL": lambda options, a, b: a @ (b.swapaxes(-1, -2) if options["adj_y"] else b),
    "CAST": lambda options, x: x.astype(schema.TYPES[options["out_type"]]),
    "CONCATENATION": lambda options, *parts: np.concatenate(parts, options["axis"]),
    "CONV_2D": _conv,
    "COS": lambda options, x: np.cos(x),
    "DEPTHWISE_CONV_2D": _depthwiseConv,
    "DEQUANTIZE": lambda options, x: x.astype(np.float32),
    "DYNAMIC_UPDATE_SLICE": _updateSlice,
    "GATHER": lambda options, x, indices: np.take(x, indices, options["axis"]),
    "GELU": _gelu,
    "LOGISTIC": lambda options, x: 1 / (1 + np.exp(-x)),
    "MAX_POOL_2D": _maxPool,
    "MEAN": lambda options, x, axes: x.mean(tuple(axes), keepdims=options["keep_dims"]),
    "MUL": lambda options, a, b: a * b,
    "PACK": lambda options, *parts: np.stack(parts, options["axis"]),
    "PAD": lambda options, x, paddings: np.pad(x, paddings),
    "RESHAPE": lambda options, x, shape: x,
    "RESIZE_NEAREST_NEIGHBOR": _enlarge,
    "RSQRT": lambda options, x: 1 / np.sqrt(x),
    "SIN": lambda options, x: np.sin(x),
    "SLICE": _slice,
    "SOFTMAX": _softmax,
    "SUB": lambda options, a, b: a - b,
    "TRANSPOSE": lambda options, x, order: x.transpose(order),
}
