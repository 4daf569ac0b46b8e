# SPDX-License-Identifier: Apache-2.0
"""Codes and field slots of the .tflite format that the writer and the reader share.

A .tflite file is a FlatBuffer. A table's fields are found by their position in the schema, its
slot; the numbers below are those of the published schema, version 3.
"""

import numpy as np

FILE_IDENTIFIER = b"TFL3"
SCHEMA_VERSION = 3

MODEL_VERSION, MODEL_OPERATOR_CODES, MODEL_SUBGRAPHS, MODEL_DESCRIPTION, MODEL_BUFFERS = range(5)
MODEL_METADATA, MODEL_SIGNATURE_DEFS = 6, 7
METADATA_NAME, METADATA_BUFFER = range(2)
OPERATOR_CODE_DEPRECATED, OPERATOR_CODE_VERSION, OPERATOR_CODE_BUILTIN = 0, 2, 3
(SUBGRAPH_TENSORS, SUBGRAPH_INPUTS, SUBGRAPH_OUTPUTS, SUBGRAPH_OPERATORS,
 SUBGRAPH_NAME) = range(5)
TENSOR_SHAPE, TENSOR_TYPE, TENSOR_BUFFER, TENSOR_NAME, TENSOR_QUANTIZATION = range(5)
TENSOR_IS_VARIABLE, TENSOR_SHAPE_SIGNATURE, TENSOR_HAS_RANK = 5, 7, 8
QUANTIZATION_SCALE, QUANTIZATION_ZERO_POINT, QUANTIZATION_DIMENSION = 2, 3, 6
QUANTIZATION_DETAILS_TYPE, QUANTIZATION_DETAILS = 4, 5
BLOCKWISE = 2  # of the union of quantisation details
BLOCKWISE_SCALES, BLOCKWISE_ZERO_POINTS, BLOCKWISE_SIZE = range(3)
(OPERATOR_OPCODE_INDEX, OPERATOR_INPUTS, OPERATOR_OUTPUTS, OPERATOR_OPTIONS_TYPE,
 OPERATOR_OPTIONS) = range(5)
OPERATOR_OPTIONS_2_TYPE, OPERATOR_OPTIONS_2 = 11, 12
COMPOSITE_OPTIONS = 21  # of the second union of options
COMPOSITE_NAME, COMPOSITE_DECOMPOSITION, COMPOSITE_ATTRIBUTES = range(3)
BUFFER_DATA, BUFFER_OFFSET, BUFFER_SIZE = range(3)
SIGNATURE_INPUTS, SIGNATURE_OUTPUTS, SIGNATURE_KEY, SIGNATURE_SUBGRAPH = 0, 1, 2, 4
TENSOR_MAP_NAME, TENSOR_MAP_INDEX = 0, 1

PADDING_SAME, PADDING_VALID = 0, 1
ACTIVATION_NONE, ACTIVATION_RELU, ACTIVATION_RELU6 = 0, 1, 3

# Buffers are aligned in the file to what the schema asks for.
BUFFER_ALIGNMENT = 16

# Elements of four bits, two in a byte: their arrays hold uint8 pairs, the first element low.
INT4 = np.dtype("V1")

TYPE_CODES = {np.dtype(np.float32): 0, np.dtype(np.float16): 1, np.dtype(np.int32): 2,
              np.dtype(np.uint8): 3, np.dtype(np.int64): 4, np.dtype(np.bool_): 6,
              np.dtype(np.int16): 7, np.dtype(np.int8): 9, INT4: 17}
TYPES = {code: dtype for dtype, code in TYPE_CODES.items()}


class OperatorSchema:
    """Code of an operator, its version for float32 and int8, and its options table.

    `fields` are (name, struct format, default) in slot order; `union` is the options' code in the
    union of all options, 0 for an operator without options.
    """

    def __init__(self, code, union, fields, floatVersion=1, int8Version=2):
        self.code = code
        self.union = union
        self.fields = fields
        self.floatVersion = floatVersion
        self.int8Version = int8Version


_ACTIVATION = ("activation", "b", 0)
_PADDING_AND_STRIDES = [("padding", "b", 0), ("stride_w", "i", 0), ("stride_h", "i", 0)]
_DILATION = [("dilation_w", "i", 1), ("dilation_h", "i", 1)]

_POOLING = _PADDING_AND_STRIDES + [("filter_w", "i", 0), ("filter_h", "i", 0), _ACTIVATION]
_KEEP_DIMS = [("keep_dims", "?", False)]
_BLOCK_SIZE = [("block_size", "i", 0)]
_OUTPUT_TYPE = [("output_type", "b", 0)]
_ALIGNMENT = [("align_corners", "?", False), ("half_pixel_centers", "?", False)]
_RECURRENT = ("asymmetric_quantize_inputs", "?", False)

