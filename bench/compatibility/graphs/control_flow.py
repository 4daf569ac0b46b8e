# SPDX-License-Identifier: Apache-2.0
"""Loops, branches and variables."""

import tensorflow as tf

from . import Open, add, boolean, f32, i32, op

layers = tf.keras.layers


def count(x, n):
    return tf.while_loop(lambda i, y: i < n[0], lambda i, y: (i + 1, y * 1.5 + 0.25), (0, x))[1]


def growing(x):
    """Each turn makes its result longer."""
    shapes = tf.TensorShape([]), tf.TensorShape([None, 3])
    return tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, tf.concat([y, x], 0)), (0, x),
                         shape_invariants=shapes)[1]


def nested(x):
    def inner(i, y):
        return i + 1, tf.while_loop(lambda j, z: j < i, lambda j, z: (j + 1, z + 0.5), (0, y))[1]
    return tf.while_loop(lambda i, y: i < 4, inner, (0, x))[1]


def untilSmall(x):
    return tf.while_loop(lambda y: tf.reduce_max(tf.abs(y)) > 0.1, lambda y: (y * 0.7,), (x,))[0]


def newton(x):
    return tf.while_loop(lambda i, y: i < 6, lambda i, y: (i + 1, 0.5 * (y + x / y)),
                         (0, tf.ones_like(x)))[1]


def branchLayers():
    one, two = layers.Dense(6), layers.Dense(6)
    return lambda x: tf.cond(tf.reduce_sum(x) > 0, lambda: one(x), lambda: tf.tanh(two(x)))


def loopLayer():
    layer = layers.Dense(5)
    return lambda x: tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, tf.tanh(layer(y))),
                                   (0, x))[1]


def arrays(x):
    result = tf.TensorArray(tf.float32, 4, element_shape=[3])
    for i in range(4):
        result = result.write(i, x[i] * float(i))
    return result.stack()


def mapped(x):
    return tf.map_fn(lambda row: tf.nn.softmax(row) + tf.reduce_max(row), x)


def scanned(x):
    return tf.scan(lambda total, row: total * 0.5 + row, x)


def counter():
    total = tf.Variable([0.5, 1.0, -2.0])
    return lambda x: (total.assign_add(x), total * 2.0)


def swapped():
    one, two = tf.Variable([1.0, 2.0]), tf.Variable([3.0, 4.0])

    def function(x):
        old = tf.identity(one)
        one.assign(two + x)
        two.assign(old)
        return one.read_value(), two.read_value()
    return function


add("variable that counts", counter, f32(3))
add("variables that swap", swapped, f32(2))
op("while", count, f32(2, 3), i32(1, low=3, high=6))
op("while of any size", count, f32(Open(2, 4), 3), i32(1, low=3, high=6))
op("while that never runs", count, f32(2, 3), i32(1, values=(0,)))
op("while with growing results", growing, f32(2, 3))
op("while in a while", nested, f32(3))
op("while until small", untilSmall, f32(4))
op("square roots by a loop", newton, f32(3, low=0.5, high=2))
op("if", lambda c, x: tf.cond(c[0], lambda: x + 1, lambda: x * 2), boolean(1), f32(2, 3))
op("if with two shapes", lambda c, x: tf.cond(c[0], lambda: x[:1], lambda: x), boolean(1),
   f32(3, 2))
op("if in a while", lambda x: tf.while_loop(
    lambda i, y: i < 5,
    lambda i, y: (i + 1, tf.cond(i % 2 == 0, lambda: y + 1, lambda: y * 0.5)), (0, x))[1],
   f32(3))
add("if of layers", branchLayers, f32(2, 4), recipes=("float32", "float16", "dynamic"))
add("while of a layer", loopLayer, f32(2, 5), recipes=("float32", "float16", "dynamic"))
op("tensor array", arrays, f32(4, 3))
op("map", mapped, f32(4, 5))
op("scan", scanned, f32(5, 3))
