# SPDX-License-Identifier: Apache-2.0
"""The architectures, with the layers that the TFLite converter makes of their Keras versions."""

import numpy as np

from .graph import Graph, LazyArray
from .tflite_schema import ACTIVATION_RELU, ACTIVATION_RELU6, PADDING_SAME, PADDING_VALID
from .weights import bell, filters

_MEAN_KEPT = 0.5
_BIAS_STD = 0.1


def resnet50(resolution=224, classes=1000, width=64, blocks=(3, 4, 6, 3), seed=1):
    """ResNet-50 version 1: the stride of a stage is in its first 1x1 convolution."""
    graph = Graph("resnet50")

    def conv(name, x, kernel, outputs, stride, padding, activation, energy):
        weights = filters(seed, name, (outputs, kernel, kernel, graph.shape(x)[3]), 0, energy,
                          _MEAN_KEPT)
        bias = bell(seed, name + "/bias", (outputs,), _BIAS_STD)
        return graph.conv(name, x, weights, bias, stride, padding, activation)

    x = graph.addInput("image", (1, resolution, resolution, 3))
    x = graph.pad("conv1_pad", x, 3, 3)
    x = conv("conv1", x, 7, width, 2, PADDING_VALID, ACTIVATION_RELU, energy=6)
    x = graph.pad("pool1_pad", x, 1, 1)
    x = graph.maxPool("pool1", x, 3, 2)
    for stage, count in enumerate(blocks):
        inner = width << stage
        for block in range(count):
            name = f"conv{stage + 2}_block{block + 1}"
            stride = 2 if stage > 0 and block == 0 else 1
            shortcut = x
            if block == 0:
                shortcut = conv(name + "_0", x, 1, 4 * inner, stride, PADDING_VALID, 0, energy=1)
            x = conv(name + "_1", x, 1, inner, stride, PADDING_VALID, ACTIVATION_RELU, energy=2)
            x = conv(name + "_2", x, 3, inner, 1, PADDING_SAME, ACTIVATION_RELU, energy=2)
            x = conv(name + "_3", x, 1, 4 * inner, 1, PADDING_VALID, 0, energy=0.5)
            x = graph.add(name + "_add", shortcut, x, ACTIVATION_RELU)
    x = graph.globalMean("avg_pool", x)
    graph.outputs = [_logits(graph, x, classes, seed)]
    return graph


def mobilenetV2(resolution=224, classes=1000, blocks=None, seed=1):
    """MobileNetV2 with width 1.0: (expansion, outputs, repetitions, first stride) per stage."""
    blocks = blocks or [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2),
                        (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]
    graph = Graph("mobilenet_v2")

    def conv(name, x, kernel, outputs, stride, activation, energy):
        weights = filters(seed, name, (outputs, kernel, kernel, graph.shape(x)[3]), 0, energy,
                          _MEAN_KEPT)
        bias = bell(seed, name + "/bias", (outputs,), _BIAS_STD)
        return graph.conv(name, x, weights, bias, stride, PADDING_SAME, activation)

    def depthwise(name, x, stride):
        channels = graph.shape(x)[3]
        weights = filters(seed, name, (1, 3, 3, channels), 3, energy=2)
        bias = bell(seed, name + "/bias", (channels,), _BIAS_STD)
        if stride == 1:
            return graph.depthwiseConv(name, x, weights, bias, activation=ACTIVATION_RELU6)
        x = graph.pad(name + "_pad", x, 0, 1)
        return graph.depthwiseConv(name, x, weights, bias, stride, PADDING_VALID, ACTIVATION_RELU6)

    x = graph.addInput("image", (1, resolution, resolution, 3))
    x = conv("Conv1", x, 3, 32, 2, ACTIVATION_RELU6, energy=6)
    number = 0
    for expansion, outputs, repetitions, stride in blocks:
        for repetition in range(repetitions):
            name = f"block_{number}"
            shortcut = x
            inputs = graph.shape(x)[3]
            if expansion != 1:
                x = conv(name + "_expand", x, 1, expansion * inputs, 1, ACTIVATION_RELU6, energy=2)
            x = depthwise(name + "_depthwise", x, stride if repetition == 0 else 1)
            if repetition == 0:
                x = conv(name + "_project", x, 1, outputs, 1, 0, energy=1)
            else:
                x = conv(name + "_project", x, 1, outputs, 1, 0, energy=0.5)
                x = graph.add(name + "_add", shortcut, x)
            number += 1
    x = conv("Conv_1", x, 1, 4 * graph.shape(x)[3], 1, ACTIVATION_RELU6, energy=2)
    x = graph.globalMean("global_average_pooling2d", x)
    graph.outputs = [_logits(graph, x, classes, seed)]
    return graph


def _logits(graph, x, classes, seed):
    """A classifier whose logits have a standard deviation between 1 and 3."""
    shape = classes, graph.shape(x)[1]
    weights = filters(seed, "logits", shape, 0, energy=16, meanKept=0.0)
    return graph.fullyConnected("logits", x, weights, np.zeros(classes, np.float32))


def mlp(megabytes, features=1024, hidden=4096, classes=10, seed=1, hasAnyBatch=False):
    """Fully connected float32 layers with `megabytes` * 2**20 bytes of weights, or slightly more.
    With `hasAnyBatch` the number of rows is unknown, 1 by default.

    A weight matrix exists only while it is written.
    """
    graph = Graph("mlp")
    remaining = megabytes * (1 << 20) // 4 - hidden * (features + classes)
    count = max(0, -(-remaining // (hidden * hidden)))

    def dense(name, x, outputs, activation, energy):
        shape = outputs, graph.shape(x)[1]
        weights = LazyArray(shape, np.float32,
                            lambda: bell(seed, name, shape, (energy / shape[1]) ** 0.5))
        bias = bell(seed, name + "/bias", (outputs,), _BIAS_STD)
        return graph.fullyConnected(name, x, weights, bias, activation)

    x = graph.addInput("features", (1, features))
    x = dense("dense_in", x, hidden, ACTIVATION_RELU, energy=6)
    for layer in range(count):
        x = dense(f"dense_{layer}", x, hidden, ACTIVATION_RELU, energy=2)
    graph.outputs = [dense("logits", x, classes, 0, energy=4)]
    for tensor in graph.tensors:
        tensor.hasAnyBatch = hasAnyBatch and tensor.data is None
    return graph
