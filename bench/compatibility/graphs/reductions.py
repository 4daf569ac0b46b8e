# SPDX-License-Identifier: Apache-2.0
"""Reductions, running sums and segments."""

import tensorflow as tf

from . import ACTIVATIONS, Open, boolean, f32, i32, i64, op

FUNCTIONS = {"sum": tf.reduce_sum, "mean": tf.reduce_mean, "max": tf.reduce_max,
             "min": tf.reduce_min}
for name, function in FUNCTIONS.items():
    op(f"reduce {name}", lambda x, function=function: function(x, 1), f32(2, 5, 4),
       recipes=ACTIVATIONS)
    op(f"reduce {name} of space", lambda x, function=function: function(x, [1, 2], keepdims=True),
       f32(1, 5, 4, 3), recipes=ACTIVATIONS, openBatch=("float32", "int8"))
    op(f"reduce {name} of all", lambda x, function=function: function(x), f32(3, 4),
       recipes=("float32", "int8"))
    op(f"reduce {name} of int32", lambda x, function=function: function(x, -1),
       i32(3, 5, low=-9, high=9))
    op(f"reduce {name} of int64", lambda x, function=function: function(x, 0),
       i64(3, 5, low=-9, high=9))
    op(f"reduce {name} along a value's axis",
       lambda x, a, function=function: function(x, a[0]), f32(3, 4), i32(1, values=(1,)))
op("reduce product", lambda x: tf.reduce_prod(x, 1), f32(2, 5, 4), recipes=ACTIVATIONS)
op("reduce any", lambda x: tf.reduce_any(x, 1), boolean(3, 4))
op("reduce all", lambda x: tf.reduce_all(x, 0, keepdims=True), boolean(3, 4))
op("reduce of any size", lambda x: tf.reduce_mean(x, [1, 2]), f32(Open(1, 3), Open(4, 6), 5, 2),
   recipes=("float32", "int8"))
op("variance", lambda x: tf.math.reduce_variance(x, -1), f32(3, 6), recipes=ACTIVATIONS)
op("deviation", lambda x: tf.math.reduce_std(x, [0, 1]), f32(3, 6, 2))
op("logsumexp", lambda x: tf.reduce_logsumexp(x, -1), f32(3, 6))
op("norm", lambda x: tf.norm(x, axis=-1), f32(3, 6))
for name, function in (("argmax", tf.argmax), ("argmin", tf.argmin)):
    op(name, lambda x, function=function: function(x, -1), f32(3, 7), recipes=ACTIVATIONS)
    op(f"{name} to int32", lambda x, function=function: function(x, 1, output_type=tf.int32),
       f32(2, 5, 3))
op("argmax of integers", lambda x: tf.argmax(x, 0), i32(5, 3))
for exclusive in (False, True):
    for reverse in (False, True):
        op(f"cumsum{' exclusive' * exclusive}{' reverse' * reverse}",
           lambda x, exclusive=exclusive, reverse=reverse:
           tf.cumsum(x, 1, exclusive=exclusive, reverse=reverse), f32(2, 5, 3))
op("cumsum of integers", lambda x: tf.cumsum(x, -1), i32(3, 5))
op("cumsum of int64", lambda x: tf.cumsum(x, 0), i64(3, 5))
op("segment sum", lambda x: tf.math.segment_sum(x, tf.constant([0, 0, 1, 2, 2])), f32(5, 3))
op("segment sum by values", lambda x, s: tf.math.segment_sum(x, s), f32(5, 3),
   i32(5, values=(0, 1, 1, 2, 2)))
for name in ("sum", "max", "min", "prod"):
    function = getattr(tf.math, f"unsorted_segment_{name}")
    op(f"unsorted segment {name}", lambda x, s, function=function: function(x, s, 4), f32(6, 3),
       i32(6, high=4))
op("unsorted segment sum of integers", lambda x, s: tf.math.unsorted_segment_sum(x, s, 4),
   i32(6, 2), i32(6, high=4))
op("unsorted segment mean", lambda x, s: tf.math.unsorted_segment_mean(x, s, 4), f32(6, 3),
   i32(6, high=4))
op("add_n", lambda x, y, z: tf.add_n([x, y, z]), f32(2, 3), f32(2, 3), f32(2, 3),
   recipes=ACTIVATIONS)
op("histogram by hand", lambda i: tf.reduce_sum(tf.one_hot(i, 5), 0), i32(12, high=5))