OPERATORS = {
    "ABS": OperatorSchema(101, 0, []),
    "ADD": OperatorSchema(0, 11, [_ACTIVATION]),
    "ARG_MAX": OperatorSchema(56, 40, _OUTPUT_TYPE),
    "ARG_MIN": OperatorSchema(79, 57, _OUTPUT_TYPE),
    "ATAN2": OperatorSchema(156, 0, []),
    "AVERAGE_POOL_2D": OperatorSchema(1, 5, _POOLING),
    "BATCH_MATMUL": OperatorSchema(126, 101, [("adj_x", "?", False), ("adj_y", "?", False)]),
    "BATCH_TO_SPACE_ND": OperatorSchema(37, 0, []),
    "BROADCAST_TO": OperatorSchema(130, 0, [], floatVersion=2),
    "CAST": OperatorSchema(53, 37, [("in_type", "b", 0), ("out_type", "b", 0)]),
    "CEIL": OperatorSchema(104, 0, []),
    "CONCATENATION": OperatorSchema(2, 10, [("axis", "i", 0), _ACTIVATION]),
    "CONV_2D": OperatorSchema(
        3, 1, _PADDING_AND_STRIDES + [_ACTIVATION] + _DILATION, int8Version=3),
    "CONV_3D": OperatorSchema(
        132, 106, [("padding", "b", 0), ("stride_d", "i", 0), ("stride_w", "i", 0),
                   ("stride_h", "i", 0), _ACTIVATION, ("dilation_d", "i", 1)] + _DILATION),
    "COS": OperatorSchema(108, 84, []),
    "CUMSUM": OperatorSchema(128, 102, [("exclusive", "?", False), ("reverse", "?", False)]),
    "DEPTHWISE_CONV_2D": OperatorSchema(
        4, 2, _PADDING_AND_STRIDES + [("depth_multiplier", "i", 0), _ACTIVATION] + _DILATION,
        int8Version=3),
    "DEPTH_TO_SPACE": OperatorSchema(5, 94, _BLOCK_SIZE, int8Version=1),
    "DEQUANTIZE": OperatorSchema(6, 38, []),
    "DIV": OperatorSchema(42, 29, [_ACTIVATION]),
    "DYNAMIC_UPDATE_SLICE": OperatorSchema(151, 117, []),
    "ELU": OperatorSchema(111, 0, [], int8Version=1),
    "EMBEDDING_LOOKUP": OperatorSchema(7, 0, []),
    "EQUAL": OperatorSchema(71, 0, []),
    "EXP": OperatorSchema(47, 0, []),
    "FLOOR": OperatorSchema(8, 0, []),
    "FLOOR_DIV": OperatorSchema(90, 0, []),
    "FLOOR_MOD": OperatorSchema(95, 0, []),
    "FULLY_CONNECTED": OperatorSchema(
        9, 8, [_ACTIVATION, ("weights_format", "b", 0), ("keep_num_dims", "?", False)],
        int8Version=4),
    "GATHER": OperatorSchema(36, 23, [("axis", "i", 0), ("batch_dims", "i", 0)]),
    "GATHER_ND": OperatorSchema(107, 0, []),
    "GELU": OperatorSchema(150, 116, [("approximate", "?", False)]),
    "GREATER": OperatorSchema(61, 0, []),
    "GREATER_EQUAL": OperatorSchema(62, 0, []),
    "HARD_SWISH": OperatorSchema(117, 0, [], int8Version=1),
    "L2_NORMALIZATION": OperatorSchema(11, 12, [_ACTIVATION]),
    "L2_POOL_2D": OperatorSchema(12, 5, _POOLING),
    "LEAKY_RELU": OperatorSchema(98, 75, [("alpha", "f", 0.0)]),
    "LESS": OperatorSchema(58, 0, []),
    "LESS_EQUAL": OperatorSchema(63, 0, []),
    "LOCAL_RESPONSE_NORMALIZATION": OperatorSchema(
        13, 13, [("radius", "i", 0), ("bias", "f", 0.0), ("alpha", "f", 0.0),
                 ("beta", "f", 0.0)]),
    "LOG": OperatorSchema(73, 0, []),
    "LOGICAL_AND": OperatorSchema(86, 0, []),
    "LOGICAL_NOT": OperatorSchema(87, 0, []),
    "LOGICAL_OR": OperatorSchema(84, 0, []),
    "LOGISTIC": OperatorSchema(14, 0, []),
    "LOG_SOFTMAX": OperatorSchema(50, 0, []),
    "MAXIMUM": OperatorSchema(55, 0, []),
    "MAX_POOL_2D": OperatorSchema(17, 5, _POOLING),
    "MEAN": OperatorSchema(40, 27, _KEEP_DIMS),
    "MINIMUM": OperatorSchema(57, 0, []),
    "MIRROR_PAD": OperatorSchema(100, 77, [("mode", "b", 0)]),
    "MUL": OperatorSchema(18, 21, [_ACTIVATION]),
    "NEG": OperatorSchema(59, 0, []),
    "NOT_EQUAL": OperatorSchema(72, 0, []),
    "ONE_HOT": OperatorSchema(85, 61, [("axis", "i", 0)]),
    "PACK": OperatorSchema(83, 59, [("values_count", "i", 0), ("axis", "i", 0)]),
    "PAD": OperatorSchema(34, 22, []),
    "PADV2": OperatorSchema(60, 0, []),
    "POW": OperatorSchema(78, 0, []),
    "PRELU": OperatorSchema(54, 0, [], int8Version=1),
    "QUANTIZE": OperatorSchema(114, 0, []),
    "REDUCE_ALL": OperatorSchema(140, 27, _KEEP_DIMS),
    "REDUCE_ANY": OperatorSchema(91, 27, _KEEP_DIMS),
    "REDUCE_MAX": OperatorSchema(82, 27, _KEEP_DIMS),
    "REDUCE_MIN": OperatorSchema(89, 27, _KEEP_DIMS),
    "REDUCE_PROD": OperatorSchema(81, 27, _KEEP_DIMS),
    "RESHAPE": OperatorSchema(22, 17, [], int8Version=1),
    # The first two fields of its options are no longer used.
    "RESIZE_BILINEAR": OperatorSchema(
        23, 15, [("unused_0", "i", 0), ("unused_1", "i", 0)] + _ALIGNMENT),
    "RESIZE_NEAREST_NEIGHBOR": OperatorSchema(97, 74, _ALIGNMENT),
    "REVERSE_SEQUENCE": OperatorSchema(112, 87, [("seq_dim", "i", 0), ("batch_dim", "i", 0)]),
    "REVERSE_V2": OperatorSchema(105, 0, []),
    "ROUND": OperatorSchema(116, 0, []),
    "RSQRT": OperatorSchema(76, 0, []),
    "SCATTER_ND": OperatorSchema(122, 0, []),
    "SEGMENT_SUM": OperatorSchema(125, 0, []),
    "SELECT": OperatorSchema(64, 0, []),
    "SELECT_V2": OperatorSchema(123, 0, []),
    "SIGN": OperatorSchema(158, 0, []),
    "SIN": OperatorSchema(66, 0, []),
    "SLICE": OperatorSchema(65, 48, []),
    "SOFTMAX": OperatorSchema(25, 9, [("beta", "f", 0.0)]),
    "SPACE_TO_BATCH_ND": OperatorSchema(38, 0, []),
    "SPACE_TO_DEPTH": OperatorSchema(26, 19, _BLOCK_SIZE),
    "SPLIT": OperatorSchema(49, 35, [("num_splits", "i", 0)]),
    "SQRT": OperatorSchema(75, 0, []),
    "SQUARED_DIFFERENCE": OperatorSchema(99, 0, []),
    # Its options are of the second union: composite, attributes and decomposition.
    "STABLEHLO_COMPOSITE": OperatorSchema(206, 0, []),
    "STRIDED_SLICE": OperatorSchema(
        45, 32, [(name + "_mask", "i", 0)
                 for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")]),
    "SUB": OperatorSchema(41, 28, [_ACTIVATION]),
    "SUM": OperatorSchema(74, 27, _KEEP_DIMS),
    "SVDF": OperatorSchema(27, 6, [("rank", "i", 0), _ACTIVATION, _RECURRENT]),
    "TANH": OperatorSchema(28, 0, []),
    "TILE": OperatorSchema(69, 0, []),
    "TOPK_V2": OperatorSchema(48, 0, []),
    "TRANSPOSE": OperatorSchema(39, 26, []),
    "TRANSPOSE_CONV": OperatorSchema(67, 49, _PADDING_AND_STRIDES + [_ACTIVATION]),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": OperatorSchema(
        44, 71, [_ACTIVATION, ("cell_clip", "f", 0.0), ("proj_clip", "f", 0.0),
                 ("time_major", "?", False), _RECURRENT]),
    "UNIDIRECTIONAL_SEQUENCE_RNN": OperatorSchema(
        35, 31, [("time_major", "?", False), _ACTIVATION, _RECURRENT]),
    "UNPACK": OperatorSchema(88, 64, [("num", "i", 0), ("axis", "i", 0)]),
    "WHERE": OperatorSchema(109, 0, []),
}
OPERATOR_NAMES = {entry.code: name for name, entry in OPERATORS.items()}
