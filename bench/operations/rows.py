# SPDX-License-Identifier: Apache-2.0
"""The rows: networks of one operator, large enough that LiteRT needs a millisecond."""

from dataclasses import dataclass

import numpy as np

from graphs import (boolean, constant, f32, i8, i16, i32, i64, indices, ints, network, state, u8,
                    weights)
from workloads import tflite_schema as schema

# 16 MiB of 4-byte elements, and of 1-byte elements.
IMAGE, BYTES = (1, 256, 256, 64), (1, 512, 512, 64)
# For functions of 8- and 16-bit numbers that take nanoseconds for each element.
SMALL = (1, 128, 256, 32)
_FLOAT32, _INT32, _INT64, _UINT8, _BOOL = (
    schema.TYPE_CODES[np.dtype(one)] for one in (np.float32, np.int32, np.int64, np.uint8, np.bool_))
_VALID, _SAME = schema.PADDING_VALID, schema.PADDING_SAME


@dataclass
class Row:
    operation: str
    variant: str
    inputs: list
    outputs: list
    options: dict

    @property
    def name(self):
        return f"{self.operation} {self.variant}"

    def graph(self):
        return network(self.operation, self.inputs, self.outputs, **self.options)


ROWS = []


def row(operation, variant, inputs, outputs, **options):
    outputs = outputs if isinstance(outputs, list) else [outputs]
    ROWS.append(Row(operation, variant, inputs, outputs, options))


def functions():
    """Functions of each element by itself."""
    for kind in ("ABS", "NEG", "FLOOR", "CEIL", "ROUND", "SQRT", "RSQRT", "EXP", "LOG", "SIN",
                 "COS", "SIGN", "ELU", "HARD_SWISH", "GELU"):
        row(kind, "f32", [f32(*IMAGE)], f32(*IMAGE))
    for kind, make, name, shape in (
            ("ABS", i8, "i8", SMALL), ("ABS", i16, "i16", SMALL), ("EXP", i8, "i8", BYTES),
            ("ELU", i8, "i8", BYTES), ("GELU", i8, "i8", BYTES), ("HARD_SWISH", i8, "i8", SMALL),
            ("HARD_SWISH", u8, "u8", SMALL), ("NEG", i32, "i32", IMAGE)):
        row(kind, name, [make(*shape)], make(*shape))
    row("RSQRT", "i8", [i8(*SMALL, zeroPoint=-128)], i8(*SMALL))
    row("GELU", "f32, by tanh", [f32(*IMAGE)], f32(*IMAGE), approximate=True)
    row("LEAKY_RELU", "f32", [f32(*IMAGE)], f32(*IMAGE), alpha=0.2)
    row("LEAKY_RELU", "i8", [i8(*BYTES)], i8(*BYTES), alpha=0.2)
    row("LEAKY_RELU", "i16", [i16(*SMALL)], i16(*SMALL), alpha=0.2)
    row("PRELU", "f32", [f32(*IMAGE), weights(1, 1, 64)], f32(*IMAGE))
    row("PRELU", "i8", [i8(*SMALL), weights(1, 1, 32, dtype=np.int8, scale=1 / 128)], i8(*SMALL))
    for kind, scales in (("TANH", (1 / 128, 0, 128)), ("LOGISTIC", (1 / 256, -128, 0))):
        scale, signedZero, unsignedZero = scales
        row(kind, "f32", [f32(*IMAGE)], f32(*IMAGE))
        row(kind, "i8", [i8(*BYTES)], i8(*BYTES, scale=scale, zeroPoint=signedZero))
        row(kind, "u8", [u8(*BYTES)], u8(*BYTES, scale=scale, zeroPoint=unsignedZero))
        row(kind, "i16", [i16(*SMALL)], i16(*SMALL, scale=1 / 32768))
    row("LOGICAL_NOT", "bool", [boolean(*SMALL)], boolean(*SMALL))
    for name, source, target, codes in (
            ("f32 to i32", f32, i32, (_FLOAT32, _INT32)),
            ("i32 to f32", i32, f32, (_INT32, _FLOAT32)),
            ("bool to f32", boolean, f32, (_BOOL, _FLOAT32)),
            ("i32 to i64", i32, i64, (_INT32, _INT64)),
            ("i32 to bool", i32, boolean, (_INT32, _BOOL))):
        row("CAST", name, [source(*IMAGE)], target(*IMAGE), in_type=codes[0], out_type=codes[1])
    for name, target in (("i8", i8), ("u8", u8), ("i16", i16)):
        row("QUANTIZE", f"f32 to {name}", [f32(*IMAGE)], target(*IMAGE))
        row("DEQUANTIZE", f"{name} to f32", [target(*IMAGE)], f32(*IMAGE))
    row("QUANTIZE", "i8 to i8", [i8(*BYTES)], i8(*BYTES, scale=1 / 50, zeroPoint=-9))
    row("QUANTIZE", "u8 to i8", [u8(*BYTES)], i8(*BYTES))
    row("QUANTIZE", "i16 to i8", [i16(*SMALL)], i8(*SMALL))


