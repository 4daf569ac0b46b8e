# SPDX-License-Identifier: Apache-2.0
"""Language models with the layers of Gemma 2B and Phi-2, as the converter writes them.

The signatures `prefill` (a row of tokens) and `decode` (one token) share all weights. Both take the
tokens, their positions and the key-value cache, and return the cache with the new entries; only
`decode` returns logits, so the rest of the last layer is missing in `prefill`.
"""

from dataclasses import dataclass

import numpy as np

from . import layers
from . import tflite_schema as schema
from .graph import Graph, Model, Signature
from .stored_weights import WeightMaker

_ROTARY_BASE = 10000.0


@dataclass(frozen=True)
class Shape:
    layers: int
    hidden: int
    feedForward: int
    heads: int
    groups: int  # heads that share keys and values count as one
    headSize: int
    vocabulary: int
    activation: str  # "gelu" or "silu"
    isGated: bool  # the feed-forward part multiplies two projections
    norm: str  # "rms" or "layer"
    rotatedPart: float  # of each head
    hasBias: bool
    isParallel: bool  # attention and feed-forward part read the same input
    isTied: bool  # the logits' weights are the embedding table
    scalesEmbedding: bool  # by the root of `hidden`


GEMMA_2B = Shape(layers=18, hidden=2048, feedForward=16384, heads=8, groups=1, headSize=256,
                 vocabulary=256000, activation="gelu", isGated=True, norm="rms", rotatedPart=1.0,
                 hasBias=False, isParallel=False, isTied=True, scalesEmbedding=True)
PHI_2 = Shape(layers=32, hidden=2560, feedForward=10240, heads=32, groups=32, headSize=80,
              vocabulary=51200, activation="gelu", isGated=False, norm="layer", rotatedPart=0.4,
              hasBias=True, isParallel=True, isTied=False, scalesEmbedding=False)


def languageModel(name, shape, form="f32", prefill=128, cache=512, isComposite=False, seed=1):
    """A graph.Model. `form` is one of stored_weights.FORMS; with `isComposite` norms and attention
    are composites."""
    weights = _Weights(shape, WeightMaker(seed, form))
    signatures = [_Builder(key, shape, weights, tokens, cache, isComposite).build()
                  for key, tokens in (("prefill", prefill), ("decode", 1))]
    return Model(name, signatures)


class _Weights:
    """All weights of a model by name, which both signatures use."""

    def __init__(self, shape, maker):
        self.shape = shape
        self.maker = maker
        self.byName = {}
        std = 0.3 / shape.hidden ** 0.5 if shape.isTied else 0.02
        self._add(maker.matrix("embedding", (shape.vocabulary, shape.hidden), std))
        if not shape.isTied:
            self._addMatrix("logits", shape.vocabulary, shape.hidden, 1.0)
        if shape.hasBias:
            self._add(maker.vector("logits/bias", shape.vocabulary, 0.01))
        self._addNorm("final_norm")
        for layer in range(shape.layers):
            self._addLayer(f"layer_{layer}")

    def _addLayer(self, name):
        shape = self.shape
        self._addNorm(name + "/norm")
        if not shape.isParallel:
            self._addNorm(name + "/feed_forward_norm")
        projected = shape.heads * shape.headSize
        shared = 2 * shape.groups * shape.headSize
        # What is added to the residual stream is small beside it.
        self._addMatrix(name + "/qkv", projected + shared, shape.hidden, 1.0)
        self._addMatrix(name + "/out", shape.hidden, projected, 0.5)
        if shape.isGated:
            self._addMatrix(name + "/gate", shape.feedForward, shape.hidden, 1.0)
        self._addMatrix(name + "/up", shape.feedForward, shape.hidden, 1.0)
        self._addMatrix(name + "/down", shape.hidden, shape.feedForward, 0.5)

    def _addMatrix(self, name, outputs, inputs, gain):
        self._add(self.maker.matrix(name, (outputs, inputs), gain / inputs ** 0.5))
        if self.shape.hasBias and name != "logits":
            self._add(self.maker.vector(name + "/bias", outputs, 0.01))

    def _addNorm(self, name):
        self._add(self.maker.vector(name, self.shape.hidden, 0.02, mean=1.0))
        if self.shape.norm == "layer":
            self._add(self.maker.vector(name + "/offset", self.shape.hidden, 0.02))

    def _add(self, weight):
        self.byName[weight.name] = weight


