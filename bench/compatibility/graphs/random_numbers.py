# SPDX-License-Identifier: Apache-2.0
"""Operators whose results are random."""

import tensorflow as tf

from . import f32, op

op("random uniform", lambda x: tf.random.uniform([100, 100]) + 0 * x, f32(1), isRandom=True)
op("random normal", lambda x: tf.random.normal([100, 100]) + 0 * x, f32(1), isRandom=True)
op("random uniform of a shape", lambda x: tf.random.uniform(tf.shape(x), -2, 3), f32(60, 70),
   isRandom=True)
op("multinomial", lambda x: tf.random.categorical(x, 5000), f32(2, 6), isRandom=True)
op("dropout", lambda x: tf.nn.dropout(x, 0.5), f32(80, 80), isRandom=True)
op("shuffled noise", lambda x: x + 0.1 * tf.random.normal(tf.shape(x)), f32(80, 80), isRandom=True)
