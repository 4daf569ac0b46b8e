# SPDX-License-Identifier: Apache-2.0
"""The three networks of Stable Diffusion 1: text encoder, U-Net and image decoder.

Each is a graph.Model with one signature; they share nothing.
"""

import numpy as np

from . import layers
from .graph import Graph, Model, Signature
from .stored_weights import WeightMaker

_TEXT_LENGTH = 77
_TEXT_WIDTH = 768
# Convolutions with fewer channels stay float32, as quantisers leave them.
_FEWEST_CHANNELS = 32


class _Network:
    """A graph and its weights; names of weights are those of their layers."""

    def __init__(self, key, form, seed, isComposite=False, groups=32):
        self.key = key
        self.graph = Graph(key)
        self.maker = WeightMaker(seed, form)
        self.isComposite = isComposite
        self.groups = groups

    def model(self, name, inputs, outputs):
        self.graph.outputs = list(outputs.values())
        return Model(name, [Signature(self.key, self.graph, inputs, outputs)])

    def linear(self, name, x, outputs, hasBias=True):
        inputs = self.graph.shape(x)[-1]
        weight = self.maker.matrix(name, (outputs, inputs), inputs ** -0.5)
        bias = self.maker.vector(name + "/bias", outputs, 0.02) if hasBias else None
        return layers.linear(self.graph, name + "/result", x, weight, bias)

    def conv(self, name, x, outputs, kernel=3, stride=1):
        graph = self.graph
        n, h, w, inputs = graph.shape(x)
        form = None if min(inputs, outputs) >= _FEWEST_CHANNELS else "f32"
        form = "i4" if form is None and self.maker.form == "i4b32" else form
        weight = self.maker.matrix(name, (outputs, kernel, kernel, inputs),
                                   (kernel * kernel * inputs) ** -0.5, form)
        bias = self.maker.vector(name + "/bias", outputs, 0.02)
        return graph.addOperator(
            "CONV_2D", name + "/result", [x, weight.tensorIn(graph), bias.tensorIn(graph)],
            (n, -(-h // stride), -(-w // stride), outputs), stride_h=stride, stride_w=stride)

    def layerNorm(self, name, x):
        return layers.layerNorm(self.graph, name, x, *self._normWeights(name, x))

    def groupNorm(self, name, x):
        return layers.groupNorm(self.graph, name, x, self.groups, *self._normWeights(name, x),
                                isComposite=self.isComposite)

    def _normWeights(self, name, x):
        size = self.graph.shape(x)[-1]
        return (self.maker.vector(name + "/scale", size, 0.02, mean=1.0),
                self.maker.vector(name + "/offset", size, 0.02))

    def attention(self, name, x, context, heads, mask=None, hasBias=False):
        graph = self.graph
        _, t, width = graph.shape(x)

        def project(kind, source):
            length = graph.shape(source)[1]
            return graph.reshape(f"{name}/{kind}_heads",
                                 self.linear(f"{name}/{kind}", source, width, hasBias),
                                 (1, length, heads, width // heads))

        mixed = layers.attention(graph, name + "/mixed", project("q", x), project("k", context),
                                 project("v", context), mask, self.isComposite)
        return self.linear(name + "/out", graph.reshape(name + "/joined", mixed, (1, t, width)),
                           width)

    def residual(self, name, x, outputs, time=None):
        """Two convolutions beside a shortcut; `time` is added between them."""
        graph = self.graph
        y = self.conv(name + "/conv1", layers.silu(graph, name + "/active1",
                                                   self.groupNorm(name + "/norm1", x)), outputs)
        if time is not None:
            shift = self.linear(name + "/time", layers.silu(graph, name + "/active_time", time),
                                outputs)
            y = graph.add(name + "/timed", y,
                          graph.reshape(name + "/time_pixel", shift, (1, 1, 1, outputs)))
        y = self.conv(name + "/conv2", layers.silu(graph, name + "/active2",
                                                   self.groupNorm(name + "/norm2", y)), outputs)
        if graph.shape(x)[3] != outputs:
            x = self.conv(name + "/shortcut", x, outputs, 1)
        return graph.add(name, y, x)

    def spatialTransformer(self, name, x, context, heads):
        """Attention of the pixels to each other and to the text, and a feed-forward part."""
        graph = self.graph
        _, h, w, c = graph.shape(x)
        y = self.conv(name + "/in", self.groupNorm(name + "/norm", x), c, 1)
        y = graph.reshape(name + "/pixels", y, (1, h * w, c))
        normal = self.layerNorm(name + "/norm1", y)
        y = graph.add(name + "/sum1", y, self.attention(name + "/self", normal, normal, heads))
        normal = self.layerNorm(name + "/norm2", y)
        y = graph.add(name + "/sum2", y, self.attention(name + "/cross", normal, context, heads))
        both = self.linear(name + "/open", self.layerNorm(name + "/norm3", y), 8 * c)
        value = graph.slice(name + "/value", both, [0, 0, 0], [1, h * w, 4 * c])
        gate = graph.slice(name + "/gate", both, [0, 0, 4 * c], [1, h * w, 4 * c])
        gate = graph.unary("GELU", name + "/gate_active", gate, approximate=False)
        closed = self.linear(name + "/close", graph.multiply(name + "/gated", value, gate), c)
        y = graph.add(name + "/sum3", y, closed)
        y = self.conv(name + "/back", graph.reshape(name + "/image", y, (1, h, w, c)), c, 1)
        return graph.add(name, x, y)

    def enlarge(self, name, x):
        graph = self.graph
        n, h, w, c = graph.shape(x)
        size = layers.constant(graph, name + "/size", np.array([2 * h, 2 * w], np.int32))
        larger = graph.addOperator("RESIZE_NEAREST_NEIGHBOR", name + "/larger", [x, size],
                                   (n, 2 * h, 2 * w, c))
        return self.conv(name, larger, c)

    def last(self, x, outputs):
        normal = self.groupNorm("last_norm", x)
        return self.conv("last", layers.silu(self.graph, "last_active", normal), outputs)


def textEncoder(form="f32", depth=12, width=_TEXT_WIDTH, heads=12, vocabulary=49408,
                isComposite=False, seed=1):
    """CLIP's text model: tokens [1, 77] to context [1, 77, width]."""
    network = _Network("encode", form, seed, isComposite)
    graph = network.graph
    tokens = graph.addInput("tokens", (1, _TEXT_LENGTH), np.int32)
    table = network.maker.matrix("embedding", (vocabulary, width), 0.5)
    rows = graph.reshape("token_list", tokens, (_TEXT_LENGTH,))
    x = graph.addOperator("EMBEDDING_LOOKUP", "embedded", [rows, table.tensorIn(graph)],
                          (_TEXT_LENGTH, width))
    x = graph.reshape("embedded_row", x, (1, _TEXT_LENGTH, width))
    positions = network.maker.array("positions", (1, _TEXT_LENGTH, width), 0.1)
    x = graph.add("placed", x, positions.tensorIn(graph))
    mask = layers.constant(graph, "mask", layers.causalMask(_TEXT_LENGTH)[None, None])
    for layer in range(depth):
        name = f"layer_{layer}"
        normal = network.layerNorm(name + "/norm1", x)
        x = graph.add(name + "/sum1", x,
                      network.attention(name + "/attention", normal, normal, heads, mask, True))
        opened = network.linear(name + "/open", network.layerNorm(name + "/norm2", x), 4 * width)
        # x * logistic(1.702 x), CLIP's approximation of GELU.
        slope = layers.constant(graph, name + "/slope", np.float32(1.702))
        gate = graph.unary("LOGISTIC", name + "/gate",
                           graph.multiply(name + "/steep", opened, slope))
        active = graph.multiply(name + "/active", opened, gate)
        x = graph.add(name, x, network.linear(name + "/close", active, width))
    x = network.layerNorm("last_norm", x)
    return network.model("text_encoder", {"tokens": tokens}, {"context": x})


def unet(form="f32", latent=64, channels=320, levels=4, blocks=2, heads=8, groups=32,
         contextWidth=_TEXT_WIDTH, isComposite=False, seed=1):
    """latents [1, latent, latent, 4], context and time embedding to noise of the latents' shape.

    The published network has 4 levels of 2 blocks; the lowest of 4 has no attention.
    """
    network = _Network("diffusion", form, seed, isComposite, groups)
    graph = network.graph
    latents = graph.addInput("latents", (1, latent, latent, 4))
    context = graph.addInput("context", (1, _TEXT_LENGTH, contextWidth))
    embedding = graph.addInput("time_embedding", (1, channels))
    time = layers.silu(graph, "time_active", network.linear("time1", embedding, 4 * channels))
    time = network.linear("time2", time, 4 * channels)
    widths = [channels * factor for factor in (1, 2, 4, 4)][:levels]

    def block(name, x, width, level):
        x = network.residual(name + "/residual", x, width, time)
        if level < 3:
            x = network.spatialTransformer(name + "/transformer", x, context, heads)
        return x

    x = network.conv("first", latents, channels)
    skips = [x]
    for level, width in enumerate(widths):
        for number in range(blocks):
            x = block(f"down_{level}_{number}", x, width, level)
            skips.append(x)
        if level < levels - 1:
            x = network.conv(f"down_{level}_smaller", x, width, stride=2)
            skips.append(x)
    x = network.residual("middle_1", x, widths[-1], time)
    x = network.spatialTransformer("middle_2", x, context, heads)
    x = network.residual("middle_3", x, widths[-1], time)
    for level, width in reversed(list(enumerate(widths))):
        for number in range(blocks + 1):
            name = f"up_{level}_{number}"
            x = block(name, graph.concatenate(name + "/joined", [x, skips.pop()], 3), width, level)
        if level:
            x = network.enlarge(f"up_{level}_larger", x)
    return network.model("unet", {"latents": latents, "context": context,
                                  "time_embedding": embedding}, {"noise": network.last(x, 4)})


def imageDecoder(form="f32", latent=64, channels=128, groups=32, isComposite=False, seed=1):
    """latents [1, latent, latent, 4] to an image of eight times their size."""
    network = _Network("decode", form, seed, isComposite, groups)
    graph = network.graph
    latents = graph.addInput("latents", (1, latent, latent, 4))
    widest = 4 * channels
    x = network.conv("first", network.conv("mixed", latents, 4, 1), widest)
    x = network.residual("middle_1", x, widest)
    normal = graph.reshape("pixels", network.groupNorm("middle_norm", x),
                           (1, latent * latent, widest))
    attended = network.attention("middle_2", normal, normal, 1, hasBias=True)
    x = graph.add("middle_sum", x, graph.reshape("image", attended,
                                                 (1, latent, latent, widest)))
    x = network.residual("middle_3", x, widest)
    for level, factor in enumerate((4, 4, 2, 1)):
        for number in range(3):
            x = network.residual(f"up_{level}_{number}", x, factor * channels)
        if level < 3:
            x = network.enlarge(f"up_{level}_larger", x)
    return network.model("image_decoder", {"latents": latents}, {"image": network.last(x, 3)})
