# SPDX-License-Identifier: Apache-2.0
"""Slices, gathers and scatters, and what changes shapes."""

import tensorflow as tf

from . import ACTIVATIONS, FLOAT, Open, add, boolean, f32, i32, i64, op

ANY = Open(3, 5)

for rank in (0, 1):
    op(f"gather batch_dims {rank}",
       lambda x, i, rank=rank: tf.gather(x, i, axis=1, batch_dims=rank), f32(2, 5, 3),
       i32(2, 4, high=5), recipes=ACTIVATIONS)
op("gather batch_dims 2", lambda x, i: tf.gather(x, i, axis=2, batch_dims=2), f32(2, 3, 5, 2),
   i32(2, 3, 4, high=5))
op("gather of int64", lambda x, i: tf.gather(x, i, axis=-1), i64(3, 6), i64(4, high=6))
op("gather of booleans", lambda x, i: tf.gather(x, i), boolean(6, 2), i32(4, high=6))
op("gather of any rows", lambda x, i: tf.gather(x, i), f32(Open(4, 7), 3), i32(ANY, high=4))
op("gather_nd", lambda x, i: tf.gather_nd(x, i), f32(4, 5, 3), i32(6, 2, high=4),
   recipes=ACTIVATIONS)
op("gather_nd batch_dims", lambda x, i: tf.gather_nd(x, i, batch_dims=1), f32(2, 5, 3),
   i32(2, 4, 1, high=5))
op("strided slice ellipsis", lambda x: x[..., 1:-1:2, ::-1], f32(2, 3, 7, 4), recipes=ACTIVATIONS)
op("strided slice new axis", lambda x: x[:, tf.newaxis, 1, ..., tf.newaxis], f32(2, 3, 4),
   recipes=ACTIVATIONS)
op("strided slice shrink", lambda x: (x[0], x[:, -1], x[..., 0]), f32(2, 3, 4))
op("strided slice backwards", lambda x: x[::-2, 3:0:-1], f32(5, 6), recipes=ACTIVATIONS)
op("strided slice empty", lambda x: x[2:1], f32(4, 3))
op("strided slice of rank 5", lambda x: x[:, 1:, ::2, :, -2:], f32(2, 3, 4, 2, 3),
   recipes=ACTIVATIONS)
op("strided slice by values", lambda x, i: x[i[0]:i[1], i[2]:], f32(8, 6),
   i32(3, values=(1, 6, 2)))
op("strided slice of any size", lambda x: x[:, 1:-1, ..., :1], f32(ANY, Open(4, 7), 3))
op("strided slice of booleans", lambda x: x[1:, ::2], boolean(4, 6))
op("slice", lambda x: tf.slice(x, [1, 0, 2], [2, -1, 3]), f32(4, 3, 6), recipes=ACTIVATIONS)
op("slice by values", lambda x, i: tf.slice(x, i, [2, 2]), f32(5, 6), i32(2, high=3))
op("assign to a slice", lambda x, y: tf.tensor_scatter_nd_update(x, [[1], [3]], y), f32(5, 3),
   f32(2, 3))
op("scatter_nd", lambda i, u: tf.scatter_nd(i, u, [8, 3]), i32(4, 1, high=8), f32(4, 3))
op("scatter_nd of rank 2", lambda i, u: tf.scatter_nd(i, u, [4, 5]), i32(6, 2, high=4), f32(6))
op("scatter_nd of integers", lambda i, u: tf.scatter_nd(i, u, [9]), i32(5, 1, high=9), i32(5))
op("scatter add", lambda x, i, u: tf.tensor_scatter_nd_add(x, i, u), f32(6, 2),
   i32(3, 1, high=6), f32(3, 2))
op("where", lambda c: tf.where(c), boolean(3, 4))
op("where of three", lambda c, x, y: tf.where(c, x, y), boolean(3, 4), f32(3, 4), f32(3, 4),
   recipes=("float32", "int8", "int16x8"))
op("where broadcast", lambda c, x, y: tf.where(c, x, y), boolean(3, 1), f32(1, 4), f32(3, 4),
   recipes=("float32", "int8"))
