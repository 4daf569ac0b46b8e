# SPDX-License-Identifier: Apache-2.0
"""Networks with so many weights that Hearth keeps them packed: their second starts are warm."""

import tensorflow as tf

from . import ALL, BLOCKS, FLOAT, FOUR_BIT, INT16, PER_TENSOR, add, f32, i32, stack

layers = tf.keras.layers
EVERY = (*ALL, *FOUR_BIT, *INT16, *PER_TENSOR, *BLOCKS)
OPEN = ("float32", "dynamic", "int8", "int16x8")


def separable():
    depth, point, last = (layers.DepthwiseConv2D(3, padding="same"), layers.Conv2D(1024, 1),
                          layers.Dense(64))

    def function(x):
        y = tf.nn.relu6(point(tf.nn.relu6(depth(x))))
        return last(tf.reduce_mean(y, [1, 2]))
    return function


def perceptron():
    first, second = layers.Dense(512), layers.Dense(256)
    return lambda x: tf.nn.softmax(second(tf.nn.gelu(first(x), approximate=True)))


def embedding():
    table = tf.Variable(tf.random.uniform([512, 256], -1, 1))
    dense = layers.Dense(32)
    return lambda i: dense(tf.reduce_mean(tf.gather(table, i), 1))


def shared():
    """Two layers that have the same weights."""
    weights = tf.Variable(tf.random.uniform([256, 512], -0.1, 0.1))
    return lambda x: tf.matmul(tf.nn.relu(tf.matmul(x, weights)), weights, transpose_b=True)


def constants():
    """An operand of an addition, a factor of a product and a batch of matrices are constants."""
    one, two = (tf.Variable(tf.random.uniform([4, 64, 64], -1, 1)) for _ in range(2))
    return lambda x: tf.matmul(x * one + two, two)


add("wide conv", stack(lambda: layers.Conv2D(256, 3, padding="same", activation="relu")),
    f32(1, 6, 6, 64), recipes=EVERY, openBatch=OPEN)
add("wide separable", separable, f32(1, 5, 5, 144), recipes=EVERY, openBatch=OPEN)
add("wide transposed", stack(lambda: layers.Conv2DTranspose(128, 3, strides=2)), f32(1, 4, 4, 128),
    recipes=ALL)
add("wide grouped", stack(lambda: layers.Conv2D(256, 3, groups=2)), f32(1, 5, 5, 128), recipes=ALL)
add("wide depthwise", stack(lambda: layers.DepthwiseConv2D(9)), f32(1, 10, 10, 1024), recipes=ALL)
add("wide perceptron", perceptron, f32(2, 256), recipes=EVERY, openBatch=OPEN)
add("wide embedding", embedding, i32(2, 5, high=512), recipes=(*FLOAT, "dynamic", "int8",
                                                             "aiedge-dynamic8", "aiedge-weights8"))
add("wide shared weights", shared, f32(3, 256), recipes=ALL)
add("wide constants", constants, f32(4, 64, 64), recipes=ALL)
