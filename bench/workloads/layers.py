# SPDX-License-Identifier: Apache-2.0
"""Layers of language and diffusion models as converters write them in TFLite's operators.

Each function adds the operators of one layer to a graph.Graph and returns the result's tensor.
"""

import numpy as np

from .graph import Graph

_MASKED = np.float32(-1e30)


def constant(graph, name, value):
    return graph.addConstant(name, np.asarray(value))


def linear(graph, name, x, weight, bias=None):
    """A fully connected layer on the last dimension; `weight` and `bias` are Weights."""
    inputs = [x, weight.tensorIn(graph), bias.tensorIn(graph) if bias else -1]
    shape = (*graph.shape(x)[:-1], weight.shape[0])
    return graph.addOperator("FULLY_CONNECTED", name, inputs, shape, keep_num_dims=True)


def silu(graph, name, x):
    return graph.multiply(name, x, graph.unary("LOGISTIC", name + "/gate", x))


def rmsNorm(graph, name, x, scale, epsilon, isComposite=False):
    if isComposite:
        def body(inner, value, gamma):
            return _rmsNorm(inner, "norm", value, gamma, epsilon)
        return _composite(graph, name, "odml.rms_norm", [x, scale.tensorIn(graph)],
                          {"epsilon": float(epsilon)}, body)
    return _rmsNorm(graph, name, x, scale.tensorIn(graph), epsilon)


def _rmsNorm(graph, name, x, scale, epsilon):
    last = len(graph.shape(x)) - 1
    squares = graph.mean(name + "/mean", graph.multiply(name + "/square", x, x), [last])
    factor = _inverseRoot(graph, name, squares, epsilon)
    return graph.multiply(name, graph.multiply(name + "/normal", x, factor), scale)


def _inverseRoot(graph, name, x, epsilon):
    """1 / sqrt(x + epsilon)"""
    offset = constant(graph, name + "/epsilon",
                      np.full([1] * len(graph.shape(x)), epsilon, np.float32))
    return graph.unary("RSQRT", name + "/factor", graph.add(name + "/shifted", x, offset))


def _standardize(graph, name, x, axes, epsilon):
    """Mean 0 and variance 1 along `axes`."""
    centred = graph.subtract(name + "/centred", x, graph.mean(name + "/mean", x, axes))
    squares = graph.mean(name + "/variance", graph.multiply(name + "/square", centred, centred),
                         axes)
    return graph.multiply(name + "/normal", centred, _inverseRoot(graph, name, squares, epsilon))


def layerNorm(graph, name, x, scale, offset, epsilon=1e-5):
    normal = _standardize(graph, name, x, [len(graph.shape(x)) - 1], epsilon)
    scaled = graph.multiply(name + "/scaled", normal, scale.tensorIn(graph))
    return graph.add(name, scaled, offset.tensorIn(graph))


def groupNorm(graph, name, x, groups, scale, offset, epsilon=1e-5, isComposite=False):
    """`x` is [n, h, w, channels]."""
    arguments = [x, scale.tensorIn(graph), offset.tensorIn(graph)]

    def body(inner, value, gamma, beta):
        n, h, w, channels = inner.shape(value)
        grouped = inner.reshape("grouped", value, (n, h * w, groups, channels // groups))
        normal = inner.reshape("flat", _standardize(inner, "norm", grouped, [1, 3], epsilon),
                               (n, h, w, channels))
        return inner.add("shifted", inner.multiply("scaled", normal, gamma), beta)

    if not isComposite:
        return body(_Renamed(graph, name), *arguments)
    attributes = {"epsilon": float(epsilon), "num_groups": groups, "channel_axis": -1}
    return _composite(graph, name, "odml.group_norm", arguments, attributes, body)


def attention(graph, name, queries, keys, values, mask=None, isComposite=False):
    """Queries [1, t, heads, d], keys and values [1, s, groups, d], mask [1, 1, t, s], which is
    added. The result is [1, t, heads, d]."""
    scale = float(np.float32(graph.shape(queries)[3]) ** -0.5)
    arguments = [queries, keys, values] + ([] if mask is None else [mask])

    def body(inner, *tensors):
        return _attention(inner, scale, *tensors)

    if not isComposite:
        return body(_Renamed(graph, name), *arguments)
    return _composite(graph, name, "odml.scaled_dot_product_attention", arguments,
                      {"scale": scale}, body)


def _attention(graph, scale, queries, keys, values, mask=None):
    _, t, heads, d = graph.shape(queries)
    _, s, groups, _ = graph.shape(keys)
    queries = graph.multiply("scaled", queries, constant(graph, "scale", np.float32(scale)))
    queries = _swapMiddle(graph, "queries", queries)
    queries = graph.reshape("by_group", queries, (1, groups, heads // groups * t, d))
    keys = _swapMiddle(graph, "keys", keys)
    values = _swapMiddle(graph, "values", values)
    logits = graph.batchMatmul("logits", queries, keys, isTransposed=True)
    if mask is not None:
        logits = graph.add("masked", graph.reshape("by_head", logits, (1, heads, t, s)), mask)
    parts = graph.unary("SOFTMAX", "parts", logits, beta=1.0)
    parts = graph.reshape("parts_by_group", parts, (1, groups, heads // groups * t, s))
    mixed = graph.reshape("mixed_by_head", graph.batchMatmul("mixed", parts, values),
                          (1, heads, t, d))
    return _swapMiddle(graph, "result", mixed)


def _swapMiddle(graph, name, x):
    """Exchanges dimensions 1 and 2, without moving data where one of them is 1."""
    a, b, c, d = graph.shape(x)
    if 1 in (b, c):
        return graph.reshape(name, x, (a, c, b, d))
    return graph.transpose(name, x, (0, 2, 1, 3))


def causalMask(size):
    """[size, size]: 0 where row i may look at column j <= i."""
    return np.where(np.arange(size)[None] <= np.arange(size)[:, None], np.float32(0), _MASKED)


def _composite(graph, name, kind, inputs, attributes, body):
    inner = Graph(f"{kind}.{name}")
    tensors = [inner.addInput(f"argument_{number}", graph.shape(index),
                              graph.tensors[index].dtype)
               for number, index in enumerate(inputs)]
    inner.outputs = [body(inner, *tensors)]
    return graph.composite(name, kind, inputs, attributes, inner)


class _Renamed:
    """A graph whose new tensors' names begin with `prefix`."""

    def __init__(self, graph, prefix):
        self._graph = graph
        self._prefix = prefix

    def __getattr__(self, attribute):
        method = getattr(self._graph, attribute)
        if attribute in ("shape", "tensors"):
            return method
        if attribute == "unary":
            return lambda kind, name, *rest, **options: method(
                kind, f"{self._prefix}/{name}", *rest, **options)
        return lambda name, *rest, **options: method(f"{self._prefix}/{name}", *rest, **options)
