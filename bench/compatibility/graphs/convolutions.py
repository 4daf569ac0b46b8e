# SPDX-License-Identifier: Apache-2.0
"""Networks of convolutions."""

import numpy as np
import tensorflow as tf

from . import ALL, BLOCKS, FLOAT, FOUR_BIT, INT16, PER_TENSOR, Open, add, f32, stack

layers = tf.keras.layers
OPEN = ("float32", "dynamic", "int8", "int16x8")
SIZES = (Open(12, 17), Open(16, 9))


def single(name, make, *shape, recipes=ALL, **words):
    add(name, stack(make), f32(*shape), recipes=recipes, **words)


for padding in ("same", "valid"):
    single(f"conv 3x3 {padding}",
           lambda padding=padding: layers.Conv2D(8, 3, padding=padding, activation="relu"),
           1, 12, 12, 4, openBatch=OPEN)
    single(f"conv 3x3 stride 2 {padding}",
           lambda padding=padding: layers.Conv2D(8, 3, strides=2, padding=padding), 1, 13, 13, 4)
    single(f"conv 5x3 dilated {padding}",
           lambda padding=padding: layers.Conv2D(6, (5, 3), dilation_rate=2, padding=padding),
           1, 14, 14, 3)
    single(f"depthwise 3x3 {padding}",
           lambda padding=padding: layers.DepthwiseConv2D(3, padding=padding, activation="relu6"),
           1, 12, 12, 8, openBatch=OPEN)
    single(f"transposed 3x3 stride 2 {padding}",
           lambda padding=padding: layers.Conv2DTranspose(6, 3, strides=2, padding=padding),
           1, 7, 7, 5, openBatch=OPEN)
    single(f"conv 3-D {padding}",
           lambda padding=padding: layers.Conv3D(4, 3, padding=padding), 1, 6, 6, 6, 3,
           recipes=FLOAT)
    single(f"transposed 3-D {padding}",
           lambda padding=padding: layers.Conv3DTranspose(4, 3, strides=2, padding=padding),
           1, 4, 4, 4, 3, recipes=FLOAT)
single("conv 1x1", lambda: layers.Conv2D(16, 1), 1, 8, 8, 8, recipes=(*ALL, *FOUR_BIT, *INT16))
single("conv grouped", lambda: layers.Conv2D(8, 3, groups=4, padding="same"), 1, 9, 9, 8)
single("conv 1-D causal", lambda: layers.Conv1D(8, 3, padding="causal", dilation_rate=2), 1, 20, 4,
       openBatch=OPEN)
single("conv 1-D transposed", lambda: layers.Conv1DTranspose(6, 4, strides=2), 1, 10, 4)
single("depthwise multiplier", lambda: layers.DepthwiseConv2D(3, depth_multiplier=3, strides=2),
       1, 11, 11, 4)
single("depthwise dilated", lambda: layers.DepthwiseConv2D(3, dilation_rate=3, padding="same"),
       1, 11, 11, 4)
single("depthwise of one channel", lambda: layers.DepthwiseConv2D(3, depth_multiplier=8),
       1, 11, 11, 1)
single("separable", lambda: layers.SeparableConv2D(8, 3, padding="same", activation="relu"),
       1, 10, 10, 6)
single("dense", lambda: layers.Dense(10, activation="relu"), 2, 64,
       recipes=(*ALL, *FOUR_BIT, *INT16, *PER_TENSOR, *BLOCKS), openBatch=OPEN)
single("dense of rank 4", lambda: layers.Dense(7), 1, 3, 5, 32)
for activation in ("tanh", "sigmoid", "gelu", "swish", "elu", "softplus", "hard_sigmoid"):
    single(f"conv then {activation}",
           lambda activation=activation: layers.Conv2D(6, 3, activation=activation), 1, 8, 8, 3,
           recipes=("float32", "dynamic", "int8", "int16x8"))
single("conv any size", lambda: layers.Conv2D(6, 3, padding="same", strides=2), 1, *SIZES, 3,
       recipes=OPEN)


def batchNorm():
    return layers.BatchNormalization(moving_mean_initializer="random_uniform",
                                     gamma_initializer="random_uniform")


def mobilenetBlock():
    expand, depth, project = (layers.Conv2D(24, 1, use_bias=False),
                              layers.DepthwiseConv2D(3, padding="same", use_bias=False),
                              layers.Conv2D(8, 1, use_bias=False))
    norms = [batchNorm() for _ in range(3)]

    def function(x):
        y = tf.nn.relu6(norms[0](expand(x)))
        y = tf.nn.relu6(norms[1](depth(y)))
        return x + norms[2](project(y))
    return function


