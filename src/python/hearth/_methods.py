# SPDX-License-Identifier: Apache-2.0
"""Methods in Python of the classes of the library's module."""

import asyncio
import json
import operator

from ._hearth import Compilation, Run, Tensor
from .errors import InvalidArgument


def _await(run):
    return asyncio.get_running_loop().run_in_executor(None, run.wait).__await__()


def _empty(tensor, shape=None):
    """A new array, filled with zeros, that runs use in place. `shape` says the size of dimensions
    that the tensor does not know."""
    if shape is None:
        if None in tensor.shape:
            raise InvalidArgument(f"The shape of '{tensor.name}' is {tensor.shape}: give one without None.")
        shape = tensor.shape
    sizes = [operator.index(size) for size in shape] if hasattr(shape, "__iter__") \
        else [operator.index(shape)]
    if not all(0 <= size < 1 << 64 for size in sizes):
        raise InvalidArgument(f"The tensor '{tensor.name}' has the shape {tensor.shape}, not {tuple(sizes)}.")
    return tensor._empty(sizes)


def add():
    Run.__await__ = _await
    Tensor.empty = _empty
    Compilation.start_report = property(
        lambda compilation: json.loads(compilation._start_report_json()),
        doc="How the compilation started, as `hearth bench --json` has it.")