def pairs():
    """Functions of the elements of two tensors."""
    for kind, scale, shape in (("ADD", 1 / 4096, IMAGE), ("SUB", 1 / 4096, IMAGE),
                               ("MUL", 1 / 2048, SMALL)):
        row(kind, "i32", [i32(*IMAGE), i32(*IMAGE)], i32(*IMAGE))
        row(kind, "i16", [i16(*shape), i16(*shape)], i16(*shape, scale=scale))
    row("ADD", "f32, a row to all", [f32(*IMAGE), f32(1, 1, *IMAGE[2:])], f32(*IMAGE))
    row("ADD", "i8, a row to all", [i8(*BYTES), i8(1, 1, *BYTES[2:])],
        i8(*BYTES, scale=1 / 32))
    divisors = np.random.default_rng(1).integers(1, 10, SMALL).astype(np.int32)
    for kind in ("DIV", "FLOOR_DIV", "FLOOR_MOD"):
        row(kind, "i32", [i32(*SMALL), constant(divisors)], i32(*SMALL))
    for kind in ("FLOOR_DIV", "FLOOR_MOD"):
        row(kind, "f32", [f32(*SMALL), constant(divisors.astype(np.float32) / 16)], f32(*SMALL))
    row("POW", "f32", [constant(divisors.astype(np.float32)), f32(*SMALL)], f32(*SMALL))
    row("POW", "f32, squares", [f32(*IMAGE), constant(np.float32(2.0))], f32(*IMAGE))
    row("ATAN2", "f32", [f32(*SMALL), f32(*SMALL)], f32(*SMALL))
    for kind in ("MAXIMUM", "MINIMUM"):
        for make, name, shape in ((f32, "f32", IMAGE), (i8, "i8", BYTES), (u8, "u8", BYTES),
                                  (i32, "i32", IMAGE)):
            row(kind, name, [make(*shape), make(*shape)], make(*shape))
    row("SQUARED_DIFFERENCE", "f32", [f32(*IMAGE), f32(*IMAGE)], f32(*IMAGE))
    row("SQUARED_DIFFERENCE", "i8", [i8(*SMALL), i8(*SMALL)],
        i8(*SMALL, scale=1 / 4, zeroPoint=-128))
    for kind in ("EQUAL", "LESS", "GREATER_EQUAL"):
        for make, name, shape in ((f32, "f32", IMAGE), (i32, "i32", IMAGE), (i8, "i8", SMALL)):
            row(kind, name, [make(*shape), make(*shape)], boolean(*shape))
    row("LESS", "i8, two scales", [i8(*SMALL), i8(*SMALL, scale=1 / 50)], boolean(*SMALL))
    row("LESS", "u8, two scales", [u8(*SMALL), u8(*SMALL, scale=1 / 50)], boolean(*SMALL))
    row("NOT_EQUAL", "bool", [boolean(*BYTES), boolean(*BYTES)], boolean(*BYTES))
    for kind in ("LOGICAL_AND", "LOGICAL_OR"):
        row(kind, "bool", [boolean(*SMALL), boolean(*SMALL)], boolean(*SMALL))
    for kind in ("SELECT", "SELECT_V2"):
        row(kind, "f32", [boolean(*IMAGE), f32(*IMAGE), f32(*IMAGE)], f32(*IMAGE))
        row(kind, "i8", [boolean(*SMALL), i8(*SMALL), i8(*SMALL)], i8(*SMALL))
    row("SELECT_V2", "f32, a number", [boolean(*IMAGE), f32(*IMAGE), constant(np.float32(-1))],
        f32(*IMAGE))