op("where of values", lambda x: tf.where(x > 0), f32(4, 5))
op("boolean mask", lambda x, m: tf.boolean_mask(x, m), f32(6, 3), boolean(6))
op("top_k", lambda x: tf.math.top_k(x, 3), f32(2, 10), recipes=ACTIVATIONS)
op("top_k by value", lambda x, k: tf.math.top_k(x, k[0]), f32(2, 10), i32(1, low=2, high=5))
op("sort", lambda x: tf.sort(x, axis=-1), f32(3, 8))
op("argsort", lambda x: tf.argsort(x, axis=-1), f32(3, 8))
op("unique", lambda x: tf.unique(x), i32(12, high=5))
op("unique of int64", lambda x: tf.unique(x), i64(12, high=5))
op("unique of floats", lambda x: tf.unique(tf.round(x)), f32(12, low=-3, high=3))
op("bucketize", lambda x: tf.raw_ops.Bucketize(input=x, boundaries=[-0.5, 0.0, 0.7]), f32(3, 5))
op("one_hot", lambda i: tf.one_hot(i, 6, 2.0, -1.0), i32(2, 3, high=6))
op("one_hot in the first place", lambda i: tf.one_hot(i, 4, axis=0, dtype=tf.int32),
   i32(5, high=5))
op("pack", lambda x, y: tf.stack([x, y], 1), f32(2, 3), f32(2, 3), recipes=ACTIVATIONS)
op("unpack", lambda x: tf.unstack(x, axis=1), f32(2, 3, 4), recipes=ACTIVATIONS)
op("split", lambda x: tf.split(x, 3, 1), f32(2, 6, 4), recipes=ACTIVATIONS)
op("split unequally", lambda x: tf.split(x, [1, 3, 2], -1), f32(2, 6), recipes=ACTIVATIONS)
op("concat", lambda x, y: tf.concat([x, y], 1), f32(2, 3, 4), f32(2, 5, 4), recipes=ACTIVATIONS)
op("concat of rank 5", lambda x, y: tf.concat([x, y], 3), f32(2, 1, 2, 3, 4), f32(2, 1, 2, 2, 4),
   recipes=ACTIVATIONS)
op("concat of rank 6", lambda x, y: tf.concat([x, y], -1), f32(1, 2, 1, 2, 3, 4),
   f32(1, 2, 1, 2, 3, 1), recipes=ACTIVATIONS)
op("concat of any sizes", lambda x, y: tf.concat([x, y], 0), f32(ANY, 2), f32(Open(2, 1), 2))
for mode in ("CONSTANT", "REFLECT", "SYMMETRIC"):
    op(f"pad {mode}", lambda x, mode=mode: tf.pad(x, [[0, 0], [1, 2], [2, 1]], mode), f32(2, 4, 5),
       recipes=ACTIVATIONS)
op("pad with a value", lambda x: tf.pad(x, [[1, 0], [0, 2]], constant_values=3.5), f32(3, 4),
   recipes=("float32", "int8"))
op("pad by values", lambda x, p: tf.pad(x, p), f32(3, 4), i32(2, 2, high=3))
op("pad of rank 5", lambda x: tf.pad(x, [[0, 0], [1, 1], [1, 1], [1, 1], [0, 0]]),
   f32(1, 2, 3, 2, 3), recipes=ACTIVATIONS)
op("transpose of rank 5", lambda x: tf.transpose(x, [0, 3, 1, 4, 2]), f32(2, 3, 2, 4, 2),
   recipes=ACTIVATIONS)
op("transpose of rank 6", lambda x: tf.transpose(x, [5, 0, 3, 1, 4, 2]), f32(2, 1, 3, 2, 2, 3),
   recipes=ACTIVATIONS)
op("reshape of any size", lambda x: tf.reshape(x, [tf.shape(x)[0], -1, 2]), f32(ANY, 6, 4))
op("flatten", lambda x: tf.reshape(x, [-1]), f32(ANY, 2, 2))
op("expand and squeeze", lambda x: tf.squeeze(tf.expand_dims(x, 1), [2]), f32(3, 1, 4),
   recipes=ACTIVATIONS)
