# SPDX-License-Identifier: Apache-2.0
"""LiteRT as `peer.py` runs it: its Interpreter, its CompiledModel, and a language model's signatures."""

import time

import numpy as np


class InterpreterSide:
    """`delegate`: the library of an external delegate and its options, or None. `isReference`: with
    LiteRT's reference kernels, which are slow, and whose results others are compared with."""

    def __init__(self, path, threads, delegate=None, isReference=False):
        from ai_edge_litert.interpreter import Interpreter, OpResolverType, load_delegate
        self.start = time.perf_counter()
        delegates = [] if delegate is None else [load_delegate(*delegate)]
        resolver = OpResolverType.BUILTIN_REF if isReference else OpResolverType.AUTO
        self._interpreter = Interpreter(str(path), num_threads=threads,
                                        experimental_delegates=delegates,
                                        experimental_op_resolver_type=resolver)
        self._interpreter.allocate_tensors()
        self.prepared = time.perf_counter()
        self.inputs = [(detail["shape"], detail["dtype"])
                       for detail in self._interpreter.get_input_details()]
        self.run = self._interpreter.invoke
        self.reset = self._interpreter.reset_all_variables

    def write(self, arrays):
        for detail, array in zip(self._interpreter.get_input_details(), arrays):
            self._interpreter.set_tensor(detail["index"], array)

    def read(self):
        return [self._interpreter.get_tensor(detail["index"])
                for detail in self._interpreter.get_output_details()]


def compiledModel(path, threads, weightCache=None):
    """The model, and the time at which its preparation began. `weightCache` is a file, though
    LiteRT's documentation speaks of a folder."""
    from ai_edge_litert.compiled_model import CompiledModel
    from ai_edge_litert.cpu_options import CpuOptions
    from ai_edge_litert.options import Options
    cache = {} if weightCache is None else {"xnnpack_weight_cache_path": str(weightCache)}
    start = time.perf_counter()
    return CompiledModel.from_file(
        str(path), options=Options(cpu_options=CpuOptions(num_threads=threads, **cache))), start


class CompiledModelSide:
    def __init__(self, path, threads, weightCache=None):
        self._model, self.start = compiledModel(path, threads, weightCache)
        self.loaded = time.perf_counter()
        self._inputs = self._model.create_input_buffers(0)
        self._outputs = self._model.create_output_buffers(0)
        self.prepared = time.perf_counter()
        signature = self._model.get_signature_by_index(0)
        self._key, self._outputNames = signature["key"], signature["outputs"]
        details = self._model.get_input_tensor_details(self._key)
        self.inputs = [(details[name]["shape"], details[name]["dtype"])
                       for name in signature["inputs"]]
        self.run = lambda: self._model.run_by_index(0, self._inputs, self._outputs)
        self.reset = lambda: None

    def write(self, arrays):
        for buffer, array in zip(self._inputs, arrays):
            buffer.write(array)

    def read(self):
        details = self._model.get_output_tensor_details(self._key)
        result = []
        for buffer, name in zip(self._outputs, self._outputNames):
            shape, dtype = details[name]["shape"], np.dtype(details[name]["dtype"])
            result.append(np.asarray(buffer.read(int(np.prod(shape)), dtype)).reshape(shape))
        return result


class Generation:
    """A language model's signatures with one key-value cache: the output of one call is the input
    of the next, without a copy."""

    def __init__(self, path, threads, weightCache):
        self._model, start = compiledModel(path, threads, weightCache)
        self._signatures = {}
        for index in range(self._model.get_num_signatures()):
            signature = self._model.get_signature_by_index(index)
            self._signatures[signature["key"]] = (
                index, dict(zip(signature["inputs"], self._model.create_input_buffers(index))),
                dict(zip(signature["outputs"], self._model.create_output_buffers(index))))
        self.prepareMs = 1e3 * (time.perf_counter() - start)
        details = self._model.get_input_tensor_details("prefill")
        self.prefillTokens = int(details["tokens"]["shape"][-1])
        self._cache = {name: buffer for name, buffer in self._signatures["prefill"][1].items()
                       if name.startswith("kv_cache")}
        for name, buffer in self._cache.items():
            buffer.write(np.zeros(details[name]["shape"], np.float32))

    def run(self, key, tokens, position):
        """Milliseconds that one call takes."""
        index, inputs, outputs = self._signatures[key]
        inputs["tokens"].write(np.asarray([tokens], np.int32))
        inputs["input_pos"].write(
            np.arange(position, position + len(tokens), dtype=np.int32))
        start = time.perf_counter()
        self._model.run_by_index(
            index, [self._cache.get(name, buffer) for name, buffer in inputs.items()],
            list(outputs.values()))
        milliseconds = 1e3 * (time.perf_counter() - start)
        for name in self._cache:
            self._cache[name], outputs[name] = outputs[name], self._cache[name]
        return milliseconds