def norms():
    for make, name, target in ((f32, "f32", f32(*IMAGE)),
                               (i8, "i8", i8(*SMALL, scale=1 / 128, zeroPoint=0)),
                               (u8, "u8", u8(*SMALL, scale=1 / 128, zeroPoint=128))):
        row("L2_NORMALIZATION", name, [make(*target.shape)], target)
    row("LOCAL_RESPONSE_NORMALIZATION", "f32", [f32(1, 64, 64, 64)], f32(1, 64, 64, 64), radius=5,
        bias=1.0, alpha=1e-4, beta=0.75)
    table = (1000, 1000)
    row("SOFTMAX", "f32", [f32(4000, 1000)], f32(4000, 1000), beta=1.0)
    row("SOFTMAX", "i8", [i8(*table)], i8(*table, scale=1 / 256, zeroPoint=-128), beta=1.0)
    row("SOFTMAX", "u8", [u8(*table)], u8(*table, scale=1 / 256, zeroPoint=0), beta=1.0)
    row("SOFTMAX", "i16", [i16(*table)], i16(*table, scale=1 / 32768), beta=1.0)
    row("LOG_SOFTMAX", "f32", [f32(*table)], f32(*table))
    row("LOG_SOFTMAX", "i8", [i8(*table)], i8(*table, scale=1 / 16, zeroPoint=127))
    row("LOG_SOFTMAX", "u8", [u8(*table)], u8(*table, scale=1 / 16, zeroPoint=255))


