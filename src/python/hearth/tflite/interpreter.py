# SPDX-License-Identifier: Apache-2.0
"""The interpreter that programs know from tflite_runtime.interpreter and ai_edge_litert.interpreter."""

import ctypes
import enum
import operator
import os
import warnings

import numpy as np

from . import _delegate, _model_file
from ._delegate import Delegate, load_delegate
from ._graph import Graph

__all__ = ["Delegate", "Interpreter", "InterpreterWithCustomOps", "OpResolverType", "SignatureRunner",
           "load_delegate"]


class OpResolverType(enum.Enum):
    """Sets of kernels in TensorFlow Lite. Hearth has one set, so they make no difference."""

    AUTO = 0
    BUILTIN = 1
    BUILTIN_REF = 2
    BUILTIN_WITHOUT_DEFAULT_DELEGATES = 3


class Interpreter:
    """Runs a .tflite file. Creating one reads no weights; allocate_tensors() prepares the model, from
    packed weights where an earlier start has stored them. One thread at a time may use it.

    `num_threads`: None stands for what HEARTH_THREADS sets, else 1. The other options of the original
    are taken; those that select its kernels and delegates make no difference.
    """

    def __init__(self, model_path=None, model_content=None, experimental_delegates=None, num_threads=None,
                 experimental_op_resolver_type=OpResolverType.AUTO, experimental_preserve_all_tensors=False,
                 experimental_disable_delegate_clustering=False,
                 experimental_default_delegate_latest_features=False,
                 experimental_compress_quantization_zero_points=False,
                 experimental_disable_delegate_node_fusion=False,
                 experimental_force_delegate_node_profiling=False):
        del (experimental_disable_delegate_clustering, experimental_default_delegate_latest_features,
             experimental_disable_delegate_node_fusion, experimental_force_delegate_node_profiling)
        if getattr(experimental_op_resolver_type, "name", None) not in OpResolverType.__members__:
            raise ValueError("Unrecognized passed in op resolver type: "
                             f"{experimental_op_resolver_type}")
        if num_threads is not None:
            if not isinstance(num_threads, int):
                raise ValueError("type of num_threads should be int")
            if num_threads < 1:
                raise ValueError("num_threads should >= 1")
        if not model_path and not model_content:
            raise ValueError("`model_path` or `model_content` must be specified.")
        if model_path and model_content:
            raise ValueError("Can't both provide `model_path` and `model_content`")
        self._compress_zero_points = experimental_compress_quantization_zero_points
        self._options = {}
        if num_threads is not None or not os.environ.get("HEARTH_THREADS"):
            self._options["threads"] = num_threads or 1
        self._delegates = list(experimental_delegates or [])
        options, others = _delegate.divided(self._delegates)
        self._options.update(options)
        self._file, self._model = _model_file.opened(model_path, model_content)
        self._preserves_all = bool(experimental_preserve_all_tensors)
        if self._preserves_all:
            warnings.warn("experimental_preserve_all_tensors makes every intermediate tensor an output, "
                          "which takes memory and time. It is meant for debugging.", stacklevel=2)
        self._graphs = {}
        self._kinds = None
        self._source = model_path, model_content
        self._program = self._made_program(others) if others else None
        self._interpreter = self._graph(0)

    def __del__(self):
        # Before the delegates that it uses.
        self._interpreter = None
        self._graphs = {}

    def allocate_tensors(self):
        """Prepares the model for the present shapes of its inputs."""
        self._interpreter.allocate()

    def invoke(self):
        """Runs the model. Other threads of Python go on meanwhile."""
        self._interpreter.invoke()

    def set_tensor(self, tensor_index, value):
        """Copies an array into an input; its type and shape are those of the tensor."""
        self._interpreter.set(tensor_index, value)

    def get_tensor(self, tensor_index, subgraph_index=0):
        """A copy of an input, an output or a constant, or with experimental_preserve_all_tensors of any
        tensor."""
        return self._checked_graph(subgraph_index).get(tensor_index)

    def tensor(self, tensor_index):
        """A function that returns a view of an input or output. invoke() and allocate_tensors() raise
        RuntimeError while such a view is kept."""
        return lambda: self._interpreter.view(tensor_index)

    def resize_tensor_input(self, input_index, tensor_size, strict=False):
        """Sets the shape of an input; allocate_tensors() has to follow. `strict` allows only dimensions
        that are -1 in the tensor's shape_signature to change."""
        self._resize(0, input_index, tensor_size, strict)

    def reset_all_variables(self):
        """Sets variable tensors to their initial values."""
        for graph in self._graphs.values():
            graph.reset_state()

    def get_input_details(self):
        """A list of dictionaries that describe the inputs."""
        return [self._get_tensor_details(index, 0) for index in self._interpreter.inputs]

    def get_output_details(self):
        """A list of dictionaries that describe the outputs."""
        return [self._get_tensor_details(index, 0) for index in self._interpreter.outputs]

    def get_tensor_details(self, subgraph_index=0):
        """A list of dictionaries that describe all tensors of a subgraph that have a type."""
        if not 0 <= subgraph_index < self.num_subgraphs():
            raise ValueError(f"subgraph_index is out of range: {subgraph_index} for the model, which has "
                             f"{self.num_subgraphs()} subgraphs.")
        subgraph = self._file.subgraphs[subgraph_index]
        return [self._get_tensor_details(index, subgraph_index) for index in range(subgraph.tensor_count)
                if subgraph.tensor(index).dtype is not None]

    def get_signature_list(self):
        """{signature: {"inputs": names, "outputs": names}}"""
        return {key: {"inputs": sorted(signature.inputs), "outputs": sorted(signature.outputs)}
                for key, signature in self._file.signatures.items()}

    def get_signature_runner(self, signature_key=None):
        """A function that runs a signature with arrays given by name. None stands for the only one."""
        if signature_key is None:
            if len(self._file.signatures) != 1:
                raise ValueError("SignatureDef signature_key is None and model has "
                                 f"{len(self._file.signatures)} Signatures. None is only allowed when the "
                                 "model has 1 SignatureDef")
            signature_key = next(iter(self._file.signatures))
        return SignatureRunner(self, signature_key)

    def num_subgraphs(self):
        return len(self._file.subgraphs)

    @property
    def experimental_compress_quantization_zero_points(self):
        return self._compress_zero_points

    def _safe_to_run(self):
        """Whether no view of a tensor is kept."""
        return not self._interpreter.has_views()

    def _get_full_signature_list(self):
        return {key: {"inputs": dict(sorted(signature.inputs.items())),
                      "outputs": dict(sorted(signature.outputs.items()))}
                for key, signature in self._file.signatures.items()}

    def _get_tensor_details(self, tensor_index, subgraph_index):
        graph = self._checked_graph(subgraph_index)
        if tensor_index == self._file.subgraphs[subgraph_index].tensor_count:
            # There the original has temporaries of its kernels.
            raise ValueError(f"Tensor with no shape found. The subgraph has {tensor_index} tensors.")
        tensor = graph.tensor(tensor_index)
        scales, zero_points, dimension, block_size = tensor.quantization()
        is_one = len(scales) == 1 and len(zero_points) == 1
        shape = graph.shape(tensor_index)
        signature = tensor.shape_signature if len(tensor.shape_signature) else shape
        return {
            "name": tensor.name,
            "index": int(tensor_index),
            "shape": shape.copy(),
            "shape_signature": signature.copy(),
            "dtype": tensor.dtype,
            "quantization": (float(scales[0]), int(zero_points[0])) if is_one else (0.0, 0),
            "quantization_parameters": {"scales": scales, "zero_points": zero_points,
                                        "quantized_dimension": dimension, "block_size": block_size},
            "sparsity_parameters": tensor.sparsity(),
        }

    def _get_op_details(self, op_index):
        subgraph = self._file.subgraphs[0]
        if not 0 <= op_index < subgraph.operator_count:
            raise ValueError("Invalid node index")
        if self._kinds is None:
            # The library knows the names of the numbers that kinds have.
            self._kinds = {self._file.kind(subgraph.operator_code(each["first_index"])): each["type"]
                           for each in self._model.inspect()["subgraphs"][0]["operations"]}
        inputs, outputs = subgraph.operator(op_index)
        return {
            "index": int(op_index),
            "op_name": self._kinds[self._file.kind(subgraph.operator_code(op_index))],
            "inputs": inputs,
            "outputs": outputs,
            "operand_types": [subgraph.tensor(i).dtype for i in inputs if i != -1],
            "result_types": [subgraph.tensor(i).dtype for i in outputs if i != -1],
        }

    def _get_ops_details(self):
        """A list of dictionaries that describe the operators of the first subgraph."""
        return [self._get_op_details(index) for index in range(self._file.subgraphs[0].operator_count)]

    def _made_program(self, delegates):
        refused = sorted(set(self._options) - {"threads"})
        if refused:
            raise ValueError(f"The options {', '.join(refused)} of libhearth_delegate.so cannot be joined with "
                             "another library's delegate, nor with inputs of another rank or without "
                             "elements; 'threads' can.")
        from . import _program  # few interpreters need it

        return _program.Program(self._file, *self._source, delegates, self._options, self._preserves_all)

    def _resize(self, subgraph_index, tensor_index, shape, strict):
        graph = self._graph(subgraph_index)
        graph.resize(tensor_index, shape, strict)
        if graph.takes_shapes():
            return
        # From now on: such programs often come back to a shape.
        if self._program is None:
            self._program = self._made_program([])
        other = self._program.graph(subgraph_index, self._preserves_all and subgraph_index == 0)
        other.take_over(graph)
        self._graphs[subgraph_index] = other
        if subgraph_index == 0:
            self._interpreter = other

    def _graph(self, index):
        if index not in self._graphs:
            preserves_all = self._preserves_all and index == 0
            if self._program is None:
                made = Graph(self._file, self._model, index, self._options, preserves_all)
            else:
                made = self._program.graph(index, preserves_all)
            self._graphs[index] = made
        return self._graphs[index]

    def _checked_graph(self, index):
        index = operator.index(index)
        if not 0 <= index < len(self._file.subgraphs):
            raise ValueError(f"Invalid subgraph index {index} exceeds max subgraph index "
                             f"{len(self._file.subgraphs)}")
        return self._graph(index)


