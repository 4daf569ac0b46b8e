# SPDX-License-Identifier: Apache-2.0
"""Resizing of pictures."""

import tensorflow as tf

from . import ACTIVATIONS, Open, f32, i32, op

compat = tf.compat.v1.image
METHODS = {"bilinear": compat.resize_bilinear, "nearest": compat.resize_nearest_neighbor}
for name, function in METHODS.items():
    for mode, words in (("plain", {}), ("aligned corners", dict(align_corners=True)),
                        ("half-pixel centers", dict(half_pixel_centers=True))):
        op(f"resize {name} {mode}",
           lambda x, function=function, words=words: function(x, [9, 7], **words), f32(1, 4, 5, 3),
           recipes=ACTIVATIONS, openBatch=("float32", "int8"))
    op(f"resize {name} down",
       lambda x, function=function: function(x, [3, 4], half_pixel_centers=True), f32(1, 9, 10, 2),
       recipes=ACTIVATIONS)
    op(f"resize {name} to a value's size",
       lambda x, s, function=function: function(x, s, half_pixel_centers=True), f32(1, 4, 5, 3),
       i32(2, values=(6, 11)))
    op(f"resize {name} to another's size",
       lambda x, y, function=function: function(x, tf.shape(y)[1:3], half_pixel_centers=True),
       f32(1, 4, 5, 3), f32(1, Open(8, 5), Open(9, 12), 1), recipes=("float32", "int8"))
op("resize of Keras", lambda x: tf.keras.layers.UpSampling2D(2)(x), f32(1, 4, 5, 3),
   recipes=ACTIVATIONS)
op("resize bilinear of Keras",
   lambda x: tf.keras.layers.UpSampling2D(2, interpolation="bilinear")(x), f32(1, 4, 5, 3),
   recipes=ACTIVATIONS)
op("crop and flip", lambda x: tf.image.flip_left_right(tf.image.central_crop(x, 0.5)),
   f32(1, 8, 8, 3), recipes=ACTIVATIONS)
op("grey picture", lambda x: tf.image.rgb_to_grayscale(x), f32(1, 6, 6, 3, low=0),
   recipes=("float32", "int8"))
