# SPDX-License-Identifier: Apache-2.0
"""Normalisations and activations."""

import tensorflow as tf

from . import ACTIVATIONS, FLOAT, add, f32, op, stack

layers = tf.keras.layers
LAYERS = (*FLOAT, "dynamic", "int8", "int16x8", "aiedge-dynamic8", "aiedge-int8")


def rms():
    scale = tf.Variable(tf.random.uniform([8], 0.5, 1.5))
    return lambda x: x * tf.math.rsqrt(tf.reduce_mean(x * x, -1, keepdims=True) + 1e-6) * scale


def instance():
    def function(x):
        mean, variance = tf.nn.moments(x, [1, 2], keepdims=True)
        return (x - mean) * tf.math.rsqrt(variance + 1e-5)
    return function


def afterConv():
    conv = layers.Conv2D(8, 3, use_bias=False)
    norm = layers.BatchNormalization(moving_mean_initializer="random_uniform")
    return lambda x: tf.nn.relu(norm(conv(x)))


RANDOM = dict(gamma_initializer="random_uniform", beta_initializer="random_uniform")
add("batch norm", stack(lambda: layers.BatchNormalization(
    moving_mean_initializer="random_uniform", **RANDOM)), f32(1, 4, 4, 8), recipes=LAYERS,
    openBatch=("float32", "int8"))
add("batch norm after conv", afterConv, f32(1, 6, 6, 4), recipes=LAYERS)
add("layer norm", stack(lambda: layers.LayerNormalization(**RANDOM)), f32(2, 5, 8), recipes=LAYERS,
    openBatch=("float32", "int8"))
add("layer norm of two axes", stack(lambda: layers.LayerNormalization(axis=[1, 2])), f32(2, 5, 8),
    recipes=("float32", "int8"))
add("group norm", stack(lambda: layers.GroupNormalization(2, **RANDOM)), f32(1, 4, 4, 8),
    recipes=LAYERS, openBatch=("float32",))
add("RMS norm", rms, f32(2, 5, 8), recipes=LAYERS)
add("RMS norm layer", stack(lambda: layers.RMSNormalization()), f32(2, 5, 8), recipes=LAYERS)
add("instance norm", instance, f32(1, 5, 5, 4), recipes=("float32", "int8", "int16x8"))
op("l2 normalize", lambda x: tf.nn.l2_normalize(x, -1), f32(3, 8), recipes=ACTIVATIONS)
op("local response norm", lambda x: tf.nn.local_response_normalization(x, 2), f32(1, 4, 4, 8))
op("moments", lambda x: tf.nn.moments(x, [0, 1]), f32(4, 5, 3))

for name in ("relu", "relu6", "tanh", "sigmoid", "elu", "selu", "gelu", "swish", "softplus",
             "softsign", "leaky_relu", "hard_sigmoid", "hard_silu", "mish", "exponential",
             "log_softmax", "softmax"):
    function = getattr(tf.keras.activations, name)
    op(f"activation {name}", function, f32(3, 16, low=-6, high=6), recipes=ACTIVATIONS)
op("activation relu_n1_to_1", lambda x: tf.clip_by_value(x, -1, 1), f32(3, 16, low=-3, high=3),
   recipes=ACTIVATIONS)
op("activation relu_0_to_1", lambda x: tf.minimum(tf.maximum(x, 0.0), 1.0),
   f32(3, 16, low=-3, high=3), recipes=ACTIVATIONS)
op("activation gelu approximate", lambda x: tf.nn.gelu(x, approximate=True),
   f32(3, 16, low=-4, high=4), recipes=ACTIVATIONS)
add("activation PReLU", stack(lambda: layers.PReLU(
    alpha_initializer=tf.keras.initializers.RandomUniform(-0.5, 0.5), shared_axes=[1, 2])),
    f32(1, 4, 4, 6), recipes=("float32", "float16", "dynamic", "int8", "int16x8"))
op("softmax of rank 4", lambda x: tf.nn.softmax(x), f32(1, 3, 4, 5), recipes=ACTIVATIONS)
op("softmax along another axis", lambda x: tf.nn.softmax(x, 1), f32(2, 5, 4), recipes=ACTIVATIONS)
op("softmax with a factor", lambda x: tf.nn.softmax(2.5 * x), f32(2, 9),
   recipes=ACTIVATIONS)