class _Builder:
    """One signature."""

    def __init__(self, key, shape, weights, tokens, cache, isComposite):
        self.key = key
        self.shape = shape
        self.weights = weights.byName
        self.tokens = tokens
        self.cache = cache
        self.isComposite = isComposite
        self.graph = Graph(key)

    def build(self):
        graph, shape, t = self.graph, self.shape, self.tokens
        tokens = graph.addInput("tokens", (1, t), np.int32)
        positions = graph.addInput("input_pos", (t,), np.int32)
        inputs = {"tokens": tokens, "input_pos": positions}
        cacheShape = 1, self.cache, shape.groups, shape.headSize
        for layer in range(shape.layers):
            for kind in ("k", "v"):
                name = f"kv_cache_{kind}_{layer}"
                inputs[name] = graph.addInput(name, cacheShape)
        hasLogits = self.key == "decode"
        x = self._embed(tokens)
        self._addPositions(positions)
        outputs = {}
        for layer in range(shape.layers):
            isEnd = not hasLogits and layer == shape.layers - 1
            x = self._layer(layer, x, inputs, outputs, isEnd)
        if hasLogits:
            name = "embedding" if shape.isTied else "logits"
            outputs["logits"] = layers.linear(graph, "logits", self._norm("final_norm", x),
                                              self.weights[name], self.weights.get("logits/bias"))
        graph.outputs = list(outputs.values())
        return Signature(self.key, graph, inputs, outputs)

    def _embed(self, tokens):
        graph, hidden = self.graph, self.shape.hidden
        rows = graph.reshape("token_list", tokens, (self.tokens,))
        x = graph.addOperator("EMBEDDING_LOOKUP", "embedded",
                              [rows, self.weights["embedding"].tensorIn(graph)],
                              (self.tokens, hidden))
        x = graph.reshape("embedded_row", x, (1, self.tokens, hidden))
        if self.shape.scalesEmbedding:
            x = graph.multiply("embedded_scaled", x,
                               layers.constant(graph, "embedding_scale",
                                               np.float32(hidden ** 0.5)))
        return x

    def _addPositions(self, positions):
        """What all layers need of the positions: rotations, mask, place in the cache."""
        graph, t = self.graph, self.tokens
        self.rotated = int(self.shape.rotatedPart * self.shape.headSize) // 2 * 2
        frequencies = _ROTARY_BASE ** (-np.arange(0, self.rotated, 2) / self.rotated)
        column = graph.reshape("position_column", positions, (1, t, 1, 1))
        real = graph.addOperator("CAST", "position_real", [column], (1, t, 1, 1),
                                 in_type=schema.TYPE_CODES[np.dtype(np.int32)],
                                 out_type=schema.TYPE_CODES[np.dtype(np.float32)])
        angles = graph.multiply("angles", real, layers.constant(
            graph, "frequencies", frequencies.astype(np.float32).reshape(1, 1, 1, -1)))
        self.cosines = graph.unary("COS", "cosines", angles)
        self.sines = graph.unary("SIN", "sines", angles)
        mask = layers.constant(graph, "causal_mask", layers.causalMask(self.cache))
        rows = graph.addOperator("GATHER", "mask_rows", [mask, positions], (t, self.cache), axis=0)
        self.mask = graph.reshape("mask", rows, (1, 1, t, self.cache))
        first = positions if t == 1 else graph.slice("first_position", positions, [0], [1])
        zero = layers.constant(graph, "zero", np.int32(0))
        self.begin = graph.addOperator(
            "PACK", "cache_begin", [zero, graph.reshape("first_scalar", first, ()), zero, zero],
            (4,), np.int32, values_count=4, axis=0)

    def _layer(self, layer, x, inputs, outputs, isEnd):
        graph, shape = self.graph, self.shape
        name = f"layer_{layer}"
        normal = self._norm(name + "/norm", x)
        queries, keys, values = self._heads(name, normal)
        for kind, update in (("k", keys), ("v", values)):
            key = f"kv_cache_{kind}_{layer}"
            outputs[key] = graph.addOperator("DYNAMIC_UPDATE_SLICE", f"{name}/cache_{kind}",
                                             [inputs[key], update, self.begin],
                                             graph.shape(inputs[key]))
        if isEnd:
            return None
        mixed = layers.attention(graph, name + "/attention", queries,
                                 outputs[f"kv_cache_k_{layer}"], outputs[f"kv_cache_v_{layer}"],
                                 self.mask, self.isComposite)
        mixed = graph.reshape(name + "/heads", mixed, (1, self.tokens, shape.heads * shape.headSize))
        attended = graph.add(name + "/attended", x, self._linear(name + "/out", mixed))
        if not shape.isParallel:
            normal = self._norm(name + "/feed_forward_norm", attended)
        return graph.add(name, attended, self._feedForward(name, normal))

    def _heads(self, name, x):
        graph, t = self.graph, self.tokens
        heads, groups, size = self.shape.heads, self.shape.groups, self.shape.headSize
        joined = graph.reshape(name + "/joined", self._linear(name + "/qkv", x),
                               (1, t, heads + 2 * groups, size))

        def part(kind, first, count):
            return graph.slice(f"{name}/{kind}", joined, [0, 0, first, 0], [1, t, count, size])

        return (self._rotate(name + "/queries", part("q", 0, heads)),
                self._rotate(name + "/keys", part("k", heads, groups)),
                part("v", heads + groups, groups))

    def _rotate(self, name, x):
        """Turns pairs of elements by angles that grow with the position (RoPE)."""
        graph, half = self.graph, self.rotated // 2
        _, t, heads, size = graph.shape(x)

        def part(kind, first, count):
            return graph.slice(f"{name}/{kind}", x, [0, 0, 0, first], [1, t, heads, count])

        def product(kind, a, b):
            return graph.multiply(f"{name}/{kind}", a, b)

        left, right = part("left", 0, half), part("right", half, half)
        parts = [graph.subtract(name + "/new_left", product("lc", left, self.cosines),
                                product("rs", right, self.sines)),
                 graph.add(name + "/new_right", product("rc", right, self.cosines),
                           product("ls", left, self.sines))]
        if self.rotated < size:
            parts.append(part("rest", self.rotated, size - self.rotated))
        return graph.concatenate(name, parts, 3)

    def _feedForward(self, name, x):
        graph, shape = self.graph, self.shape
        opened = self._linear(name + ("/gate" if shape.isGated else "/up"), x)
        if shape.activation == "gelu":
            opened = graph.unary("GELU", name + "/activated", opened, approximate=True)
        else:
            opened = layers.silu(graph, name + "/activated", opened)
        if shape.isGated:
            opened = graph.multiply(name + "/gated", opened, self._linear(name + "/up", x))
        return self._linear(name + "/down", opened)

    def _linear(self, name, x):
        return layers.linear(self.graph, name, x, self.weights[name],
                             self.weights.get(name + "/bias"))

    def _norm(self, name, x):
        if self.shape.norm == "rms":
            return layers.rmsNorm(self.graph, name, x, self.weights[name], 1e-6, self.isComposite)
        return layers.layerNorm(self.graph, name, x, self.weights[name],
                                self.weights[name + "/offset"])
