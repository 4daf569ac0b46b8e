# SPDX-License-Identifier: Apache-2.0
"""Pooling."""

import tensorflow as tf

from . import ACTIVATIONS, Open, f32, op

OPEN = ("float32", "int8")
for padding in ("SAME", "VALID"):
    for name, function in (("max", tf.nn.max_pool2d), ("average", tf.nn.avg_pool2d)):
        op(f"{name} pool 3x3 {padding}",
           lambda x, function=function, padding=padding: function(x, 3, 2, padding),
           f32(1, 9, 8, 5), recipes=ACTIVATIONS, openBatch=OPEN)
        op(f"{name} pool 2x4 {padding}",
           lambda x, function=function, padding=padding: function(x, (2, 4), (1, 3), padding),
           f32(1, 9, 8, 5), recipes=ACTIVATIONS)
op("l2 pool by hand", lambda x: tf.sqrt(tf.nn.avg_pool2d(x * x, 2, 2, "VALID")), f32(1, 6, 6, 3),
   recipes=("float32", "int8"))
op("global average pool", lambda x: tf.keras.layers.GlobalAveragePooling2D()(x), f32(1, 5, 6, 4),
   recipes=ACTIVATIONS, openBatch=OPEN)
op("global max pool", lambda x: tf.keras.layers.GlobalMaxPooling2D()(x), f32(1, 5, 6, 4),
   recipes=ACTIVATIONS)
op("max pool 1-D", lambda x: tf.nn.max_pool1d(x, 2, 2, "VALID"), f32(1, 8, 3), recipes=ACTIVATIONS)
op("average pool 1-D", lambda x: tf.nn.avg_pool1d(x, 3, 1, "SAME"), f32(1, 8, 3),
   recipes=ACTIVATIONS)
op("average pool of any size", lambda x: tf.nn.avg_pool2d(x, 3, 2, "SAME"),
   f32(1, Open(8, 11), Open(6, 9), 3), recipes=OPEN)
