# SPDX-License-Identifier: Apache-2.0
"""LiteRT's CompiledModel: signatures that run on buffers of the caller."""

import numpy as np

from . import _model_file, options as _options
from ._file import Signature
from ._graph import Graph
from .environment import Environment, EnvironmentOptions
from .options import (CpuKernelMode, CpuOptions, GpuOptions, HardwareAccelerator, IntelOpenVinoOptions,
                      Options, QualcommOptions)
from .tensor_buffer import TensorBuffer

__all__ = ["CompiledModel", "CpuKernelMode", "CpuOptions", "Environment", "EnvironmentOptions", "GpuOptions",
           "HardwareAccelerator", "IntelOpenVinoOptions", "Options", "QualcommOptions", "TensorBuffer"]

# The key of the signature that a model without any has.
_PLACEHOLDER = "<placeholder signature>"
_HOST_MEMORY = 1


class CompiledModel:
    """A model that is ready to run; from_file() and from_buffer() make it. The first signature is prepared
    there, another one when it is first used. One thread at a time may use it."""

    def __init__(self, file, model, environment, options):
        self._environment = environment
        self._file = file
        self._signatures = file.signatures or {_PLACEHOLDER: _of_subgraph(file.subgraphs[0])}
        self._graphs = {}
        self._model = model
        self._options = options
        self._graph(next(iter(self._signatures.values())))

    @classmethod
    def from_file(cls, model_path, hardware_accel=None, environment=None, options=None):
        return cls._of(model_path, None, hardware_accel, environment, options)

    @classmethod
    def from_buffer(cls, model_data, hardware_accel=None, environment=None, options=None):
        return cls._of(None, model_data, hardware_accel, environment, options)

    @classmethod
    def _of(cls, path, content, hardware_accel, environment, options):
        if options is None:
            options = Options(HardwareAccelerator.CPU if hardware_accel is None else hardware_accel,
                              CpuOptions(num_threads=1))
        elif hardware_accel is not None:
            raise ValueError("Pass either options or hardware_accel, not both.")
        environment = environment or Environment.create()
        environment.ensure_open()
        try:
            file, model = _model_file.opened(path, content)
        except ValueError as error:
            source = "file" if path else "buffer"
            raise RuntimeError(f"Failed to load model from {source}. {error}") from error
        return cls(file, model, environment, _options.compile_options(options))

    @property
    def environment(self):
        return self._environment

    def get_signature_list(self):
        """{signature: {"inputs": names, "outputs": names}}"""
        self._ensure_open()
        return {key: {"inputs": list(signature.inputs), "outputs": list(signature.outputs)}
                for key, signature in self._signatures.items()}

    def get_signature_by_index(self, index):
        key, signature = self._by_index(index)
        return {"key": key, "inputs": list(signature.inputs), "outputs": list(signature.outputs)}

    def get_num_signatures(self):
        self._ensure_open()
        return len(self._signatures)

    def get_signature_index(self, key):
        """The place of a signature; -1 if there is none with this key."""
        self._ensure_open()
        return list(self._signatures).index(key) if key in self._signatures else -1

    def get_input_tensor_details(self, signature_key):
        """{name: {"name", "index", "dtype", "shape"}} with the present shapes."""
        signature = self._by_key(signature_key)
        return self._details(signature, signature.inputs)

    def get_output_tensor_details(self, signature_key):
        signature = self._by_key(signature_key)
        return self._details(signature, signature.outputs)

    def get_input_buffer_requirements(self, input_index, signature_index=0):
        """{"buffer_size": bytes, "supported_types": [1]}, where 1 is host memory."""
        _, signature = self._by_index(signature_index)
        return self._requirements(signature, signature.inputs, input_index, "Input")

    def get_output_buffer_requirements(self, output_index, signature_index=0):
        _, signature = self._by_index(signature_index)
        return self._requirements(signature, signature.outputs, output_index, "Output")

    def is_fully_accelerated(self):
        """Whether no operation runs on reference kernels."""
        self._ensure_open()
        return all("nnapi-reference" not in graph.devices for graph in self._graphs.values())

    def create_input_buffers(self, signature_index):
        _, signature = self._by_index(signature_index)
        return [self._buffer(signature, index) for index in signature.inputs.values()]

    def create_output_buffers(self, signature_index):
        _, signature = self._by_index(signature_index)
        return [self._buffer(signature, index) for index in signature.outputs.values()]

    def create_input_buffer_by_name(self, signature_key, input_name):
        signature = self._by_key(signature_key)
        return self._buffer(signature, _tensor(signature.inputs, input_name, "Input"))

    def create_output_buffer_by_name(self, signature_key, output_name):
        signature = self._by_key(signature_key)
        return self._buffer(signature, _tensor(signature.outputs, output_name, "Output"))

    def resize_input_tensor(self, input_index, dims, signature_index=0, strict=True):
        """Sets the shape of an input; buffers for it are made anew. `strict` allows only open dimensions
        to change."""
        _, signature = self._by_index(signature_index)
        self._graph(signature).resize(_at(signature.inputs, input_index, "Input"), list(dims), strict)

    def resize_input_tensor_by_name(self, signature_key, input_name, dims, strict=True):
        self._ensure_open()
        if signature_key not in self._signatures:
            raise ValueError(f"Unknown signature: {signature_key}")
        signature = self._signatures[signature_key]
        if input_name not in signature.inputs:
            raise ValueError(f"Unknown input '{input_name}' for signature '{signature_key}'")
        self._graph(signature).resize(signature.inputs[input_name], list(dims), strict)

    def run_by_index(self, signature_index, input_buffers, output_buffers):
        """Runs a signature with buffers in the order of its inputs and outputs."""
        _, signature = self._by_index(signature_index)
        for names, buffers, kind in ((signature.inputs, input_buffers, "input"),
                                     (signature.outputs, output_buffers, "output")):
            if len(names) != len(buffers):
                raise RuntimeError(f"The number of {kind} buffers is {len(buffers)}, that of {kind}s "
                                   f"{len(names)}.")
        self._run(signature, dict(zip(signature.inputs.values(), input_buffers)),
                  list(zip(signature.outputs.values(), output_buffers)))

    def run_by_name(self, signature_key, input_map, output_map):
        """Runs a signature with buffers by name."""
        signature = self._by_key(signature_key)
        for names, buffers, kind in ((signature.inputs, input_map, "input"),
                                     (signature.outputs, output_map, "output")):
            missing = [name for name in names if name not in buffers]
            if missing:
                raise RuntimeError(f"The given map is missing some {kind} TensorBuffers: "
                                   f"{', '.join(missing)}")
        self._run(signature, {index: input_map[name] for name, index in signature.inputs.items()},
                  [(index, output_map[name]) for name, index in signature.outputs.items()])

    def close(self):
        """Frees the model."""
        self._graphs = None
        self._model = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _run(self, signature, inputs, outputs):
        graph = self._graph(signature)
        arrays = [self._input(graph, index, inputs[index].array) for index in graph.inputs]
        graph.prepare()
        targets = {}
        for index, buffer in outputs:
            targets.setdefault(index, buffer.array)
        made = graph.run(arrays, {index: self._output(graph, index, array)
                                  for index, array in targets.items()})
        for index, buffer in outputs:
            source = made.get(index, targets[index])
            if source is buffer.array:
                continue
            if source.nbytes > buffer.array.nbytes:
                raise RuntimeError(f"The output {index} has the shape {list(source.shape)}, and its buffer "
                                   f"{list(buffer.array.shape)}.")
            buffer.write(source)

    @staticmethod
    def _input(graph, index, array):
        """The array of a buffer in the shape that the run takes; a buffer of another shape resizes open
        dimensions."""
        tensor = graph.tensor(index)
        if array.dtype != tensor.dtype:
            raise RuntimeError(f"The buffer of input {index} has {array.dtype}, the tensor "
                               f"{np.dtype(tensor.dtype)}.")
        shape = graph.shape(index)
        if array.ndim == 1 and len(shape) != 1 and array.size == np.prod(shape, dtype=np.int64):
            return array.reshape(shape)
        if array.shape != tuple(shape):
            graph.resize(index, array.shape, strict=True)
        return array

    @staticmethod
    def _output(graph, index, array):
        """The array of a buffer in the shape that the run writes."""
        tensor = graph.tensor(index)
        if array.dtype != tensor.dtype:
            raise RuntimeError(f"The buffer of output {index} has {array.dtype}, the tensor "
                               f"{np.dtype(tensor.dtype)}.")
        shape = graph.output_shape(index)
        if None in shape or array.shape == shape:
            return array
        size = np.prod(shape, dtype=np.int64)
        if array.size < size:
            raise RuntimeError(f"The buffer of output {index} has {array.size} elements, the tensor {size}.")
        return array.reshape(-1)[:size].reshape(shape)

    def _graph(self, signature):
        self._ensure_open()
        if signature.subgraph not in self._graphs:
            graph = Graph(self._file, self._model, signature.subgraph, self._options, False)
            graph.prepare()
            self._graphs[signature.subgraph] = graph
        return self._graphs[signature.subgraph]

    def _buffer(self, signature, index):
        graph = self._graph(signature)
        graph.prepare()
        return TensorBuffer(graph.empty(index))

    def _details(self, signature, tensors):
        graph = self._graph(signature)
        graph.prepare()
        return {name: {"name": graph.tensor(index).name, "index": index,
                       "dtype": np.dtype(graph.tensor(index).dtype).name,
                       "shape": graph.compiled_shape(index)} for name, index in tensors.items()}

    def _requirements(self, signature, tensors, place, kind):
        index = _at(tensors, place, kind)
        graph = self._graph(signature)
        graph.prepare()
        size = np.prod(graph.compiled_shape(index), dtype=np.int64) * np.dtype(graph.tensor(index).dtype).itemsize
        return {"buffer_size": int(size), "supported_types": [_HOST_MEMORY]}

    def _by_index(self, index):
        self._ensure_open()
        if not 0 <= index < len(self._signatures):
            raise RuntimeError(f"Signature index {index} is out of range: the model has "
                               f"{len(self._signatures)} signatures.")
        return list(self._signatures.items())[index]

    def _by_key(self, key):
        self._ensure_open()
        if key not in self._signatures:
            raise RuntimeError(f"Signature not found: {key}")
        return self._signatures[key]

    def _ensure_open(self):
        if self._graphs is None:
            raise ValueError("The CompiledModel is closed.")


def _of_subgraph(subgraph):
    """The signature of a model without any, by the names of the tensors."""
    inputs, outputs = ({subgraph.tensor(index).name: index for index in tensors}
                       for tensors in (subgraph.inputs, subgraph.outputs))
    return Signature(0, inputs, outputs)


def _tensor(tensors, name, kind):
    if name not in tensors:
        raise RuntimeError(f"{kind} tensor not found: {name}")
    return tensors[name]


def _at(tensors, place, kind):
    if not 0 <= place < len(tensors):
        raise RuntimeError(f"{kind} index out of range: {place} of {len(tensors)}")
    return list(tensors.values())[place]