class InterpreterWithCustomOps(Interpreter):
    """An interpreter for models with operators of the program's own, in the original. Hearth knows some
    custom operators by their names; functions that register others cannot be called."""

    def __init__(self, custom_op_registerers=None, **options):
        for registerer in custom_op_registerers or []:
            if isinstance(registerer, str) and "." in registerer:
                _load_module(registerer.partition(".")[0])
            elif isinstance(registerer, str) and not hasattr(ctypes.CDLL(None), registerer):
                raise ValueError(f"Looking up symbol '{registerer}' failed: no library of this process has it.")
            raise ValueError("Hearth cannot call functions that register custom operators with TensorFlow "
                             "Lite: hearth_custom_operator_register() of hearth.h registers them here.")
        super().__init__(**options)


def _load_module(name):
    """Loads the library of a module that has functions which register operators."""
    library = f"{name}.so"
    try:
        ctypes.PyDLL(library)
    except OSError as error:
        raise ValueError(f"Loading library '{library}' failed with error '{error}'.") from None


class SignatureRunner:
    """Runs a signature of an interpreter's model: a function of arrays by name that returns a dictionary
    of arrays."""

    def __init__(self, interpreter=None, signature_key=None):
        if not interpreter:
            raise ValueError("None interpreter provided.")
        if not signature_key:
            raise ValueError("None signature_key provided.")
        self._interpreter = interpreter
        self._signature = interpreter._file.signatures.get(signature_key)
        if self._signature is None:
            raise ValueError(f'Invalid signature_key provided: "{signature_key}".')

    def __call__(self, **inputs):
        names = self._signature.inputs
        if len(inputs) != len(names):
            raise ValueError("Invalid number of inputs provided for running a SignatureDef, expected "
                             f"{len(names)} vs provided {len(inputs)}")
        arrays = {}
        for name, value in inputs.items():
            if name not in names:
                raise ValueError(f"Invalid Input name ({name}) for SignatureDef")
            arrays[names[name]] = np.asarray(value)
        for index, array in arrays.items():
            self._interpreter._resize(self._signature.subgraph, index, array.shape, False)
        graph = self._interpreter._graph(self._signature.subgraph)
        graph.allocate()
        for index, array in arrays.items():
            graph.set(index, array)
        graph.invoke()
        return {name: graph.get(index) for name, index in sorted(self._signature.outputs.items())}

    def get_input_details(self):
        """{name: dictionary that describes the input}"""
        return self._details(self._signature.inputs)

    def get_output_details(self):
        """{name: dictionary that describes the output}"""
        return self._details(self._signature.outputs)

    def _details(self, tensors):
        return {name: self._interpreter._get_tensor_details(index, self._signature.subgraph)
                for name, index in sorted(tensors.items())}