op("tile", lambda x: tf.tile(x, [2, 1, 3]), f32(2, 3, 2), recipes=ACTIVATIONS)
op("tile by values", lambda x, n: tf.tile(x, n), f32(2, 3), i32(2, low=1, high=4))
op("broadcast_to", lambda x: tf.broadcast_to(x, [2, 3, 4]), f32(3, 1), recipes=ACTIVATIONS)
op("broadcast of two shapes",
   lambda x, y: tf.broadcast_to(x, tf.broadcast_dynamic_shape(tf.shape(x), tf.shape(y))),
   f32(Open(3, 2), 1), f32(1, 4))
op("broadcast_to by values", lambda x, s: tf.broadcast_to(x, s), f32(1, 3),
   i32(2, values=(4, 3)))
op("reverse", lambda x: tf.reverse(x, [1]), f32(2, 4, 3), recipes=ACTIVATIONS)
op("reverse two axes", lambda x: tf.reverse(x, [1, 2]), f32(2, 4, 3))
op("reverse sequences", lambda x, n: tf.reverse_sequence(x, n, 1, 0), f32(3, 5, 2),
   i32(3, low=1, high=6))
op("roll", lambda x: tf.roll(x, 2, 1), f32(2, 5))
op("space_to_depth", lambda x: tf.nn.space_to_depth(x, 2), f32(1, 4, 6, 3), recipes=ACTIVATIONS)
op("depth_to_space", lambda x: tf.nn.depth_to_space(x, 2), f32(1, 3, 2, 8), recipes=ACTIVATIONS)
op("space_to_batch", lambda x: tf.space_to_batch(x, [2, 2], [[0, 0], [1, 1]]), f32(1, 4, 4, 3),
   recipes=ACTIVATIONS)
op("batch_to_space", lambda x: tf.batch_to_space(x, [2, 2], [[0, 0], [1, 0]]), f32(4, 2, 3, 3),
   recipes=ACTIVATIONS)
op("matrix_diag", lambda x: tf.linalg.diag(x), f32(2, 4))
op("matrix_set_diag", lambda x, d: tf.linalg.set_diag(x, d), f32(2, 3, 4), f32(2, 3))
op("band part", lambda x: tf.linalg.band_part(x, 1, 0), f32(2, 4, 4))
op("eye", lambda x: x + tf.eye(4), f32(4, 4))
op("meshgrid", lambda x, y: tf.meshgrid(x, y), f32(3), f32(4))
op("shape, size and rank", lambda x: (tf.shape(x), tf.size(x), tf.rank(x)), f32(ANY, 4))
op("range", lambda n: tf.range(n[0], 20, n[1]), i32(2, values=(2, 3)))
op("range of floats", lambda n: tf.range(n[0], 4.0, 0.5), f32(1))
op("fill", lambda s, x: tf.fill(s, x[0]), i32(2, low=1, high=4), f32(1))
op("linspace", lambda x: tf.linspace(x[0], 5.0, 7), f32(1))
op("bitcast to integers", lambda x: tf.bitcast(x, tf.int32), f32(3, 4))
op("bitcast to bytes", lambda x: tf.bitcast(x, tf.uint8), i32(3, 4))
op("sparse to dense", lambda i, v: tf.sparse.to_dense(tf.sparse.SparseTensor(i, v, [6]), 0.5),
   i64(3, 1, values=(0, 2, 5)), f32(3))
op("embedding lookup", lambda t, i: tf.nn.embedding_lookup(t, i), f32(7, 3), i32(2, 4, high=7),
   recipes=ACTIVATIONS)


def lookup():
    layer = tf.keras.layers.Embedding(30, 8)
    return lambda i: layer(i)


add("embedding layer", lookup, i32(2, 4, high=30),
    recipes=(*FLOAT, "dynamic", "int8", "aiedge-dynamic8", "aiedge-weights8"))
