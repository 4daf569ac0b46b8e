# SPDX-License-Identifier: Apache-2.0
"""Models that are run through TensorFlow Lite's C interface in place of hearth.Model: it shows delegates of
the program what they expect, and takes shapes of any rank and without elements. Results are the same."""

import os

import numpy as np

from .. import _hearth
from ._graph import Graph


class Program:
    """A model with the delegates of the program, which it keeps. RuntimeError where one of them fails."""

    def __init__(self, file, path, content, delegates, options, preserves_all):
        self._file = file
        if preserves_all:
            source = file.without_signatures(0, file.subgraphs[0].preserved())
        else:
            source = os.path.abspath(os.fsdecode(path)) if path else bytes(content)
        self._interpreter = _hearth.ProgramInterpreter(source, options.get("threads", -1))
        for delegate in delegates:
            self._interpreter.apply_delegate(delegate._get_native_delegate_pointer(), delegate)

    def graph(self, index, preserves_all):
        return ProgramGraph(self._file, index, self._interpreter, preserves_all)


class ProgramGraph(Graph):
    """A subgraph of such a model. Its arrays lie in the memory of the C interface's tensors."""

    def __init__(self, file, index, interpreter, preserves_all):
        super().__init__(file, None, index, {}, preserves_all)
        self._interpreter = interpreter
        self._runner = None
        self._values = {}
        # Of another subgraph than the first: what its signature calls tensors.
        self._names = {}

    def _make_runner(self):
        if self._index == 0:
            return _hearth.ProgramSubgraph(self._interpreter, "")
        key, signature = self._signature()
        if key is None:
            raise RuntimeError(f"Subgraph {self._index} has no signature, so it cannot be run by itself.")
        for names in (signature.outputs, signature.inputs):
            self._names.update({tensor: name for name, tensor in names.items()})
        return _hearth.ProgramSubgraph(self._interpreter, key)

    def takes_shapes(self):
        return True

    def take_over(self, graph):
        """Has the shapes of another graph of this subgraph, and the values of its inputs at allocate()."""
        self._resized = graph._resized
        self._asked = graph._asked
        self._values = {index: graph._arrays[index] for index in self.inputs if index in graph._arrays}

    def _place(self, index):
        return index, self._names.get(index, "")

    def allocate(self):
        self._ensure_no_views()
        if self._is_ready:
            return
        if self._runner is None:
            self._runner = self._make_runner()
        for index, shape in self._resized.items():
            self._runner.resize_input(*self._place(index), shape.tolist())
        texts = {index: array for index, array in self._arrays.items() if array.dtype == object}
        self._arrays = {}
        self._runner.allocate()
        self._output_tensors = self._subgraph.preserved() if self._preserves_all else self.outputs
        for index in self.inputs:
            shape = tuple(self._runner.shape(*self._place(index)))
            if self.tensor(index).type_name != "STRING":
                self._arrays[index] = self._runner.array(*self._place(index))
            elif index in texts and texts[index].shape == shape:
                self._arrays[index] = texts[index]
            else:
                self._arrays[index] = np.full(shape, b"", object)
            self._keep_value(index)
        self._values = {}
        self._find_outputs()
        self._has_open_outputs = any(index not in self._arrays for index in self._output_tensors)
        self._is_ready = True

    def _keep_value(self, index):
        """Gives an input whose shape is the same what it had before take_over()."""
        value = self._values.get(index)
        if value is not None and value.shape == self._arrays[index].shape:
            np.copyto(self._arrays[index], value)

    def _find_outputs(self):
        """Takes the arrays of outputs that have memory now."""
        for index in self._output_tensors:
            array = self._runner.array(*self._place(index)) if index not in self.inputs else None
            if array is not None:
                self._arrays[index] = array

    def invoke(self):
        if not self._is_ready:
            raise RuntimeError("Invoke called on model that is not ready. Run allocate_tensors() first.")
        self._ensure_no_views()
        for index in self.inputs:
            if self._arrays[index].dtype == object:
                self._runner.set_strings(*self._place(index), self._arrays[index].ravel().tolist())
        self._runner.invoke()
        if self._has_open_outputs:
            self._find_outputs()
            self._take_strings()

    def _take_strings(self):
        for index in self._output_tensors:
            if index in self.inputs or self.tensor(index).type_name != "STRING":
                continue
            texts = self._runner.strings(*self._place(index))
            array = np.empty(len(texts), object)
            array[:] = texts
            self._arrays[index] = array.reshape(self._runner.shape(*self._place(index)))

    def reset_state(self):
        if self._is_ready:
            self._interpreter.reset_variables()

    def _learn(self):
        """Outputs whose size only a run knows have none before it: delegates may compute them."""
