# SPDX-License-Identifier: Apache-2.0
"""Turns a float graph into a full-integer one: int8 tensors, int32 biases; and an integer one into its
float32 twin.

Weights of convolutions are symmetric with a scale per output channel, those of FULLY_CONNECTED
with one scale (the only form that NNAPI's FULLY_CONNECTED takes); activations are asymmetric.
"""

import copy
import math

import numpy as np

from . import reference
from .graph import Graph, Operator, Quantization

# Which axis of the weights counts the output channels.
_CHANNEL_AXIS = {"CONV_2D": 0, "DEPTHWISE_CONV_2D": 3}
# Few samples stand for all inputs: without it, other inputs saturate.
_HEADROOM = 1.125
# The result of these has to have the quantisation of the input, or one that TFLite fixes.
_SAME_QUANTIZATION = {"AVERAGE_POOL_2D", "BATCH_TO_SPACE_ND", "GATHER", "MAX_POOL_2D", "PAD", "RESHAPE", "RESIZE_BILINEAR",
                      "RESIZE_NEAREST_NEIGHBOR", "SLICE", "SPACE_TO_BATCH_ND", "TOPK_V2", "TRANSPOSE"}
_FIXED_QUANTIZATION = {"LOGISTIC": (1 / 256, -128), "SOFTMAX": (1 / 256, -128), "TANH": (1 / 128, 0)}


def toFloat32(graph):
    """The same operators on the real numbers that the integers of a graph stand for."""
    result = Graph(graph.name + " float32")
    result.inputs, result.outputs = list(graph.inputs), list(graph.outputs)
    result.operators = copy.deepcopy(graph.operators)
    for tensor in graph.tensors:
        data, dtype = tensor.data, tensor.dtype
        if tensor.quantization is not None:
            dtype = np.float32
            if data is not None:
                data = tensor.quantization.dequantize(np.asarray(data)).astype(dtype)
        result.addTensor(tensor.name, tensor.shape, dtype, data)
    return result


def toInt8(graph, samples):
    """`samples`: list of inputs (values in [-1, 1)) of a graph with one input.

    The range of each activation is what the samples reach.
    """
    ranges = {}

    def widen(index, value):
        low, high = ranges.get(index, (0.0, 0.0))
        ranges[index] = min(low, float(value.min())), max(high, float(value.max()))

    for sample in samples:
        reference.run(graph, [sample], widen)
    return toInt8OfRanges(graph, ranges)


def toInt8OfRanges(graph, ranges):
    """`ranges`: the least and the greatest value of each activation of real numbers, by its tensor's index."""
    result = Graph(graph.name + " int8")
    result.inputs, result.outputs = list(graph.inputs), list(graph.outputs)
    result.operators = copy.deepcopy(graph.operators)
    result.tensors = [copy.copy(tensor) for tensor in graph.tensors]
    for index, (low, high) in ranges.items():
        _setType(result.tensors[index], np.int8, _activationQuantization(low, high))
    for index in graph.inputs:
        if index in ranges:
            result.tensors[index].quantization = Quantization.perTensor(1 / 128)
    for operator in result.operators:
        output = result.tensors[operator.outputs[0]]
        if operator.kind in _CHANNEL_AXIS or operator.kind == "FULLY_CONNECTED":
            _quantizeWeights(result, operator)
        else:
            for index in operator.inputs:
                _quantizeConstant(result.tensors[index])
        if operator.kind in _SAME_QUANTIZATION:
            output.quantization = result.tensors[operator.inputs[0]].quantization
        elif operator.kind in _FIXED_QUANTIZATION:
            output.quantization = Quantization.perTensor(*_FIXED_QUANTIZATION[operator.kind])
    return result


def _quantizeConstant(tensor):
    """Real numbers that are no weights of a layer."""
    if tensor.data is None or tensor.dtype != np.float32:
        return
    values = np.asarray(tensor.data)
    _setType(tensor, np.int8, _activationQuantization(min(0.0, float(values.min())), max(0.0, float(values.max()))))
    tensor.data = tensor.quantization.quantize(values, np.int8)


def _setType(tensor, dtype, quantization):
    tensor.dtype = np.dtype(dtype)
    tensor.quantization = quantization


def _activationQuantization(low, high):
    if low == high:
        return Quantization.perTensor(1.0)
    low, high = low * _HEADROOM, high * _HEADROOM
    # The last bits of the range come from the machine's matrix product. With a scale rounded up to
    # six bits the file does not depend on them.
    mantissa, exponent = math.frexp((high - low) / 255)
    scale = math.ldexp(math.ceil(mantissa * 64) / 64, exponent)
    zeroPoint = round(-128 - low / scale)
    return Quantization.perTensor(scale, min(127, max(-128, zeroPoint)))


def _quantizeWeights(graph: Graph, operator: Operator):
    source, weights, bias = (graph.tensors[index] for index in operator.inputs)
    values = np.asarray(weights.data)
    axis = _CHANNEL_AXIS.get(operator.kind)
    if axis is None:
        largest = np.abs(values).max().reshape(1)
    else:
        others = tuple(other for other in range(values.ndim) if other != axis)
        largest = np.abs(values).max(others)
    scale = (np.maximum(largest, 1e-12) / np.float32(127)).astype(np.float32)
    quantization = Quantization(scale, np.zeros(len(scale), np.int64), axis or 0)
    _setType(weights, np.int8, quantization)
    weights.data = quantization.quantize(values, np.int8)

    biasScale = source.quantization.scale[0] * scale
    quantization = Quantization(biasScale, np.zeros(len(scale), np.int64), 0)
    _setType(bias, np.int32, quantization)
    bias.data = quantization.quantize(np.asarray(bias.data), np.int32)
