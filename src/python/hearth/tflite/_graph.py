# SPDX-License-Identifier: Apache-2.0
"""A subgraph of a model with the memory of its inputs and outputs."""

import operator
import sys

import numpy as np

from .. import errors
from .._model import Model
from ._file import OPAQUE, TYPES

# As many choices of shapes are kept ready.
_MOST_PREPARED = 8
# HEARTH_OUTPUT_INSUFFICIENT_SIZE of hearth.h.
_OUTPUT_TOO_SMALL = 8
_NULL = "Tensor data is null. Run allocate_tensors() first"
_TYPE_NAMES = {np.dtype(dtype): name for dtype, name in TYPES.values()
               if name not in (*OPAQUE, "STRING", "INT4")}


def _as_bytes(strings):
    """An array of strings as one of bytes objects."""
    if strings.ndim == 0 and strings.dtype.kind == "S":
        # With the zero bytes at its end, which NumPy leaves out of elements.
        return np.array(strings.tobytes(), object)
    result = np.empty(strings.size, object)
    result[:] = [text.encode() if isinstance(text, str) else text for text in strings.ravel().tolist()]
    if not all(isinstance(text, bytes) for text in result):
        raise ValueError("Cannot set tensor: The array has elements that are neither str nor bytes.")
    return result.reshape(strings.shape)


