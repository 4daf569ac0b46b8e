# SPDX-License-Identifier: Apache-2.0
"""Spectra and what networks for sound make of them."""

import tensorflow as tf

from . import FLOAT, Open, add, f32, op

layers = tf.keras.layers


def logMel(samples):
    matrix = tf.signal.linear_to_mel_weight_matrix(16, 129, 16000, 125, 7500)
    spectrum = tf.abs(tf.signal.stft(samples, 256, 128))
    return tf.math.log(tf.matmul(spectrum, matrix) + 1e-3)


def yamnet():
    conv, depth, point = (layers.Conv2D(8, 3, strides=2, padding="same"),
                          layers.DepthwiseConv2D(3, padding="same"), layers.Conv2D(16, 1))
    dense = layers.Dense(10, activation="sigmoid")

    def function(samples):
        y = logMel(samples)[tf.newaxis, ..., tf.newaxis]
        y = tf.nn.relu(point(tf.nn.relu(depth(tf.nn.relu(conv(y))))))
        return dense(tf.reduce_mean(y, [1, 2]))
    return function


def keywords():
    conv, dense = layers.Conv2D(8, (5, 4), strides=(1, 2), padding="same"), layers.Dense(6)

    def function(x):
        y = tf.nn.relu(conv(x[..., tf.newaxis]))
        return tf.nn.softmax(dense(tf.reshape(y, [-1, 20 * 5 * 8])))
    return function


def wavenet():
    filters = [layers.Conv1D(8, 2, dilation_rate=rate, padding="causal") for rate in (1, 2, 4)]
    gates = [layers.Conv1D(8, 2, dilation_rate=rate, padding="causal") for rate in (1, 2, 4)]
    last = layers.Conv1D(4, 1)

    def function(x):
        for one, gate in zip(filters, gates):
            x = x + tf.tanh(one(x)) * tf.sigmoid(gate(x))
        return last(x)
    return function


add("YAMNet", yamnet, f32(2048), recipes=(*FLOAT, "dynamic", "aiedge-dynamic8"))
add("keyword spotting", keywords, f32(1, 20, 10),
    recipes=("float32", "float16", "dynamic", "int8", "int8-io", "uint8-io", "int16x8",
             "aiedge-dynamic8", "aiedge-int8"), openBatch=("float32", "dynamic", "int8"))
add("WaveNet", wavenet, f32(1, 24, 8), recipes=("float32", "float16", "dynamic", "int8", "int16x8",
                                               "aiedge-dynamic8"),
    openBatch=("float32", "dynamic", "int8"))
op("log-mel spectrum", logMel, f32(1024))
op("log-mel spectrum of any length", logMel, f32(Open(1024, 800)))
op("rfft2d", lambda x: tf.signal.rfft2d(x), f32(2, 8, 16))
op("rfft2d real and imaginary",
   lambda x: (tf.math.real(tf.signal.rfft2d(x)), tf.math.imag(tf.signal.rfft2d(x))), f32(2, 4, 8))
op("rfft2d absolute", lambda x: tf.abs(tf.signal.rfft2d(x, [16, 8])), f32(1, 12, 6))
op("rfft2d real part", lambda x: tf.cast(tf.signal.rfft2d(x), tf.float32), f32(2, 4, 8))
op("complex product", lambda x, y: tf.cast(
    tf.signal.rfft2d(x) * tf.cast(y, tf.complex64), tf.float32), f32(2, 4, 8), f32(2, 4, 5))
op("complex moves", lambda x: tf.math.imag(tf.transpose(tf.reshape(
    tf.concat([tf.signal.rfft2d(x)[:, 1:], tf.signal.rfft2d(x)[:, :2]], 1), [2, 25]))),
   f32(2, 4, 8))
op("stft", lambda x: tf.abs(tf.signal.stft(x, 64, 32)), f32(2, 256))
op("frames", lambda x: tf.signal.frame(x, 16, 8), f32(2, 64))
op("overlap and add", lambda x: tf.signal.overlap_and_add(x, 4), f32(2, 6, 8))
add("audio spectrogram", lambda: lambda x: tf.raw_ops.AudioSpectrogram(
    input=x, window_size=640, stride=320, magnitude_squared=True), f32(3200, 1), isCustom=True)
