#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a .tflite network as ONNX, for runtimes that read nothing else.

    onnx_export.py MODEL.tflite OUT.onnx

The network keeps its inputs, outputs, weights and quantisation. Quantised operators are written as
ONNX Runtime's own tools write them, a float operator between DequantizeLinear and QuantizeLinear,
which runtimes fuse. int8 activations, and so inputs and outputs, are written as uint8, 128 greater: on
x86 ONNX Runtime has kernels for these alone, and changes some of the others into them. Pictures have
their channels first between the operators, and a padding becomes part of the convolution that follows
it. Runs in the virtual environment of ONNX Runtime.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from workloads import tflite_reader, tflite_schema as schema  # noqa: E402

# Orders of the dimensions of a picture.
CHANNELS_FIRST, CHANNELS_LAST = (0, 3, 1, 2), (0, 2, 3, 1)
# Of the operators and of the file, which ONNX Runtime reads since version 1.20.
OPERATOR_SET, FILE_VERSION = 21, 10
# Begins the names of inputs and outputs whose values are 128 greater than the network's.
SHIFTED = "shifted_"
ELEMENTWISE = {"ADD": "Add", "SUB": "Sub", "MUL": "Mul", "DIV": "Div"}
UNARY = {"LOGISTIC": "Sigmoid", "TANH": "Tanh", "RELU": "Relu", "SQRT": "Sqrt"}


class Unsupported(Exception):
    """A network that is not written; the text says why."""


@dataclass(frozen=True)
class Form:
    """One of the forms in which a tensor of the network is there."""
    tensor: int
    isChannelsFirst: bool
    isReal: bool  # dequantised