class Graph:
    def __init__(self, file, model, index, options, preserves_all):
        self._file = file
        self._model = model
        self._index = index
        self._options = options
        self._preserves_all = preserves_all
        self._subgraph = file.subgraphs[index]
        self.inputs = self._subgraph.inputs
        self.outputs = self._subgraph.outputs
        # Shapes of inputs that a caller has set, by tensor.
        self._resized = {}
        # By tensor: what the last call of resize() asked for. Programs repeat it for each inference.
        self._asked = {}
        # Shapes of outputs that only a run has told, by tensor.
        self._learnt = {}
        self._is_learning_done = False
        # The compilation for the present shapes, and those for the last few choices of shapes that the
        # file does not have, by these shapes.
        self._compilation = None
        self._execution = None
        self._prepared = {}
        self._is_ready = False
        # By tensor: the inputs and outputs.
        self._arrays = {}
        # What a run takes: arrays by place; None for an output whose size only the run knows.
        self._input_arrays = []
        self._output_arrays = []
        self._output_tensors = []
        self._has_open_outputs = False
        # By tensor of which a view was given: how often its array was referred to before.
        self._viewed = {}

    def tensor(self, index):
        return self._subgraph.tensor(self._checked(index))

    def shape(self, index):
        """The present shape of a tensor, as an array."""
        if index in self._resized:
            return self._resized[index]
        if self._is_ready and index in self._output_tensors:
            self._learn()
            array = self._arrays.get(index)
            shape = array.shape if array is not None else self._learnt.get(index)
            if shape is not None and self.tensor(index).type_name != "INT4":
                return np.array(shape, np.int32)
        return self.tensor(index).shape

    def resize(self, index, shape, strict=False):
        self._ensure_no_views()
        asked = (strict, *shape) if type(shape) in (list, tuple) else None
        if asked is not None and self._asked.get(index) == asked:
            return
        index = self._index_of_input(index)
        self._asked.pop(index, None)
        shape = np.array(shape, np.int32).reshape(-1)
        if (shape < 0).any():
            raise RuntimeError(f"Tensor {index} cannot have the shape {shape.tolist()}: sizes are not "
                               "negative.")
        tensor = self.tensor(index)
        present = self.shape(index)
        if strict:
            signature = tensor.shape_signature if len(tensor.shape_signature) else present
            if len(signature) != len(shape):
                raise RuntimeError(f"Attempting to resize tensor {index} from {len(signature)} to "
                                   f"{len(shape)} dimensions. Strict resizing keeps their number.")
            for place, (known, size) in enumerate(zip(signature, shape)):
                if known not in (-1, size):
                    raise RuntimeError(
                        f"Attempting to resize dimension {place} of tensor {index} with value {known} to "
                        f"{size}. Strict resizing only changes dimensions that are -1 in shape_signature.")
        if asked is not None:
            self._asked[index] = asked
        if np.array_equal(present, shape):
            return
        self._resized[index] = shape
        self._is_ready = False

    def takes_shapes(self):
        """Whether hearth.Model takes the shapes that were set: with the file's rank, and elements."""
        return all(len(shape) == len(self.tensor(index).shape) and 0 not in shape
                   for index, shape in self._resized.items())

    def allocate(self):
        self._ensure_no_views()
        if self._is_ready:
            return
        self.prepare()
        arrays = [self._input_array(index, tensor)
                  for index, tensor in zip(self.inputs, self._compilation.inputs)]
        self._execution._reset_state()
        self._learnt = {}
        self._is_learning_done = False
        self._input_arrays = arrays
        # A run makes new arrays of strings, and reads those of its inputs.
        self._output_arrays = [None if None in tensor.shape or tensor.dtype == "object" else tensor.empty()
                               for tensor in self._compilation.outputs]
        self._has_open_outputs = any(array is None for array in self._output_arrays) or any(
            array.dtype == object for array in arrays)
        self._arrays = {index: array for index, array in zip(self._output_tensors, self._output_arrays)
                        if array is not None}
        self._arrays.update(zip(self.inputs, arrays))
        if not self._has_open_outputs:
            self._execution._bind(self._input_arrays, self._output_arrays)
        self._is_ready = True

    def prepare(self):
        """Compiles the subgraph for the present shapes, without memory for inputs and outputs."""
        shapes = self._changed_shapes()
        key = tuple(shapes.items())
        prepared = self._prepared.pop(key, None)
        if prepared is None:
            compilation = self._compiled(shapes)
            prepared = compilation, compilation.create_execution()
        # The last one that was used is the last one in the dictionary.
        self._prepared[key] = prepared
        if len(self._prepared) > _MOST_PREPARED:
            del self._prepared[next(iter(self._prepared))]
        self._compilation, self._execution = prepared

    @property
    def devices(self):
        """The names of the devices that run it."""
        return self._compilation.device.split(", ")

    def run(self, inputs, outputs):
        """Runs what prepare() has compiled with arrays of the caller: `inputs` in the order of the
        subgraph, `outputs` by tensor. Returns those of `outputs` whose size only the run knows."""
        given = [None if None in tensor.shape else outputs.get(index)
                 for index, tensor in zip(self._output_tensors, self._compilation.outputs)]
        results = self._execution._run(inputs, given, None)
        return {index: result for index, array, result in zip(self._output_tensors, given, results)
                if array is None and index in outputs}

    def compiled_shape(self, index):
        """The present shape of an input or output, once the subgraph is prepared. Only outputs with open
        dimensions take memory for all of them, and a run, to tell it."""
        if index not in self.inputs and None not in self.output_shape(index):
            return list(self.output_shape(index))
        if index not in self.inputs:
            self.allocate()
        return self.shape(index).tolist()

    def output_shape(self, index):
        """The shape of an output as it is compiled: None stands for what only a run knows."""
        return self._compilation.outputs[self._output_tensors.index(index)].shape

    def empty(self, index):
        """A new array for an input or output in its present shape."""
        shape = self.compiled_shape(index)
        for tensors, described in ((self.inputs, self._compilation.inputs),
                                   (self._output_tensors, self._compilation.outputs)):
            if index in tensors:
                return described[tensors.index(index)].empty(shape)
        raise ValueError(f"Tensor {index} is neither an input nor an output.")

    def invoke(self):
        if not self._is_ready:
            raise RuntimeError("Invoke called on model that is not ready. Run allocate_tensors() first.")
        if self._viewed:
            self._ensure_no_views()
        try:
            self._run()
        except errors.Error as error:
            if error.status != _OUTPUT_TOO_SMALL or not self._open_scalars():
                raise
            self._run()

    def _run(self):
        if self._has_open_outputs:
            self._take(self._execution._run(self._input_arrays, self._output_arrays, None))
        else:
            self._execution._run_bound()

    def _open_scalars(self):
        """Lets a run make the arrays of outputs without dimensions, and says whether there is one: files write a
        rank that they do not know like that of a scalar."""
        found = [place for place, array in enumerate(self._output_arrays) if array is not None and not array.shape]
        for place in found:
            self._output_arrays[place] = None
        self._has_open_outputs = self._has_open_outputs or bool(found)
        return bool(found)

    def reset_state(self):
        if self._execution is not None:
            self._execution._reset_state()

    def set(self, index, value):
        array = self._arrays.get(index) if self._is_ready else None
        if array is None or index not in self.inputs:
            self._index_of_input(index, "Cannot set tensor: ")
            raise ValueError("Cannot set tensor: Tensor is unallocated. Try calling allocate_tensors() "
                             "first")
        value = np.asarray(value)
        if array.dtype == object and value.dtype.kind in "SUO":
            value = _as_bytes(value)
        if value.dtype != array.dtype:
            given = _TYPE_NAMES.get(value.dtype.newbyteorder("="), "STRING")
            tensor = self.tensor(index)
            raise ValueError(f"Cannot set tensor: Got value of type {given} but expected type "
                             f"{tensor.type_name} for input {index}, name: {tensor.name} ")
        if value.shape != array.shape:
            if value.ndim != array.ndim:
                raise ValueError(f"Cannot set tensor: Dimension mismatch. Got {value.ndim} but expected "
                                 f"{array.ndim} for input {index}.")
            place = next(i for i in range(value.ndim) if value.shape[i] != array.shape[i])
            raise ValueError(f"Cannot set tensor: Dimension mismatch. Got {value.shape[place]} but expected "
                             f"{array.shape[place]} for dimension {place} of input {index}.")
        np.copyto(array, value)

    def get(self, index):
        array = self._arrays.get(index)
        if array is None:
            array = self._found(index)
        # NumPy's scalar in place of an array of numbers without dimensions, as from the original.
        return array.copy() if array.ndim or array.dtype == object else array[()]

    def view(self, index):
        array = self._arrays.get(index) if self._is_ready else None
        if array is None:
            found = self._found(index)
            if index not in self._arrays:
                return found
        del array
        if index not in self._viewed:
            self._viewed[index] = sys.getrefcount(self._arrays[index])
        return self._arrays[index].view()

    def _found(self, index):
        """The array of an output whose shape is not known before a run, or of a constant."""
        tensor = self.tensor(index)
        if self._is_ready and index in self._output_tensors:
            self._learn()
            if index in self._arrays:
                return self._arrays[index]
        array = tensor.array()
        if array is not None:
            return array
        if index in self.inputs or index in self.outputs:
            raise ValueError(_NULL)
        if tensor.type_name in OPAQUE:
            raise ValueError(f"Tensor {index} has the type {tensor.type_name}, of which no array is made.")
        raise ValueError(f"{_NULL}. Intermediate tensors have data only with "
                         "experimental_preserve_all_tensors=True")

    def _compiled(self, shapes):
        outputs = self.outputs
        key, _ = self._signature()
        model = self._model
        if self._preserves_all:
            outputs = self._subgraph.preserved()
            model = Model.from_bytes(self._file.without_signatures(self._index, outputs))
        elif key is None and self._index != 0:
            raise RuntimeError(f"Subgraph {self._index} has no signature, so it cannot be run by itself.")
        elif key is None and self._file.signatures:
            model = Model.from_bytes(self._file.without_signatures(0))
        options = {**self._options, "shapes": shapes} if shapes else self._options
        compilation = model.compile(key, **options)
        # A signature with several names for an output has it once more for each of them, at the end.
        more = len(compilation.outputs) - len(outputs)
        self._output_tensors = outputs + [-1] * more
        return compilation

    def _signature(self):
        """(key, signature) by which the library compiles the subgraph; (None, None) without one."""
        if self._preserves_all:
            return None, None
        return next(((key, signature) for key, signature in self._file.signatures.items()
                     if signature.subgraph == self._index), (None, None))

    def _changed_shapes(self):
        """{name: shape} of all inputs if one of them has another shape than the file allows; else {}."""
        if all(self._is_of_file(index, shape) for index, shape in self._resized.items()):
            return {}
        _, signature = self._signature()
        names = {} if signature is None else {index: name for name, index in signature.inputs.items()}
        return {names.get(index) or self.tensor(index).name: tuple(self.shape(index).tolist())
                for index in self.inputs}

    def _is_of_file(self, index, shape):
        tensor = self.tensor(index)
        known = tensor.shape_signature if len(tensor.shape_signature) else tensor.shape
        return len(known) == len(shape) and all(size in (-1, given) for size, given in zip(known, shape))

    def _input_array(self, index, tensor):
        """The array that the input has, if its shape is the same; else a new one."""
        shape = tuple(self._resized.get(index, self.tensor(index).shape).tolist())
        present = self._arrays.get(index)
        if present is not None and present.shape == shape:
            return present
        return tensor.empty() if None not in tensor.shape else tensor.empty(shape)

    def _take(self, results):
        """Keeps the outputs whose size only the run knew."""
        for index, given, result in zip(self._output_tensors, self._output_arrays, results):
            if given is None:
                self._learnt[index] = result.shape
                if index not in self.inputs:
                    self._arrays[index] = result
                    self._viewed.pop(index, None)

    def _learn(self):
        """Runs the model once beside the execution, whose state stays as it is, to know the shapes of
        outputs before the first run."""
        if self._is_learning_done or self._learnt or not self._has_open_outputs:
            return
        self._is_learning_done = True
        with self._compilation.create_execution() as execution:
            try:
                self._take(execution._run(self._input_arrays, self._output_arrays, None))
            except errors.Error:
                # The values of the inputs, which nobody has set yet, may be none that the model takes.
                pass

    def has_views(self):
        """Whether an array that view() has returned is still in use."""
        return any(sys.getrefcount(self._arrays[index]) > count for index, count in self._viewed.items())

    def _ensure_no_views(self):
        if self._viewed:
            if self.has_views():
                raise RuntimeError("There is at least 1 reference to internal data: an array that the "
                                   "function of tensor() has returned, or a part of one, is still kept. "
                                   "Keep the function, or a copy of the array.")
            self._viewed = {}

    def _checked(self, index):
        index = operator.index(index)
        if not 0 <= index < self._subgraph.tensor_count:
            raise ValueError(f"Invalid tensor index {index} exceeds max tensor index "
                             f"{self._subgraph.tensor_count}")
        return index

    def _index_of_input(self, index, prefix=""):
        index = self._checked(index)
        if index not in self.inputs:
            raise ValueError(f"{prefix}Tensor {index} ('{self.tensor(index).name}') is not an input. The "
                             f"inputs are {', '.join(str(each) for each in self.inputs)}.")
        return index
