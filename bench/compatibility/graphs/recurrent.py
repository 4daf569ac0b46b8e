# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers: of Keras 2, which the converter turns into one operator, of Keras 3, which are
loops, and unrolled. The converter takes open batches of unrolled ones only."""

import tensorflow as tf
import tf_keras

from . import Open, add, f32, i32

FUSED = ("float32", "float16", "dynamic", "int8", "int8-io", "int16x8", "aiedge-dynamic8")
# LiteRT refuses the converter's LSTM of 16-bit activations: one model shows it.
QUANTIZED = ("float32", "float16", "dynamic", "int8", "int8-io", "aiedge-dynamic8")
LOOPS = ("float32", "float16", "dynamic", "aiedge-dynamic8")
OPEN = ("float32", "dynamic")


def keras2(make):
    def build():
        layer = make(tf_keras.layers)
        return lambda x: layer(x)
    return build


def keras3(make):
    def build():
        layer = make(tf.keras.layers)
        return lambda x: layer(x)
    return build


CELLS = {"LSTM": lambda kind, **words: kind.LSTM(6, **words),
         "GRU": lambda kind, **words: kind.GRU(6, **words),
         "RNN": lambda kind, **words: kind.SimpleRNN(6, **words)}

for name, cell in CELLS.items():
    add(f"{name} operator", keras2(lambda kind, cell=cell: cell(kind, return_sequences=True)),
        f32(1, 7, 5), recipes=FUSED if name == "LSTM" else LOOPS)
    add(f"{name} operator last", keras2(lambda kind, cell=cell: cell(kind)), f32(2, 7, 5),
        recipes=QUANTIZED if name == "LSTM" else LOOPS)
    add(f"{name} loop", keras3(lambda kind, cell=cell: cell(kind, return_sequences=True)),
        f32(1, 7, 5), recipes=LOOPS)
    add(f"{name} unrolled",
        keras3(lambda kind, cell=cell: cell(kind, return_sequences=True, unroll=True)),
        f32(1, 5, 5), recipes=FUSED, openBatch=(*OPEN, "int8"))
    add(f"{name} backwards",
        keras2(lambda kind, cell=cell: cell(kind, return_sequences=True, go_backwards=True)),
        f32(2, 6, 5), recipes=("float32", "dynamic"))
    add(f"{name} of any length",
        keras3(lambda kind, cell=cell: cell(kind, return_sequences=True)), f32(2, Open(4, 9), 5),
        recipes=OPEN)
    for number, source in ((2, keras2), (3, keras3)):
        add(f"{name} bidirectional of Keras {number}", source(
            lambda kind, cell=cell: kind.Bidirectional(cell(kind, return_sequences=True))),
            f32(2, 6, 5), recipes=QUANTIZED if (name, number) == ("LSTM", 2) else LOOPS)
add("GRU not reset after", keras3(lambda kind: kind.GRU(6, reset_after=False)), f32(1, 5, 4),
    recipes=LOOPS)
add("LSTM with states", keras2(lambda kind: kind.LSTM(6, return_sequences=True, return_state=True)),
    f32(1, 5, 4), recipes=("float32", "dynamic"))


def stacked():
    first, second = (tf_keras.layers.LSTM(6, return_sequences=True),
                     tf_keras.layers.LSTM(5))
    dense = tf_keras.layers.Dense(3, activation="softmax")
    return lambda x: dense(second(first(x)))


def masked():
    layer = tf.keras.layers.LSTM(6)
    return lambda x, lengths: layer(x, mask=tf.sequence_mask(lengths, 6))


def text():
    embedding = tf.keras.layers.Embedding(50, 8)
    layer, dense = tf_keras.layers.LSTM(6), tf.keras.layers.Dense(2)
    return lambda tokens: dense(layer(embedding(tokens)))


def convLstm():
    layer = tf.keras.layers.ConvLSTM2D(4, 3, padding="same", return_sequences=True)
    return lambda x: layer(x)


def cellByHand():
    cell = tf.keras.layers.LSTMCell(6)

    def function(x, h, c):
        y, states = cell(x, [h, c])
        return y, states[1]
    return function


add("LSTM stacked", stacked, f32(1, 6, 4), recipes=QUANTIZED)
add("LSTM masked", masked, f32(2, 6, 4), i32(2, low=1, high=6), recipes=OPEN)
add("LSTM of text", text, i32(2, 6, high=50), recipes=("float32", "dynamic"))
add("LSTM of convolutions", convLstm, f32(1, 3, 6, 6, 2), recipes=OPEN)
add("LSTM cell", cellByHand, f32(1, 4), f32(1, 6), f32(1, 6),
    recipes=("float32", "dynamic", "int8", "int16x8", "aiedge-dynamic8", "aiedge-int8"))