class Exporter:
    def __init__(self, graph):
        self._graph = graph
        self._nodes, self._initializers = [], []
        self._forms = {}  # Form: name
        self._producers = {output: operator for operator in graph.operators
                           for output in operator.outputs}
        self._count = 0

    def export(self):
        inputs = []
        for index in self._graph.inputs:
            name = self._portName("input", index)
            inputs.append(self._info(name, index))
            self._forms[Form(index, False, not self._isQuantized(index))] = name
        for operator in self._graph.operators:
            write = getattr(self, f"_write_{operator.kind}", None)
            if write is None and operator.kind not in ELEMENTWISE | UNARY:
                raise Unsupported(f"onnx_export.py does not write the operator {operator.kind}")
            (write or self._writeSimple)(operator)
        outputs = []
        for index in self._graph.outputs:
            name = self._portName("output", index)
            self._node("Identity", [self._stored(index)], outputs=[name])
            outputs.append(self._info(name, index))
        graph = helper.make_graph(self._nodes, "network", inputs, outputs, self._initializers)
        return helper.make_model(graph, ir_version=FILE_VERSION,
                                 opset_imports=[helper.make_opsetid("", OPERATOR_SET)])

    def _info(self, name, index):
        """An input or output; SHIFTED begins the name of one that is int8 in the network."""
        return helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(self._dtype(index)), self._shape(index))

    def _portName(self, kind, index):
        return f"{SHIFTED if self._isShifted(index) else ''}{kind}_{index}"

    def _name(self):
        self._count += 1
        return f"value_{self._count}"

    def _node(self, kind, inputs, outputs=None, **attributes):
        """Adds a node and returns the name of its first output."""
        outputs = outputs or [self._name()]
        self._nodes.append(helper.make_node(kind, inputs, outputs, **attributes))
        return outputs[0]

    def _constant(self, array):
        name = self._name()
        self._initializers.append(numpy_helper.from_array(np.array(array, order="C"), name))
        return name

    def _isQuantized(self, index):
        tensor = self._graph.tensors[index]
        return tensor.quantization is not None and tensor.dtype != np.float32

    def _isShifted(self, index):
        """Whether the network's int8 is uint8 here, which it is but for weights."""
        return self._isQuantized(index) and self._graph.tensors[index].dtype == np.int8

    def _dtype(self, index):
        return np.dtype(np.uint8) if self._isShifted(index) else self._graph.tensors[index].dtype

    def _zeroPoints(self, index):
        """Those of an activation as it is here."""
        values = self._graph.tensors[index].quantization.zero_point
        return (values if len(values) else np.zeros(1)) + (128 if self._isShifted(index) else 0)

    def _shape(self, index):
        return self._graph.tensors[index].shape

    def _data(self, index):
        data = self._graph.tensors[index].data
        if data is None:
            raise Unsupported(f"onnx_export.py does not write networks that compute the tensor "
                              f"{self._graph.tensors[index].name!r}, which it takes for constant")
        return np.asarray(data)

    def _scales(self, index):
        """The names of scale and zero point of an activation."""
        scale = self._graph.tensors[index].quantization.scale
        if len(scale) != 1:
            raise Unsupported("onnx_export.py does not write activations with several scales")
        return [self._constant(np.float32(scale[0])),
                self._constant(self._zeroPoints(index)[0].astype(self._dtype(index)))]

    # Forms of tensors.

    def _form(self, index, isChannelsFirst, isReal):
        isReal = isReal or not self._isQuantized(index)
        wanted = Form(index, isChannelsFirst, isReal)
        if isReal and self._isQuantized(index):
            # One for each use: a shared one is not fused with all operators that use it.
            return self._node("DequantizeLinear", [self._form(index, isChannelsFirst, False),
                                                   *self._scales(index)])
        if wanted not in self._forms:
            self._forms[wanted] = self._makeForm(wanted)
        return self._forms[wanted]

    def _makeForm(self, wanted):
        index = wanted.tensor
        other = Form(index, not wanted.isChannelsFirst, wanted.isReal)
        order = CHANNELS_FIRST if wanted.isChannelsFirst else CHANNELS_LAST
        if other in self._forms:
            return self._node("Transpose", [self._forms[other]], perm=order)
        data = self._data(index)
        if self._isShifted(index):
            data = data.view(np.uint8) ^ np.uint8(128)
        return self._constant(data.transpose(order) if wanted.isChannelsFirst else data)

    def _stored(self, index, isChannelsFirst=False):
        return self._form(index, isChannelsFirst, False)

    def _real(self, index, isChannelsFirst=False):
        return self._form(index, isChannelsFirst, True)

    def _isThere(self, index, isChannelsFirst):
        return any(Form(index, isChannelsFirst, isReal) in self._forms for isReal in (True, False))

    def _prefersChannelsFirst(self, operator):
        """Whether the operator's inputs that are computed are all there with channels first."""
        computed = [index for index in operator.inputs
                    if index >= 0 and self._graph.tensors[index].data is None]
        return bool(computed) and all(len(self._shape(index)) == 4 and self._isThere(index, True)
                                      for index in computed)

    def _define(self, operator, real, isChannelsFirst=False):
        """The operator's output is `real`, after its activation and quantisation."""
        [index] = operator.outputs
        activation = operator.options.get("activation", schema.ACTIVATION_NONE)
        limits = {schema.ACTIVATION_NONE: (-np.inf, np.inf), schema.ACTIVATION_RELU: (0, np.inf),
                  schema.ACTIVATION_RELU6: (0, 6)}.get(activation)
        if limits is None:
            raise Unsupported(f"onnx_export.py does not write the activation {activation}")
        if self._isQuantized(index):
            name = self._node("QuantizeLinear", [real, *self._scales(index)])
            name = self._clippedQuantized(name, index, limits)
        else:
            name = self._clipped(real, limits)
        self._defineStored(index, name, isChannelsFirst)

    def _defineStored(self, index, name, isChannelsFirst=False):
        self._forms[Form(index, isChannelsFirst, not self._isQuantized(index))] = name

    def _clipped(self, real, limits):
        if limits == (-np.inf, np.inf):
            return real
        if limits == (0, np.inf):
            return self._node("Relu", [real])
        return self._node("Clip", [real, *(self._constant(np.float32(limit)) for limit in limits)])

    def _clippedQuantized(self, name, index, limits):
        """Behind the quantisation, which is fused with the operator; and only where the limits are
        not those of the type."""
        dtype = self._dtype(index)
        bounds = np.array([np.iinfo(dtype).min, np.iinfo(dtype).max], np.float64)
        steps = np.rint(np.array(limits) / float(self._graph.tensors[index].quantization.scale[0]))
        allowed = np.clip(steps + self._zeroPoints(index)[0], *bounds)
        if (allowed == bounds).all():
            return name
        return self._node("Clip", [name, *(self._constant(limit.astype(dtype))
                                           for limit in allowed)])

    # Operators.

    def _writeSimple(self, operator):
        kind = operator.kind
        isChannelsFirst = self._prefersChannelsFirst(operator)
        if kind in UNARY:
            values = [self._real(operator.inputs[0], isChannelsFirst)]
        else:
            values = [self._operand(index, isChannelsFirst) for index in operator.inputs]
        self._define(operator, self._node((ELEMENTWISE | UNARY)[kind], values), isChannelsFirst)

    def _operand(self, index, isChannelsFirst):
        """An operand of an elementwise operator, whose last dimensions are aligned."""
        shape = self._shape(index)
        if not isChannelsFirst or len(shape) == 4:
            return self._real(index, isChannelsFirst)
        if len(shape) != 1:
            raise Unsupported(f"onnx_export.py does not write a picture combined with the shape "
                              f"{shape}")
        return self._node("Reshape", [self._real(index),
                                      self._constant(np.array([-1, 1, 1], np.int64))])

    def _window(self, operator, index, kernel, before=(0, 0, 0, 0)):
        """Strides and paddings; `before` are those of a padding that becomes part of it."""
        options = operator.options
        strides = [options["stride_h"], options["stride_w"]]
        dilations = [options.get("dilation_h", 1), options.get("dilation_w", 1)]
        pads = list(before)
        if options["padding"] == schema.PADDING_SAME:
            for axis in range(2):
                size = self._shape(index)[1 + axis]
                reach = (kernel[axis] - 1) * dilations[axis] + 1
                total = max((-(-size // strides[axis]) - 1) * strides[axis] + reach - size, 0)
                pads[axis] += total // 2
                pads[2 + axis] += total - total // 2
        return {"kernel_shape": list(kernel), "strides": strides, "dilations": dilations,
                "pads": pads}

    def _write_CONV_2D(self, operator):
        weights = self._shape(operator.inputs[1])
        self._convolution(operator, weights[1:3], lambda data: data.transpose(0, 3, 1, 2), group=1)

    def _write_DEPTHWISE_CONV_2D(self, operator):
        weights = self._shape(operator.inputs[1])
        self._convolution(operator, weights[1:3], lambda data: data.transpose(3, 0, 1, 2),
                          group=self._shape(operator.inputs[0])[3])

    def _convolution(self, operator, kernel, reorder, group):
        source, weights, *bias = operator.inputs
        before = (0, 0, 0, 0)
        producer = self._producers.get(source)
        if (producer is not None and producer.kind == "PAD"
                and operator.options["padding"] == schema.PADDING_VALID):
            margins = self._data(producer.inputs[1])
            if not margins[[0, 3]].any():
                source = producer.inputs[0]
                before = (*margins[1:3, 0].tolist(), *margins[1:3, 1].tolist())
        values = [self._real(source, True), self._weights(weights, reorder)]
        values += [self._weights(index) for index in bias if index >= 0]
        real = self._node("Conv", values, group=group,
                          **self._window(operator, source, kernel, before))
        self._define(operator, real, True)

    def _weights(self, index, reorder=lambda data: data):
        """Constants, dequantised with one scale for each index of their first dimension."""
        name = self._constant(reorder(self._data(index)))
        if not self._isQuantized(index):
            return name
        tensor = self._graph.tensors[index]
        scale, zeroPoint = tensor.quantization.scale, tensor.quantization.zero_point
        if not len(zeroPoint):
            zeroPoint = np.zeros(len(scale))
        attributes = {"axis": 0}
        if len(scale) == 1:
            scale, zeroPoint, attributes = scale[0], zeroPoint[0], {}
        return self._node("DequantizeLinear", [
            name, self._constant(np.asarray(scale, np.float32)),
            self._constant(np.asarray(zeroPoint).astype(tensor.dtype))], **attributes)

    def _write_FULLY_CONNECTED(self, operator):
        source, weights, *bias = operator.inputs
        outputs, inputs = self._shape(weights)
        shape = self._shape(source)
        value = self._real(source)
        bias = [self._weights(index) for index in bias if index >= 0]
        if len(shape) != 2 and not self._isQuantized(source) and shape[-1] == inputs:
            real = self._node("MatMul", [value, self._constant(self._data(weights).T)])
            if bias:
                real = self._node("Add", [real, *bias])
            return self._define(operator, real)
        if len(shape) != 2:
            value = self._node("Reshape", [value, self._constant(np.array([-1, inputs], np.int64))])
        real = self._node("Gemm", [value, self._weights(weights), *bias], transB=1)
        [output] = operator.outputs
        if len(self._shape(output)) != 2:
            real = self._node("Reshape", [real, self._constant(
                np.array(self._shape(output), np.int64))])
        self._define(operator, real)

    def _write_PAD(self, operator):
        source, margins = operator.inputs
        [output] = operator.outputs
        users = [other for other in self._graph.operators if output in other.inputs]
        if output not in self._graph.outputs and all(other.kind in ("CONV_2D", "DEPTHWISE_CONV_2D")
               and other.options["padding"] == schema.PADDING_VALID
               and not self._data(margins)[[0, 3]].any() for other in users):
            return  # becomes part of the convolutions
        isChannelsFirst = self._prefersChannelsFirst(operator)
        amounts = self._data(margins)
        if isChannelsFirst:
            amounts = amounts[list(CHANNELS_FIRST)]
        fill = np.zeros((), self._dtype(source))
        if self._isQuantized(source):
            fill = self._zeroPoints(source)[0].astype(fill.dtype)
        pads = self._constant(amounts.T.reshape(-1).astype(np.int64))
        self._defineStored(output, self._node(
            "Pad", [self._stored(source, isChannelsFirst), pads, self._constant(fill)]),
            isChannelsFirst)

    def _write_MAX_POOL_2D(self, operator):
        self._pool(operator, "MaxPool")

    def _write_AVERAGE_POOL_2D(self, operator):
        self._pool(operator, "AveragePool")

    def _pool(self, operator, kind):
        [source] = operator.inputs
        kernel = (operator.options["filter_h"], operator.options["filter_w"])
        window = self._window(operator, source, kernel)
        if kind == "AveragePool" and kernel == self._shape(source)[1:3] and not any(window["pads"]):
            return self._define(operator, self._node("GlobalAveragePool",
                                                     [self._real(source, True)]), True)
        self._define(operator, self._node(kind, [self._real(source, True)], **window), True)

    def _write_MEAN(self, operator):
        source, axes = operator.inputs
        shape, axes = self._shape(source), sorted(int(axis) for axis in self._data(axes).reshape(-1))
        axes = [axis % len(shape) for axis in axes]
        if len(shape) == 4 and axes == [1, 2]:
            real = self._node("GlobalAveragePool", [self._real(source, True)])
            if operator.options["keep_dims"]:
                return self._define(operator, real, True)
            return self._define(operator, self._node("Flatten", [real]))
        self._define(operator, self._node(
            "ReduceMean", [self._real(source), self._constant(np.array(axes, np.int64))],
            keepdims=int(operator.options["keep_dims"])))

    def _write_RESHAPE(self, operator):
        [output] = operator.outputs
        shape = self._constant(np.array(self._shape(output), np.int64))
        self._defineStored(output, self._node("Reshape", [self._stored(operator.inputs[0]), shape]))

    def _write_TRANSPOSE(self, operator):
        source, order = operator.inputs
        order = tuple(int(axis) for axis in self._data(order))
        [output] = operator.outputs
        if order == CHANNELS_LAST:  # the source is the output with the channels first
            return self._defineStored(output, self._stored(source), True)
        if order == CHANNELS_FIRST and self._isThere(source, True):
            return self._defineStored(output, self._stored(source, True))
        self._defineStored(output, self._node("Transpose", [self._stored(source)], perm=order))

    def _write_SOFTMAX(self, operator):
        if operator.options["beta"] != 1:
            raise Unsupported("onnx_export.py writes SOFTMAX with a beta of 1 only")
        self._define(operator, self._node("Softmax", [self._real(operator.inputs[0])], axis=-1))

    def _write_CONCATENATION(self, operator):
        isChannelsFirst = self._prefersChannelsFirst(operator)
        axis = operator.options["axis"]
        if isChannelsFirst:
            axis = CHANNELS_FIRST.index(axis % 4)
        values = [self._real(index, isChannelsFirst) for index in operator.inputs]
        self._define(operator, self._node("Concat", values, axis=axis), isChannelsFirst)

    def _write_SPLIT(self, operator):
        axis, source = operator.inputs
        names = [self._name() for _ in operator.outputs]
        self._node("Split", [self._stored(source)], outputs=names, num_outputs=len(names),
                   axis=int(self._data(axis).reshape(-1)[0]))
        for output, name in zip(operator.outputs, names):
            self._defineStored(output, name)

    def _write_RESIZE_BILINEAR(self, operator):
        options = operator.options
        mode = ("align_corners" if options["align_corners"] else
                "half_pixel" if options["half_pixel_centers"] else "asymmetric")
        source, [output] = operator.inputs[0], operator.outputs
        batch, height, width, channels = self._shape(output)
        sizes = self._constant(np.array([batch, channels, height, width], np.int64))
        self._define(operator, self._node(
            "Resize", [self._real(source, True), "", "", sizes], mode="linear",
            coordinate_transformation_mode=mode), True)

    def _write_QUANTIZE(self, operator):
        isChannelsFirst = self._prefersChannelsFirst(operator)
        self._define(operator, self._real(operator.inputs[0], isChannelsFirst), isChannelsFirst)

    _write_DEQUANTIZE = _write_QUANTIZE

    def _write_ARG_MAX(self, operator):
        source, axis = operator.inputs
        rank = len(self._shape(source))
        axis = int(self._data(axis).reshape(-1)[0]) % rank
        isChannelsFirst = rank == 4 and self._isThere(source, True)
        # The result lacks the axis of the channels, so both orders give the same one.
        if isChannelsFirst and axis != 3:
            isChannelsFirst = False
        found = self._node("ArgMax", [self._stored(source, isChannelsFirst)],
                           axis=1 if isChannelsFirst else axis, keepdims=0)
        [output] = operator.outputs
        if self._graph.tensors[output].dtype != np.int64:
            found = self._node("Cast", [found], to=helper.np_dtype_to_tensor_dtype(
                self._graph.tensors[output].dtype))
        self._defineStored(output, found)

    def _write_RSQRT(self, operator):
        root = self._node("Sqrt", [self._real(operator.inputs[0])])
        self._define(operator, self._node("Reciprocal", [root]))

    def _write_EMBEDDING_LOOKUP(self, operator):
        rows, table = operator.inputs
        self._define(operator, self._node("Gather", [self._weights(table), self._stored(rows)],
                                          axis=0))

    def _write_BATCH_MATMUL(self, operator):
        values = []
        for index, isTransposed in zip(operator.inputs, (operator.options["adj_x"],
                                                         operator.options["adj_y"])):
            values.append(self._real(index))
            if isTransposed:
                order = list(range(len(self._shape(index))))
                order[-2:] = order[:-3:-1]
                values[-1] = self._node("Transpose", [values[-1]], perm=order)
        self._define(operator, self._node("MatMul", values))

    def _write_STABLEHLO_COMPOSITE(self, operator):
        if operator.options["composite"] != "odml.scaled_dot_product_attention":
            raise Unsupported("onnx_export.py does not write the composite operator "
                              f"{operator.options['composite']}")
        query, key, value, *mask = (self._real(index) for index in operator.inputs)
        query, value = (self._node("Transpose", [name], perm=[0, 2, 1, 3])
                        for name in (query, value))
        key = self._node("Transpose", [key], perm=[0, 2, 3, 1])
        scores = self._node("MatMul", [query, key])
        scale = self._constant(np.float32(operator.options["attributes"]["scale"]))
        scores = self._node("Mul", [scores, scale])
        if mask:
            scores = self._node("Add", [scores, *mask])
        result = self._node("MatMul", [self._node("Softmax", [scores], axis=-1), value])
        self._define(operator, self._node("Transpose", [result], perm=[0, 2, 1, 3]))


def main(words):
    if len(words) != 2:
        sys.exit("usage: onnx_export.py MODEL.tflite OUT.onnx")
    source, target = map(Path, words)
    try:
        model = Exporter(tflite_reader.read(source)).export()
    except Unsupported as reason:
        sys.exit(str(reason))
    except KeyError as code:
        sys.exit(f"onnx_export.py does not know the operator with the code {code}")
    partial = target.with_suffix(".partial")
    onnx.save(model, partial)
    partial.replace(target)


if __name__ == "__main__":
    main(sys.argv[1:])
