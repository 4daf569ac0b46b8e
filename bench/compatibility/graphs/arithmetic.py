# SPDX-License-Identifier: Apache-2.0
"""Arithmetic of all types, element by element."""

import dataclasses

import tensorflow as tf

from . import ACTIVATIONS, Input, Open, boolean, f32, i32, op


def of(dtype, *shape, low=-9, high=9):
    return Input(shape, dtype, 0 if dtype.startswith("u") else low, high)


BINARY = {"add": tf.add, "subtract": tf.subtract, "multiply": tf.multiply, "maximum": tf.maximum,
          "minimum": tf.minimum, "squared difference": tf.math.squared_difference}
for name, function in BINARY.items():
    op(name, function, f32(2, 3, 4), f32(2, 3, 4), recipes=ACTIVATIONS)
    op(f"{name} broadcast", function, f32(2, 1, 4), f32(3, 1), recipes=ACTIVATIONS)
    op(f"{name} of any sizes", function, f32(Open(1, 3), 4), f32(Open(3, 1), 1),
       recipes=("float32", "int8"))
    for dtype in ("int32", "int64"):
        op(f"{name} of {dtype}", function, of(dtype, 2, 5), of(dtype, 2, 5))
for name in ("add", "multiply"):
    for dtype in ("int16", "uint32"):
        op(f"{name} of {dtype}", BINARY[name], of(dtype, 2, 5), of(dtype, 2, 5))
op("divide", tf.divide, f32(3, 4), f32(3, 4, low=0.5, high=2), recipes=ACTIVATIONS)
op("multiply of rank 5", tf.multiply, f32(1, 2, 3, 2, 4), f32(1, 2, 1, 1, 4), recipes=ACTIVATIONS)
op("add of rank 6", tf.add, f32(1, 2, 3, 2, 1, 4), f32(2, 1, 1, 1, 3, 1))
for dtype in ("float32", "int32", "int64"):
    low = dict(low=1) if dtype != "float32" else dict(low=0.5, high=2)
    if dtype != "int64":
        op(f"floor div of {dtype}", tf.math.floordiv, of(dtype, 3, 4), of(dtype, 3, 4, **low))
    op(f"floor mod of {dtype}", tf.math.floormod, of(dtype, 3, 4), of(dtype, 3, 4, **low))
    for name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"):
        op(f"{name} of {dtype}", getattr(tf.math, name), of(dtype, 3, 4, low=-2, high=2),
           of(dtype, 1, 4, low=-2, high=2),
           recipes=("float32", "int8") if dtype == "float32" else ("float32",))
op("truncating division", tf.truncatediv, i32(3, 4, low=-9, high=9), i32(3, 4, low=1))
op("power", tf.pow, f32(3, 4, low=0.1, high=2), f32(3, 4))
op("power of integers", tf.pow, i32(3, 4, low=-3, high=4), i32(3, 4, high=4))
op("atan2", tf.atan2, f32(3, 4), f32(3, 4))
for name in ("logical_and", "logical_or"):
    op(name, getattr(tf, name), boolean(3, 4), boolean(1, 4))
op("logical_not", tf.logical_not, boolean(3, 4))
op("logical_xor", tf.math.logical_xor, boolean(3, 4), boolean(3, 4))
op("equal of booleans", tf.equal, boolean(3, 4), boolean(3, 4))
op("bitwise", lambda x, y: (tf.bitwise.bitwise_xor(x, y), tf.bitwise.right_shift(x, y)),
   i32(3, 4, high=100), i32(3, 4, high=5))
op("bitwise of uint8", lambda x, y: tf.bitwise.bitwise_xor(x, y), of("uint8", 3, 4),
   of("uint8", 3, 4))
for name in ("abs", "negative", "square", "exp", "sin", "cos", "floor", "ceil", "round", "sign",
             "tanh", "sigmoid", "expm1"):
    op(name, getattr(tf.math, name), f32(3, 7, low=-3, high=3),
       recipes=ACTIVATIONS if name in ("abs", "negative", "square", "exp", "floor", "ceil",
                                       "round", "sign", "sin", "cos") else ("float32",))
for name in ("sqrt", "rsqrt", "log", "reciprocal", "log1p"):
    op(name, getattr(tf.math, name), f32(3, 7, low=0.1, high=4),
       recipes=ACTIVATIONS if name in ("sqrt", "rsqrt", "log") else ("float32",))
for name, dtype in (("abs", "int32"), ("negative", "int32"), ("negative", "int64"),
                    ("square", "int32"), ("square", "int64"), ("sign", "int32")):
    op(f"{name} of {dtype}", getattr(tf.math, name), of(dtype, 3, 4))
op("lerp", lambda x, y, t: x + t * (y - x), f32(3, 4), f32(3, 4), f32(3, 1, low=0),
   recipes=ACTIVATIONS)
op("polynomial", lambda x: ((0.3 * x - 0.7) * x + 1.1) * x - 0.5, f32(4, 5), recipes=ACTIVATIONS)
op("is nan", lambda x: tf.math.is_nan(tf.math.log(x)), f32(3, 4))
op("not a number and infinity", lambda x: (tf.math.log(x), 1 / tf.nn.relu(x)), f32(3, 4))
op("clip", lambda x: tf.clip_by_value(x, -0.3, 0.4), f32(3, 4), recipes=ACTIVATIONS)
KINDS = ("float32", "float16", "int32", "int64", "int8", "uint8", "int16", "bool", "float64")
for source in KINDS:
    for target in KINDS:
        if source != target and ("float32" in (source, target) or
                                 {source, target} <= {"int32", "int64", "uint8", "bool"}):
            op(f"cast {source} to {target}",
               lambda x, target=target: tf.cast(x, target), dataclasses.replace(
                   of(source, 3, 4), low=0 if target == "uint8" or source == "uint8" else -9))
op("quantize and dequantize", lambda x: tf.quantization.fake_quant_with_min_max_args(x, -1, 1),
   f32(3, 4), recipes=("float32", "int8"))
