# SPDX-License-Identifier: Apache-2.0
"""Attention, einsum and embeddings."""

import numpy as np
import tensorflow as tf
from tensorflow.compiler.tf2xla.python import xla

from . import FLOAT, FOUR_BIT, INT16, Open, add, boolean, f32, i32, op

layers = tf.keras.layers
MATRICES = ("float32", "int8", "int8-io", "int16x8")
LAYERS = (*FLOAT, "dynamic", "int8", "int16x8", "aiedge-dynamic8", "aiedge-weights8")
LENGTH = Open(6, 9)


def heads(causal=False):
    def build():
        layer = layers.MultiHeadAttention(2, 8)
        return lambda x: layer(x, x, use_causal_mask=causal)
    return build


def cross():
    layer = layers.MultiHeadAttention(2, 4)
    return lambda x, y: layer(x, y)


def block():
    attention = layers.MultiHeadAttention(2, 8)
    norms = layers.LayerNormalization(), layers.LayerNormalization()
    up, down = layers.Dense(32, activation="gelu"), layers.Dense(16)

    def function(x):
        y = norms[0](x)
        x = x + attention(y, y)
        return x + down(up(norms[1](x)))
    return function


def tiny():
    """Tokens to the scores of the next one."""
    table = tf.Variable(tf.random.uniform([40, 16], -1, 1))
    places = tf.Variable(tf.random.uniform([12, 16], -1, 1))
    inner = block()

    def function(tokens):
        x = tf.gather(table, tokens) + places[:tf.shape(tokens)[1]]
        return tf.matmul(inner(x), table, transpose_b=True)
    return function


def rotary(x):
    half = tf.shape(x)[-1] // 2
    count = tf.cast(tf.range(tf.shape(x)[1]), tf.float32)
    angles = count[:, tf.newaxis] * tf.constant(10000.0 ** -np.linspace(0, 1, 4), tf.float32)
    one, two = x[..., :half], x[..., half:]
    cos, sin = tf.cos(angles), tf.sin(angles)
    return tf.concat([one * cos - two * sin, one * sin + two * cos], -1)


def masked(q, k, v, mask):
    scores = tf.matmul(q, k, transpose_b=True) * 0.35
    scores += tf.where(mask, 0.0, -1e9)
    return tf.matmul(tf.nn.softmax(scores), v)


def cached(cache, new, position):
    """A key-value cache that one step writes into."""
    cache = tf.tensor_scatter_nd_update(cache, position[:, tf.newaxis], new)
    return cache, tf.linalg.matvec(cache, new[0])


def dynamicUpdate(cache, new, at):
    return xla.dynamic_update_slice(cache, new, at)


add("attention", heads(), f32(1, 6, 16), recipes=(*LAYERS, *FOUR_BIT))
add("attention causal", heads(True), f32(1, 6, 16), recipes=LAYERS)
add("attention of any length", heads(), f32(1, LENGTH, 16), recipes=("float32", "dynamic", "int8"))
add("attention of any batch and length", heads(), f32(Open(1, 2), LENGTH, 16),
    recipes=("float32", "dynamic"))
add("attention across", cross, f32(2, 4, 8), f32(2, 6, 8), recipes=LAYERS)
add("transformer block", block, f32(1, 6, 16), recipes=(*LAYERS, *INT16))
add("transformer block of any length", block, f32(1, LENGTH, 16), recipes=("float32", "dynamic"))
add("transformer of tokens", tiny, i32(1, 6, high=40), recipes=(*FLOAT, "dynamic"))
add("transformer of any tokens", tiny, i32(Open(1, 2), LENGTH, high=40),
    recipes=("float32", "dynamic"))
op("rotary positions", rotary, f32(1, 6, 8))
op("rotary positions of any length", rotary, f32(1, LENGTH, 8))
op("masked attention", masked, f32(2, 5, 8), f32(2, 6, 8), f32(2, 6, 8), boolean(2, 5, 6))
op("cache scatter", cached, f32(8, 4), f32(1, 4), i32(1, high=8))
op("cache dynamic update", dynamicUpdate, f32(8, 4), f32(2, 4), i32(2, high=3))
for text, one, two in (("ij,jk->ik", (4, 6), (6, 5)), ("bij,bjk->bik", (2, 4, 6), (2, 6, 5)),
                       ("bqhd,bkhd->bhqk", (1, 4, 2, 8), (1, 5, 2, 8)),
                       ("bhqk,bkhd->bqhd", (1, 2, 4, 5), (1, 5, 2, 8)),
                       ("abc,cd->abd", (2, 3, 4), (4, 5)), ("ab,ab->a", (3, 4), (3, 4)),
                       ("abcd,cde->abe", (2, 3, 4, 5), (4, 5, 6))):
    op(f"einsum {text}", lambda x, y, text=text: tf.einsum(text, x, y), f32(*one), f32(*two),
       recipes=MATRICES)
op("einsum of any length", lambda x, y: tf.einsum("bqd,bkd->bqk", x, y), f32(1, LENGTH, 8),
   f32(1, Open(5, 3), 8), recipes=("float32", "int8"))
for adjoint in (False, True):
    op(f"matmul {'adjoint' if adjoint else 'plain'}",
       lambda x, y, adjoint=adjoint: tf.matmul(x, y, transpose_b=adjoint), f32(3, 4, 5),
       f32(3, 6, 5) if adjoint else f32(3, 5, 6), recipes=MATRICES)
op("matmul broadcast", lambda x, y: tf.matmul(x, y), f32(2, 1, 4, 5), f32(3, 5, 6),
   recipes=MATRICES)
