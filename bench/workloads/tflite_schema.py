# SPDX-License-Identifier: Apache-2.0
"""Codes and field slots of the .tflite format that the writer and the reader share.

A .tflite file is a FlatBuffer. A table's fields are found by their position in the schema, its
slot; the numbers below are those of the published schema, version 3.
"""

import numpy as np

FILE_IDENTIFIER = b"TFL3"
SCHEMA_VERSION = 3

MODEL_VERSION, MODEL_OPERATOR_CODES, MODEL_SUBGRAPHS, MODEL_DESCRIPTION, MODEL_BUFFERS = range(5)
MODEL_SIGNATURE_DEFS = 7
OPERATOR_CODE_DEPRECATED, OPERATOR_CODE_VERSION, OPERATOR_CODE_BUILTIN = 0, 2, 3
(SUBGRAPH_TENSORS, SUBGRAPH_INPUTS, SUBGRAPH_OUTPUTS, SUBGRAPH_OPERATORS,
 SUBGRAPH_NAME) = range(5)
TENSOR_SHAPE, TENSOR_TYPE, TENSOR_BUFFER, TENSOR_NAME, TENSOR_QUANTIZATION = range(5)
TENSOR_HAS_RANK = 8
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

OPERATORS = {
    "ADD": OperatorSchema(0, 11, [_ACTIVATION]),
    "BATCH_MATMUL": OperatorSchema(126, 101, [("adj_x", "?", False), ("adj_y", "?", False)]),
    "CAST": OperatorSchema(53, 37, [("in_type", "b", 0), ("out_type", "b", 0)]),
    "CONCATENATION": OperatorSchema(2, 10, [("axis", "i", 0), _ACTIVATION]),
    "CONV_2D": OperatorSchema(
        3, 1, _PADDING_AND_STRIDES + [_ACTIVATION] + _DILATION, int8Version=3),
    "COS": OperatorSchema(108, 84, []),
    "DEPTHWISE_CONV_2D": OperatorSchema(
        4, 2, _PADDING_AND_STRIDES + [("depth_multiplier", "i", 0), _ACTIVATION] + _DILATION,
        int8Version=3),
    "DEQUANTIZE": OperatorSchema(6, 38, []),
    "DYNAMIC_UPDATE_SLICE": OperatorSchema(151, 117, []),
    "EMBEDDING_LOOKUP": OperatorSchema(7, 0, []),
    "FULLY_CONNECTED": OperatorSchema(
        9, 8, [_ACTIVATION, ("weights_format", "b", 0), ("keep_num_dims", "?", False)],
        int8Version=4),
    "GATHER": OperatorSchema(36, 23, [("axis", "i", 0), ("batch_dims", "i", 0)]),
    "GELU": OperatorSchema(150, 116, [("approximate", "?", False)]),
    "LOGISTIC": OperatorSchema(14, 0, []),
    "MAX_POOL_2D": OperatorSchema(
        17, 5, _PADDING_AND_STRIDES + [("filter_w", "i", 0), ("filter_h", "i", 0), _ACTIVATION]),
    "MEAN": OperatorSchema(40, 27, [("keep_dims", "?", False)]),
    "MUL": OperatorSchema(18, 21, [_ACTIVATION]),
    "PACK": OperatorSchema(83, 59, [("values_count", "i", 0), ("axis", "i", 0)]),
    "PAD": OperatorSchema(34, 22, []),
    "RESIZE_NEAREST_NEIGHBOR": OperatorSchema(
        97, 74, [("align_corners", "?", False), ("half_pixel_centers", "?", False)]),
    "RESHAPE": OperatorSchema(22, 17, [], int8Version=1),
    "RSQRT": OperatorSchema(76, 0, []),
    "SIN": OperatorSchema(66, 0, []),
    "SLICE": OperatorSchema(65, 48, []),
    "SOFTMAX": OperatorSchema(25, 9, [("beta", "f", 0.0)]),
    # Its options are of the second union: composite, attributes and decomposition.
    "STABLEHLO_COMPOSITE": OperatorSchema(206, 0, []),
    "SUB": OperatorSchema(41, 28, [_ACTIVATION]),
    "TRANSPOSE": OperatorSchema(39, 26, []),
}
OPERATOR_NAMES = {entry.code: name for name, entry in OPERATORS.items()}
