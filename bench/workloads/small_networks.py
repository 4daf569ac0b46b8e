# SPDX-License-Identifier: Apache-2.0
"""Small networks with the operators that converters write for families of known ones: what matters is which
operators meet, not how many layers there are. Weights are random, sizes are odd where they may be.

FAMILIES has a function for each family, which returns its graph.Graph of float32 tensors.
"""

import numpy as np

from . import layers, networks
from . import tflite_schema as schema
from .graph import Graph, Operator
from .stored_weights import WeightMaker
from .tflite_schema import ACTIVATION_NONE, ACTIVATION_RELU, ACTIVATION_RELU6, PADDING_SAME, PADDING_VALID
from .weights import bell, filters

_BIAS_STD = 0.1
_CLASSES = 10
WORDS = 50  # that bert() knows
_MASKED = np.float32(-10000)


class _Net:
    """A graph whose layers have random weights. Names are made of the layers' numbers."""

    def __init__(self, name, seed=1):
        self.graph = Graph(name)
        self.seed = seed

    def name(self, kind):
        return f"{kind}_{len(self.graph.operators)}"

    def constant(self, values, dtype=np.float32):
        return self.graph.addConstant(f"constant_{len(self.graph.tensors)}", np.asarray(values, dtype))

    def shape(self, x):
        return self.graph.shape(x)

    def conv(self, x, outputs, kernel=1, stride=1, activation=ACTIVATION_NONE, padding=PADDING_SAME, dilation=1):
        name = self.name("conv")
        weights = filters(self.seed, name, (outputs, kernel, kernel, self.shape(x)[3]), 0, 2, 0.5)
        result = self.graph.conv(name, x, weights, self.bias(name, outputs), stride, padding, activation)
        self.graph.operators[-1].options.update(dilation_w=dilation, dilation_h=dilation)
        return result

    def depthwise(self, x, kernel=3, stride=1, activation=ACTIVATION_NONE, padding=PADDING_SAME):
        name = self.name("depthwise")
        channels = self.shape(x)[3]
        weights = filters(self.seed, name, (1, kernel, kernel, channels), 3, 2)
        return self.graph.depthwiseConv(name, x, weights, self.bias(name, channels), stride, padding, activation)

    def bias(self, name, outputs):
        return bell(self.seed, name + "/bias", (outputs,), _BIAS_STD)

    def dense(self, x, outputs, activation=ACTIVATION_NONE):
        """A layer on the last dimension."""
        name = self.name("dense")
        inputs = self.shape(x)[-1]
        weights = bell(self.seed, name, (outputs, inputs), inputs ** -0.5)
        operands = [x, self.graph.addConstant(name + "/weights", weights),
                    self.graph.addConstant(name + "/bias", self.bias(name, outputs))]
        return self.graph.addOperator("FULLY_CONNECTED", name, operands, (*self.shape(x)[:-1], outputs),
                                      keep_num_dims=len(self.shape(x)) > 2, activation=activation)

    def unary(self, kind, x, **options):
        return self.graph.unary(kind, self.name(kind.lower()), x, **options)

    def binary(self, kind, a, b, **options):
        shape = np.broadcast_shapes(self.shape(a), self.shape(b))
        return self.graph.addOperator(kind, self.name(kind.lower()), [a, b], shape, **options)

    def averagePool(self, x, kernel, stride, padding=PADDING_VALID):
        return self._pool("AVERAGE_POOL_2D", x, kernel, stride, padding)

    def maxPool(self, x, kernel, stride, padding=PADDING_SAME):
        return self._pool("MAX_POOL_2D", x, kernel, stride, padding)

    def _pool(self, kind, x, kernel, stride, padding):
        n, h, w, c = self.shape(x)
        if padding == PADDING_SAME:
            extent = -(-h // stride), -(-w // stride)
        else:
            extent = (h - kernel) // stride + 1, (w - kernel) // stride + 1
        return self.graph.addOperator(kind, self.name("pool"), [x], (n, *extent, c), padding=padding,
                                      stride_w=stride, stride_h=stride, filter_w=kernel, filter_h=kernel)

    def mean(self, x, axes, isKept=True):
        name = self.name("mean")
        if isKept:
            return self.graph.mean(name, x, axes)
        kept = [extent for axis, extent in enumerate(self.shape(x)) if axis not in axes]
        return self.graph.addOperator("MEAN", name, [x, self.constant(axes, np.int32)], kept, keep_dims=False)

    def reshape(self, x, shape):
        return self.graph.reshape(self.name("reshape"), x, shape)

    def transpose(self, x, order):
        return self.graph.transpose(self.name("transpose"), x, order)

    def concatenate(self, parts, axis=3):
        return self.graph.concatenate(self.name("concatenate"), parts, axis)

    def slice(self, x, begin, size):
        return self.graph.slice(self.name("slice"), x, begin, size)

    def resize(self, kind, x, height, width, **options):
        n, _, _, c = self.shape(x)
        return self.graph.addOperator(kind, self.name("resize"), [x, self.constant([height, width], np.int32)],
                                      (n, height, width, c), **options)

    def silu(self, x):
        return self.binary("MUL", x, self.unary("LOGISTIC", x))

    def hardSigmoid(self, x):
        """As Keras writes it: relu6(x + 3) / 6."""
        shifted = self.binary("ADD", x, self.constant([3]), activation=ACTIVATION_RELU6)
        return self.binary("MUL", shifted, self.constant([1 / 6]))

    def squeezeExcite(self, x, inner, gate):
        """Channels weighted by what `gate` makes of their means."""
        squeezed = self.conv(self.mean(x, [1, 2]), inner, activation=ACTIVATION_RELU)
        return self.binary("MUL", x, gate(self.conv(squeezed, self.shape(x)[3])))

    def classify(self, x):
        """A layer over the means of all pixels, and probabilities."""
        return self.unary("SOFTMAX", self.dense(self.mean(x, [1, 2], isKept=False), _CLASSES), beta=1.0)

    def outputs(self, *results):
        self.graph.outputs = list(results)
        return self.graph


def mobilenetV1(resolution=33):
    net = _Net("mobilenet_v1")
    x = net.graph.addInput("image", (1, resolution, resolution, 3))
    x = net.conv(x, 8, 3, 2, ACTIVATION_RELU6)
    for outputs, stride in ((12, 1), (16, 2), (16, 1), (24, 2)):
        x = net.depthwise(x, 3, stride, ACTIVATION_RELU6)
        x = net.conv(x, outputs, activation=ACTIVATION_RELU6)
    x = net.averagePool(x, net.shape(x)[1], 2)
    x = net.conv(x, _CLASSES)
    return net.outputs(net.unary("SOFTMAX", net.reshape(x, (1, _CLASSES)), beta=1.0))


def mobilenetV2():
    return networks.mobilenetV2(33, _CLASSES, [(1, 8, 1, 1), (6, 12, 2, 2), (6, 16, 1, 2)])


def mobilenetV3(resolution=33):
    net = _Net("mobilenet_v3")

    def hardSwish(x):
        return net.unary("HARD_SWISH", x)

    def writtenOut(x):
        return net.binary("MUL", x, net.hardSigmoid(x))

    x = hardSwish(net.conv(net.graph.addInput("image", (1, resolution, resolution, 3)), 8, 3, 2))
    for expanded, outputs, kernel, stride, activate in ((8, 8, 3, 2, None), (24, 12, 3, 2, None),
                                                        (36, 12, 5, 1, hardSwish), (40, 16, 5, 2, writtenOut)):
        shortcut = x
        fused = ACTIVATION_NONE if activate else ACTIVATION_RELU
        x = net.conv(x, expanded, activation=fused)
        x = activate(x) if activate else x
        x = net.depthwise(x, kernel, stride, fused)
        x = activate(x) if activate else x
        x = net.squeezeExcite(x, 8, net.hardSigmoid)
        x = net.conv(x, outputs)
        if net.shape(x) == net.shape(shortcut):
            x = net.binary("ADD", shortcut, x)
    x = hardSwish(net.conv(x, 32))
    x = hardSwish(net.conv(net.mean(x, [1, 2]), 40))
    x = net.reshape(net.conv(x, _CLASSES), (1, _CLASSES))
    return net.outputs(net.unary("SOFTMAX", x, beta=1.0))


def efficientNet(resolution=33):
    net = _Net("efficientnet")
    x = net.graph.addInput("image", (1, resolution, resolution, 3))
    # Rescaling and normalisation are layers of the network.
    x = net.binary("MUL", x, net.constant([1 / 128]))
    x = net.binary("SUB", x, net.constant([0.485, 0.456, 0.406]))
    x = net.binary("MUL", x, net.constant([4.37, 4.46, 4.44]))
    x = net.silu(net.conv(net.graph.pad(net.name("pad"), x, 0, 1), 8, 3, 2, padding=PADDING_VALID))
    x = _invertedResiduals(net, x, net.silu)
    return net.outputs(net.classify(net.silu(net.conv(x, 32))))


def efficientNetLite(resolution=33):
    net = _Net("efficientnet_lite")
    x = net.graph.addInput("image", (1, resolution, resolution, 3))
    x = net.conv(x, 8, 3, 2, ACTIVATION_RELU6)
    x = _invertedResiduals(net, x)
    x = net.conv(x, 32, activation=ACTIVATION_RELU6)
    x = net.averagePool(x, net.shape(x)[1], 1)
    x = net.dense(net.reshape(x, (1, 32)), _CLASSES)
    return net.outputs(net.unary("SOFTMAX", x, beta=1.0))


def _invertedResiduals(net, x, activate=None):
    """Without `activate` activations are fused, and channels are not weighted."""
    fused = ACTIVATION_NONE if activate else ACTIVATION_RELU6

    def activated(value):
        return activate(value) if activate else value

    for expansion, outputs, kernel, stride in ((1, 8, 3, 1), (6, 12, 3, 2), (6, 12, 5, 1), (6, 20, 5, 2)):
        shortcut = x
        if expansion != 1:
            x = activated(net.conv(x, expansion * net.shape(x)[3], activation=fused))
        x = activated(net.depthwise(x, kernel, stride, fused))
        if activate:
            x = net.squeezeExcite(x, 4, lambda value: net.unary("LOGISTIC", value))
        x = net.conv(x, outputs)
        if net.shape(x) == net.shape(shortcut):
            x = net.binary("ADD", shortcut, x)
    return x


def resNet():
    return networks.resnet50(33, _CLASSES, 8, (2, 1, 1, 1))


def deepLab(resolution=33):
    """Classes of pixels: dilated convolutions over several distances, enlarged."""
    net = _Net("deeplab")
    image = net.graph.addInput("image", (1, resolution, resolution, 3))
    x = net.conv(image, 8, 3, 2, ACTIVATION_RELU6)
    low = x = net.conv(net.depthwise(x, 3, 2, ACTIVATION_RELU6), 12)
    x = net.conv(net.depthwise(net.conv(x, 24, activation=ACTIVATION_RELU6), 3, 2, ACTIVATION_RELU6), 16)
    # A dilated depthwise convolution, as older converters write it.
    n, h, w, c = net.shape(x)
    grown = [h + 4 + (h + 4) % 2, w + 4 + (w + 4) % 2]
    margins = [[2, grown[0] - h - 2], [2, grown[1] - w - 2]]
    parts = net.graph.addOperator(
        "SPACE_TO_BATCH_ND", net.name("space_to_batch"),
        [x, net.constant([2, 2], np.int32), net.constant(margins, np.int32)],
        (4 * n, grown[0] // 2, grown[1] // 2, c))
    parts = net.depthwise(parts, 3, 1, ACTIVATION_RELU6, PADDING_VALID)
    whole = [2 * extent for extent in net.shape(parts)[1:3]]
    dilated = net.graph.addOperator(
        "BATCH_TO_SPACE_ND", net.name("batch_to_space"),
        [parts, net.constant([2, 2], np.int32),
         net.constant([[0, whole[0] - h], [0, whole[1] - w]], np.int32)], (n, h, w, c))
    # The same as newer ones do, at other distances; and the mean of the whole image.
    branches = [net.conv(dilated, 8, activation=ACTIVATION_RELU)]
    branches += [net.conv(x, 8, 3, activation=ACTIVATION_RELU, dilation=dilation) for dilation in (2, 3)]
    pooled = net.conv(net.averagePool(x, h, h), 8, activation=ACTIVATION_RELU)
    branches.append(net.resize("RESIZE_BILINEAR", pooled, h, w, align_corners=True))
    x = net.conv(net.concatenate(branches), 12, activation=ACTIVATION_RELU)
    # The decoder.
    _, height, width, _ = net.shape(low)
    x = net.resize("RESIZE_BILINEAR", x, height, width, align_corners=True)
    x = net.concatenate([x, net.conv(low, 6, activation=ACTIVATION_RELU)])
    x = net.conv(net.depthwise(x, 3, 1, ACTIVATION_RELU), 5)
    x = net.resize("RESIZE_BILINEAR", x, resolution, resolution, align_corners=True)
    classes = net.graph.addOperator("ARG_MAX", "classes", [x, net.constant(3, np.int32)],
                                    net.shape(x)[:3], np.int32, output_type=schema.TYPE_CODES[np.dtype(np.int32)])
    return net.outputs(x, classes)


def yolo(resolution=32):
    """A detector without anchors (YOLOv8): boxes as expected values of distances, scores of classes."""
    net = _Net("yolo")
    bins, classes = 8, 3

    def layer(x, outputs, kernel=1, stride=1):
        return net.silu(net.conv(x, outputs, kernel, stride))

    def crossStage(x, outputs):
        x = layer(x, outputs)
        half = outputs // 2
        _, h, w, _ = net.shape(x)
        left = net.slice(x, [0, 0, 0, 0], [1, h, w, half])
        right = net.slice(x, [0, 0, 0, half], [1, h, w, half])
        inner = net.binary("ADD", right, layer(layer(right, half, 3), half, 3))
        return layer(net.concatenate([left, right, inner]), outputs)

    x = layer(net.graph.addInput("image", (1, resolution, resolution, 3)), 8, 3, 2)
    x = crossStage(layer(x, 12, 3, 2), 12)
    fine = x
    x = crossStage(layer(x, 16, 3, 2), 16)
    # Pools of several sizes, one after the other.
    pools = [layer(x, 8)]
    for _ in range(3):
        pools.append(net.maxPool(pools[-1], 5, 1))
    coarse = layer(net.concatenate(pools), 16)
    _, h, w, _ = net.shape(coarse)
    x = net.resize("RESIZE_NEAREST_NEIGHBOR", coarse, 2 * h, 2 * w)
    fine = crossStage(net.concatenate([x, fine]), 12)
    coarse = crossStage(net.concatenate([layer(fine, 12, 3, 2), coarse]), 16)
    boxes, scores, places, steps = [], [], [], []
    for x, step in ((fine, 4), (coarse, 8)):
        _, h, w, _ = net.shape(x)
        boxes.append(net.reshape(net.conv(layer(x, 12, 3), 4 * bins), (1, h * w, 4 * bins)))
        scores.append(net.reshape(net.conv(layer(x, 12, 3), classes), (1, h * w, classes)))
        places += [(column + 0.5, row + 0.5) for row in range(h) for column in range(w)]
        steps += [[step]] * (h * w)
    distances = net.concatenate(boxes, 1)
    count = net.shape(distances)[1]
    parts = net.unary("SOFTMAX", net.reshape(distances, (1, count, 4, bins)), beta=1.0)
    expected = net.graph.addOperator(
        "SUM", net.name("sum"),
        [net.binary("MUL", parts, net.constant(np.arange(bins))), net.constant([3], np.int32)],
        (1, count, 4), keep_dims=False)
    begin = net.slice(expected, [0, 0, 0], [1, count, 2])
    end = net.slice(expected, [0, 0, 2], [1, count, 2])
    grid = net.constant([places])
    first, last = net.binary("SUB", grid, begin), net.binary("ADD", grid, end)
    middle = net.binary("MUL", net.binary("ADD", first, last), net.constant([0.5]))
    box = net.concatenate([middle, net.binary("SUB", last, first)], 2)
    box = net.binary("MUL", box, net.constant([steps]))
    scores = net.unary("LOGISTIC", net.concatenate(scores, 1))
    return net.outputs(net.transpose(net.concatenate([box, scores], 2), (0, 2, 1)))


def anchoredYolo(resolution=32):
    """A head with anchors (YOLOv5): boxes, as parts of the image, are squares of what the network computes. A list of
    the best follows, as a detector's post-processing makes it."""
    net = _Net("anchored_yolo")
    anchors, classes = 3, 4
    values = 5 + classes
    x = net.conv(net.graph.addInput("image", (1, resolution, resolution, 3)), 8, 3, 2, ACTIVATION_RELU)
    x = net.unary("LEAKY_RELU", net.conv(x, 12, 3, 2), alpha=0.1)
    x = net.maxPool(x, 2, 2)
    x = net.conv(x, anchors * values)
    _, h, w, _ = net.shape(x)
    x = net.transpose(net.reshape(x, (1, h * w, anchors, values)), (0, 2, 1, 3))
    x = net.unary("LOGISTIC", x)
    grid = net.constant([[(column - 0.5, row - 0.5) for row in range(h) for column in range(w)]])
    sizes = net.constant(np.array([[[[10, 13]], [[16, 30]], [[33, 23]]]]) / resolution)
    rows = (1, anchors, h * w)
    doubled = net.binary("MUL", net.slice(x, [0, 0, 0, 0], [*rows, 2]), net.constant([2]))
    middle = net.binary("MUL", net.binary("ADD", doubled, grid), net.constant([8 / resolution]))
    doubled = net.binary("MUL", net.slice(x, [0, 0, 0, 2], [*rows, 2]), net.constant([2]))
    size = net.binary("MUL", net.binary("MUL", doubled, doubled), sizes)
    rest = net.slice(x, [0, 0, 0, 4], [*rows, values - 4])
    found = net.reshape(net.concatenate([middle, size, rest]), (1, anchors * h * w, values))
    scores = net.reshape(net.slice(found, [0, 0, 4], [1, anchors * h * w, 1]), (1, anchors * h * w))
    return net.outputs(found, *_best(net, scores, 7))


def _best(net, scores, count):
    graph = net.graph
    shape = (*graph.shape(scores)[:-1], count)
    results = [graph.addTensor("best", shape), graph.addTensor("places_of_best", shape, np.int32)]
    graph.operators.append(Operator("TOPK_V2", [scores, net.constant(count, np.int32)], results))
    return results


def bert(tokens=7, width=24, heads=3, blocks=2, form="f32", hasMask=True):
    """An encoder of texts. `form` is how its matrices are stored: one of stored_weights.FORMS."""
    net = _Net("bert")
    graph, maker = net.graph, WeightMaker(net.seed, form)
    ids = graph.addInput("ids", (1, tokens), np.int32)
    segments = graph.addInput("segments", (1, tokens), np.int32)

    def table(name, rows):
        return graph.addConstant(name, bell(net.seed, name, (rows, width), 1.0))

    def linear(name, x, outputs):
        inputs = net.shape(x)[-1]
        return layers.linear(graph, name, x, maker.matrix(name + "/weights", (outputs, inputs), inputs ** -0.5),
                             maker.vector(name + "/bias", outputs, 0.02))

    def norm(name, x):
        """As TensorFlow writes it: the difference is squared by an operator of its own."""
        last = len(net.shape(x)) - 1
        mean = net.mean(x, [last])
        variance = net.mean(net.binary("SQUARED_DIFFERENCE", x, mean), [last])
        factor = net.unary("RSQRT", net.binary("ADD", variance, net.constant([1e-5])))
        scale = maker.vector(name + "/scale", width, 0.02, mean=1.0).tensorIn(graph)
        offset = maker.vector(name + "/offset", width, 0.02).tensorIn(graph)
        factor = net.binary("MUL", factor, scale)
        shift = net.binary("SUB", offset, net.binary("MUL", mean, factor))
        return net.binary("ADD", net.binary("MUL", x, factor), shift)

    def byHead(x):
        return net.transpose(net.reshape(x, (1, tokens, heads, width // heads)), (0, 2, 1, 3))

    def gather(name, rows, indices):
        return graph.addOperator("GATHER", name, [table(name + "/table", rows), indices], (1, tokens, width), axis=0)

    x = net.binary("ADD", gather("words", WORDS, ids), gather("kinds", 2, segments))
    x = net.binary("ADD", x, graph.addConstant("positions", bell(net.seed, "positions", (1, tokens, width), 1.0)))
    x = norm("embedded", x)
    if hasMask:
        mask = net.reshape(graph.addInput("mask", (1, tokens), np.int32), (1, 1, 1, tokens))
        seen = graph.addOperator("CAST", "seen", [mask], (1, 1, 1, tokens),
                                 in_type=schema.TYPE_CODES[np.dtype(np.int32)],
                                 out_type=schema.TYPE_CODES[np.dtype(np.float32)])
        hidden = net.binary("MUL", net.binary("SUB", net.constant([1]), seen), net.constant([_MASKED]))
    for block in range(blocks):
        name = f"block_{block}"
        queries, keys, values = (byHead(linear(f"{name}/{kind}", x, width))
                                 for kind in ("queries", "keys", "values"))
        queries = net.binary("MUL", queries, net.constant([(width // heads) ** -0.5]))
        logits = net.graph.batchMatmul(net.name("logits"), queries, keys, isTransposed=True)
        if hasMask:
            logits = net.binary("ADD", logits, hidden)
        parts = net.unary("SOFTMAX", logits, beta=1.0)
        mixed = net.transpose(net.graph.batchMatmul(net.name("mixed"), parts, values), (0, 2, 1, 3))
        mixed = linear(name + "/mixed", net.reshape(mixed, (1, tokens, width)), width)
        x = norm(name + "/attended", net.binary("ADD", x, mixed))
        opened = net.unary("GELU", linear(name + "/open", x, 2 * width), approximate=False)
        x = norm(name, net.binary("ADD", x, linear(name + "/close", opened, width)))
    first = net.reshape(net.slice(x, [0, 0, 0], [1, 1, width]), (1, width))
    pooled = net.unary("TANH", linear("pooled", first, width))
    return net.outputs(x, linear("logits", pooled, 2))


FAMILIES = {
    "mobilenet_v1": mobilenetV1,
    "mobilenet_v2": mobilenetV2,
    "mobilenet_v3": mobilenetV3,
    "efficientnet": efficientNet,
    "efficientnet_lite": efficientNetLite,
    "resnet": resNet,
    "deeplab": deepLab,
    "yolo": yolo,
    "anchored_yolo": anchoredYolo,
    "bert": bert,
}
