# SPDX-License-Identifier: Apache-2.0
"""Slices, gathers and scatters."""

import tensorflow as tf

from . import ACTIVATIONS, PLAIN, Open, boolean, f32, i32, i64, op

for rank in (0, 1):
    op(f"gather batch_dims {rank}", lambda x, i, rank=rank: tf.gather(x, i, axis=1, batch_dims=rank),
       f32(2, 5, 3), i32(2, 4, high=5), recipes=ACTIVATIONS)
op("strided slice ellipsis", lambda x: x[..., 1:-1:2, ::-1], f32(2, 3, 7, 4), recipes=ACTIVATIONS)
op("strided slice new axis", lambda x: x[:, tf.newaxis, 1, ..., tf.newaxis], f32(2, 3, 4, 5),
   recipes=ACTIVATIONS)
op("scatter_nd", lambda i, u: tf.scatter_nd(i, u, [8, 3]), i32(4, 1, high=8), f32(4, 3))
op("where", lambda c: tf.where(c), boolean(3, 4))
op("top_k", lambda x: tf.math.top_k(x, 3), f32(2, 10), recipes=ACTIVATIONS)
op("unique", lambda x: tf.unique(x), i32(12, high=5))