def mobilenetV3():
    expand, depth, project = (layers.Conv2D(16, 1), layers.DepthwiseConv2D(5, padding="same"),
                              layers.Conv2D(8, 1))
    squeeze, excite = layers.Conv2D(4, 1), layers.Conv2D(16, 1)

    def function(x):
        y = tf.keras.activations.hard_silu(expand(x))
        y = tf.keras.activations.hard_silu(depth(y))
        s = tf.reduce_mean(y, [1, 2], keepdims=True)
        y *= tf.nn.relu6(excite(tf.nn.relu(squeeze(s))) + 3) / 6
        return x + project(y)
    return function


def resnet():
    first, one, two, short = (layers.Conv2D(8, 7, strides=2, padding="same"),
                              layers.Conv2D(16, 3, strides=2, padding="same"),
                              layers.Conv2D(16, 3, padding="same"), layers.Conv2D(16, 1, strides=2))
    norm, dense = batchNorm(), layers.Dense(10)

    def function(x):
        y = tf.nn.max_pool2d(tf.nn.relu(norm(first(x))), 3, 2, "SAME")
        y = tf.nn.relu(two(tf.nn.relu(one(y))) + short(y))
        return tf.nn.softmax(dense(tf.reduce_mean(y, [1, 2])))
    return function


def unet():
    down, bottom, up, last = (layers.Conv2D(6, 3, padding="same"),
                              layers.Conv2D(12, 3, padding="same"),
                              layers.Conv2DTranspose(6, 2, strides=2), layers.Conv2D(2, 1))

    def function(x):
        skip = tf.nn.relu(down(x))
        y = tf.nn.relu(bottom(tf.nn.max_pool2d(skip, 2, 2, "VALID")))
        return tf.sigmoid(last(tf.concat([up(y), skip], -1)))
    return function


def inception():
    branches = [layers.Conv2D(4, size, padding="same") for size in (1, 3, 5)]

    def function(x):
        pooled = tf.nn.avg_pool2d(x, 3, 1, "SAME")
        return tf.concat([*(tf.nn.relu(branch(x)) for branch in branches), pooled], -1)
    return function


def shuffle():
    conv = layers.Conv2D(8, 3, groups=2, padding="same")

    def function(x):
        y = conv(x)
        y = tf.reshape(y, [-1, 8, 8, 2, 4])
        return tf.reshape(tf.transpose(y, [0, 1, 2, 4, 3]), [-1, 8, 8, 8])
    return function


def deeplab():
    rates = [layers.Conv2D(4, 3, padding="same", dilation_rate=rate) for rate in (1, 2, 4)]
    last = layers.Conv2D(3, 1)

    def function(x):
        pooled = tf.image.resize(tf.reduce_mean(x, [1, 2], keepdims=True), [12, 12])
        y = last(tf.concat([*(tf.nn.relu(rate(x)) for rate in rates), pooled], -1))
        return tf.argmax(tf.image.resize(y, [24, 24]), -1, output_type=tf.int32), y
    return function


def superResolution():
    conv = layers.Conv2D(12, 3, padding="same")
    return lambda x: tf.nn.depth_to_space(conv(x), 2)


def sparse(shape):
    """Nine tenths of the weights are zeros, in blocks of four."""
    def build():
        generator = np.random.default_rng(5)
        kept = np.repeat(generator.random((*shape[:-1], shape[-1] // 4)) < 0.1, 4, -1)
        weights = tf.Variable((generator.uniform(-1, 1, shape) * kept).astype(np.float32))
        if len(shape) == 2:
            return lambda x: tf.matmul(x, weights)
        return lambda x: tf.nn.conv2d(x, weights, 1, "SAME")
    return build


add("MobileNet block", mobilenetBlock, f32(1, 10, 10, 8),
    recipes=(*ALL, *FOUR_BIT, *INT16, *PER_TENSOR),
    openBatch=OPEN)
add("MobileNet v3 block", mobilenetV3, f32(1, 10, 10, 8), recipes=(*ALL, *INT16), openBatch=OPEN)
add("ResNet", resnet, f32(1, 32, 32, 3),
    recipes=(*ALL, *FOUR_BIT, *INT16, *PER_TENSOR), openBatch=OPEN)
add("U-Net", unet, f32(1, 16, 16, 3), recipes=(*ALL, *PER_TENSOR), openBatch=OPEN)
add("Inception", inception, f32(1, 9, 9, 6), recipes=ALL, openBatch=OPEN)
add("ShuffleNet", shuffle, f32(1, 8, 8, 4), recipes=ALL)
add("DeepLab head", deeplab, f32(1, 12, 12, 6), recipes=ALL)
for name, shape in (("convolution", (3, 3, 16, 32)), ("dense", (64, 48))):
    add(f"sparse {name}", sparse(shape), f32(*((1, 6, 6, 16) if len(shape) == 4 else (2, 64))),
        recipes=("float32", "sparse", "sparse-dynamic"))
add("super resolution", superResolution, f32(1, *SIZES, 3), recipes=OPEN)