def lookups():
    rows = indices(20000, 40000)
    row("GATHER", "f32, rows", [f32(20000, 64), rows], f32(40000, 64), axis=0)
    row("GATHER", "i8, rows", [i8(20000, 256), rows], i8(40000, 256), axis=0)
    row("GATHER", "f32, columns", [f32(2000, 1024), indices(1024, 512)], f32(2000, 512), axis=1)
    row("GATHER_ND", "f32", [f32(200, 200, 64), indices(200, 40000, 2)], f32(40000, 64))
    row("GATHER_ND", "i8", [i8(200, 200, 64), indices(200, 80000, 2)], i8(80000, 64))
    row("EMBEDDING_LOOKUP", "f32", [rows, f32(20000, 64)], f32(40000, 64))
    tops = [f32(100, 10), i32(100, 10)]
    row("TOPK_V2", "f32", [f32(100, 10000), constant(np.int32(10))], tops)
    row("TOPK_V2", "f32, a long row", [f32(1, 1000000), constant(np.int32(100))],
        [f32(1, 100), i32(1, 100)])
    row("TOPK_V2", "i8", [i8(100, 10000), constant(np.int32(10))], [i8(100, 10), i32(100, 10)])
    row("TOPK_V2", "i32", [i32(100, 10000), constant(np.int32(10))], [i32(100, 10), i32(100, 10)])
    for kind in ("ARG_MAX", "ARG_MIN"):
        for make, name, count in ((f32, "f32", 4000), (i8, "i8", 16000), (u8, "u8", 16000)):
            row(kind, name, [make(count, 1000), constant(np.int32(1))], i32(count),
                output_type=_INT32)
        row(kind, "f32, outer dimension", [f32(1000, 4000), constant(np.int32(0))], i32(4000),
            output_type=_INT32)
    row("ONE_HOT", "f32", [i32(4000), constant(np.int32(1000)), constant(np.float32(1)),
                           constant(np.float32(0))], f32(4000, 1000), axis=-1)
    row("WHERE", "bool", [boolean(1000, 1000)], i64(1, 2))
    row("SCATTER_ND", "f32", [indices(20000, 40000, 1), f32(40000, 64), ints(20000, 64)],
        f32(20000, 64))
    row("SEGMENT_SUM", "f32", [f32(40000, 64), constant(np.arange(40000, dtype=np.int32) // 8)],
        f32(5000, 64))


def movements():
    margins = ints([0, 0], [2, 3], [1, 1], [0, 0])
    for make, name, image in ((f32, "f32", IMAGE), (i8, "i8", BYTES)):
        x, c = image[1], image[3]
        h = x // 2
        padded = (1, x + 5, x + 2, c)
        row("TILE", name, [make(1, x // 4, x // 4, c), ints(1, 4, 4, 1)], make(*image))
        row("TILE", name + ", channels", [make(1, x, x, c // 4), ints(1, 1, 1, 4)], make(*image))
        row("STRIDED_SLICE", name, [make(1, x, x, c), ints(0, 0, 0, 0), ints(1, x, x, c),
                                    ints(1, 2, 2, 1)], make(1, h, h, c))
        row("STRIDED_SLICE", name + ", elements",
            [make(1, 512, 4096), ints(0, 0, 0), ints(1, 512, 4096), ints(1, 1, 2)],
            make(1, 512, 2048))
        row("SLICE", name, [make(1, x + 20, x + 20, c + 8), ints(0, 20, 20, 4), ints(*image)],
            make(*image))
        row("REVERSE_V2", name, [make(*image), ints(1)], make(*image))
        row("REVERSE_V2", name + ", channels", [make(*image), ints(3)], make(*image))
        row("PAD", name, [make(*image), margins], make(*padded))
        filler = constant(np.float32(1)) if make is f32 else constant(np.int8(9), 1 / 64, 3)
        row("PADV2", name, [make(*image), margins, filler], make(*padded))
        row("MIRROR_PAD", name, [make(1, h, h, c), margins], make(1, h + 5, h + 2, c), mode=0)
        row("SPACE_TO_DEPTH", name, [make(*image)], make(1, h, h, 4 * c), block_size=2)
        row("DEPTH_TO_SPACE", name, [make(1, h, h, 4 * c)], make(*image), block_size=2)
        row("SPACE_TO_BATCH_ND", name, [make(*image), ints(2, 2), ints([0, 0], [0, 0])],
            make(4, h, h, c))
        row("BATCH_TO_SPACE_ND", name, [make(4, h, h, c), ints(2, 2), ints([0, 0], [0, 0])],
            make(*image))
        row("SPLIT", name, [constant(np.int32(3)), make(*image)], [make(1, x, x, c // 4)] * 4,
            num_splits=4)
        row("UNPACK", name, [make(*image[:3], 4)], [make(*image[:3])] * 4, num=4, axis=3)
        row("PACK", name, [make(*image)] * 2, make(1, 2, x, x, c), values_count=2, axis=1)
        row("PACK", name + ", last", [make(*image)] * 2, make(*image, 2), values_count=2, axis=4)
        row("CONCATENATION", name, [make(*image)] * 2, make(1, x, x, 2 * c), axis=3)
        row("TRANSPOSE", name + ", to planes", [make(*image), ints(0, 3, 1, 2)],
            make(1, c, x, x))
        row("TRANSPOSE", name + ", rows and columns", [make(*image), ints(0, 2, 1, 3)],
            make(*image))
        row("BROADCAST_TO", name, [make(1, h, 1, c), ints(1, h, h, c)], make(1, h, h, c))
        row("RESIZE_NEAREST_NEIGHBOR", name, [make(1, h, h, c), ints(x, x)], make(*image))
        row("RESIZE_BILINEAR", name, [make(1, h, h, c), ints(x, x)], make(*image),
            half_pixel_centers=True)
    row("REVERSE_SEQUENCE", "f32", [f32(64, 256, 256), constant(np.full(64, 200, np.int32))],
        f32(64, 256, 256), seq_dim=1, batch_dim=0)
    row("RESIZE_BILINEAR", "u8", [u8(1, 256, 256, 64), ints(512, 512)], u8(*BYTES))
    row("CONCATENATION", "u8, two scales", [u8(*IMAGE), u8(*IMAGE, scale=1 / 50)],
        u8(*IMAGE[:3], 128), axis=3)
    row("DYNAMIC_UPDATE_SLICE", "f32", [f32(*IMAGE), f32(1, 128, 128, 64), ints(0, 9, 9, 0)],
        f32(*IMAGE))


def reductions():
    for kind in ("SUM", "MEAN", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD"):
        row(kind, "f32, rows", [f32(8000, 1000), ints(1)], f32(8000))
        row(kind, "f32, columns", [f32(8000, 1000), ints(0)], f32(1000))
        row(kind, "f32, planes", [f32(1, 512, 512, 32), ints(1, 2)], f32(1, 32))
    for kind in ("SUM", "MEAN", "REDUCE_MAX"):
        row(kind, "i8, rows", [i8(32000, 1000), ints(1)], i8(32000))
        row(kind, "i8, planes", [i8(*BYTES), ints(1, 2)], i8(1, 64))
    row("MEAN", "u8, planes", [u8(*BYTES), ints(1, 2)], u8(1, 64))
    row("SUM", "i32, rows", [i32(8000, 1000), ints(1)], i32(8000))
    row("REDUCE_MAX", "i32, rows", [i32(8000, 1000), ints(1)], i32(8000))
    row("REDUCE_ANY", "bool, rows", [boolean(32000, 1000), ints(1)], boolean(32000))
    row("REDUCE_ALL", "bool, columns", [boolean(32000, 1000), ints(0)], boolean(1000))
    row("CUMSUM", "f32", [f32(4000, 500), constant(np.int32(1))], f32(4000, 500))
    row("CUMSUM", "f32, columns", [f32(500, 4000), constant(np.int32(0))], f32(500, 4000))
    row("CUMSUM", "i32", [i32(4000, 500), constant(np.int32(1))], i32(4000, 500))


def windows():
    window = {"padding": _VALID, "stride_w": 2, "stride_h": 2, "filter_w": 3, "filter_h": 3}
    for make, name, c in ((f32, "f32", 128), (i8, "i8", 256), (u8, "u8", 256), (i16, "i16", 16)):
        for kind in ("AVERAGE_POOL_2D", "MAX_POOL_2D"):
            row(kind, name, [make(1, 257, 257, c)], make(1, 128, 128, c), **window)
    row("L2_POOL_2D", "f32", [f32(1, 257, 257, 32)], f32(1, 128, 128, 32), **window)
    row("CONV_3D", "f32", [f32(1, 16, 32, 32, 16), weights(3, 3, 3, 16, 16)],
        f32(1, 14, 30, 30, 16), padding=_VALID, stride_d=1, stride_w=1, stride_h=1)
    strides = {"padding": _SAME, "stride_w": 2, "stride_h": 2}
    row("TRANSPOSE_CONV", "f32", [ints(1, 128, 128, 32), weights(32, 3, 3, 32), f32(1, 64, 64, 32)],
        f32(1, 128, 128, 32), **strides)
    channels = {"scales": np.full(32, 1 / 128), "axis": 0}
    row("TRANSPOSE_CONV", "i8", [ints(1, 256, 256, 32),
                                 weights(32, 3, 3, 32, dtype=np.int8, **channels),
                                 i8(1, 128, 128, 32)], i8(1, 256, 256, 32, scale=1 / 8), **strides)
    one = {"padding": _SAME, "stride_w": 1, "stride_h": 1}
    bias = weights(32, dtype=np.int64, scales=np.full(32, 1 / 128 / 4096))
    row("CONV_2D", "i16", [i16(1, 64, 64, 32), weights(32, 3, 3, 32, dtype=np.int8, **channels),
                           bias], i16(1, 64, 64, 32, scale=1 / 512), **one)
    row("DEPTHWISE_CONV_2D", "i16",
        [i16(1, 64, 64, 32), weights(1, 3, 3, 32, dtype=np.int8, scales=np.full(32, 1 / 128),
                                     axis=3), bias],
        i16(1, 64, 64, 32, scale=1 / 1024), depth_multiplier=1, **one)


def products():
    row("BATCH_MATMUL", "f32", [f32(8, 256, 256), f32(8, 256, 256)], f32(8, 256, 256))
    row("BATCH_MATMUL", "i8", [i8(8, 128, 128), i8(8, 128, 128)], i8(8, 128, 128, scale=1 / 8))
    row("BATCH_MATMUL", "i16", [i16(8, 128, 128), i16(8, 128, 128)],
        i16(8, 128, 128, scale=1 / 512))
    row("FULLY_CONNECTED", "i16", [i16(64, 512), weights(512, 512, dtype=np.int8, scale=1 / 128),
                                   weights(512, dtype=np.int64, scale=1 / 128 / 4096)],
        i16(64, 512, scale=1 / 256))


def sequences():
    batch, time, size, cells = 4, 64, 64, 128
    gate = lambda columns: weights(cells, columns)  # noqa: E731
    row("UNIDIRECTIONAL_SEQUENCE_LSTM", "f32",
        [f32(batch, time, size), *(gate(size) for _ in range(4)), *(gate(cells) for _ in range(4)),
         None, None, None, *(weights(cells) for _ in range(4)), None, None,
         state(f32(batch, cells)), state(f32(batch, cells))],
        f32(batch, time, cells), activation=4, time_major=False)
    row("UNIDIRECTIONAL_SEQUENCE_RNN", "f32",
        [f32(batch, time, size), gate(size), gate(cells), weights(cells),
         state(f32(batch, cells))],
        f32(batch, time, cells), activation=4)
    features, rank, memory = 1024, 1, 64
    row("SVDF", "f32",
        [f32(16, size), weights(features * rank, size), weights(features * rank, memory),
         weights(features), state(f32(16, memory * features * rank))],
        f32(16, features), rank=rank, activation=1)


for section in (functions, pairs, norms, lookups, movements, reductions, windows, products,
                sequences):
    section()
