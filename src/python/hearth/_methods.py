# SPDX-License-Identifier: Apache-2.0
"""Methods in Python of the classes of the library's module."""

import operator

from ._hearth import Compilation, Device, Execution, Run, Statistics, Tensor
from ._options import seconds
from ._text import parsed
from .errors import InvalidArgument


def _compile(model, signature, options):
    return model.compile(signature, **options)


class _Compilation:
    def run(self, inputs=None, *, outputs=None, timeout=None):
        """Runs on an execution of its own, with the initial state, and returns the outputs by name.
        Any number of threads may."""
        return self._run(inputs, outputs, seconds(timeout))

    __call__ = run

    def create_execution(self):
        """An execution, which keeps its state tensors from run to run."""
        return self._create_execution()

    @property
    def start_report(self):
        """How the compilation started, as `hearth bench --json` has it."""
        return parsed(self._start_report_json())

    def close(self):
        """Frees it, once no execution of it is left."""
        self._close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __reduce__(self):
        return _compile, self._source

    def __repr__(self):
        def text(tensors):
            return ", ".join(f"{tensor.name!r} {tensor.dtype}{tensor._shape_text}" for tensor in tensors)
        return f"<hearth.Compilation on {self.device}, {text(self.inputs)} -> {text(self.outputs)}>"


class _Execution:
    def run(self, inputs=None, *, outputs=None, timeout=None):
        """Runs and returns the outputs by name."""
        return self._run(inputs, outputs, seconds(timeout))

    __call__ = run

    def start(self, inputs=None, *, outputs=None, timeout=None):
        """Begins a run in a thread of the library."""
        return self._start(inputs, outputs, seconds(timeout))

    def reset_state(self):
        """Sets state tensors to their initial values."""
        self._reset_state()

    def close(self):
        """Frees it. It must not be running."""
        self._close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __reduce__(self):
        raise TypeError("An execution cannot be sent to another process. Send the Model or the "
                        "Compilation, and make an execution there.")

    def __repr__(self):
        runs = self.statistics.runs
        return f"<hearth.Execution {runs} run{'' if runs == 1 else 's'}>"


class _Run:
    def wait(self, timeout=None):
        """The outputs by name; None when the run still goes on after `timeout` seconds."""
        return self._wait(seconds(timeout))

    def __await__(self):
        # A third of the package's import time, which programs that wait otherwise do not need.
        import asyncio
        return asyncio.get_running_loop().run_in_executor(None, self.wait).__await__()

    def __repr__(self):
        return f"<hearth.Run {'done' if self.is_done else 'in flight'}>"


class _Tensor:
    def empty(self, shape=None):
        """A new array, filled with zeros, that runs use in place; of strings one of empty bytes. `shape` says the size of
        dimensions that the tensor does not know; without it they have their defaults."""
        if shape is None:
            if None in self.default_shape:
                raise InvalidArgument(f"The shape of '{self.name}' is {self._shape_text}: give one "
                                      "without unknown sizes.")
            shape = self.default_shape
        sizes = [operator.index(size) for size in shape] if hasattr(shape, "__iter__") \
            else [operator.index(shape)]
        if not all(0 <= size < 1 << 64 for size in sizes):
            raise InvalidArgument(
                f"The tensor '{self.name}' has the shape {self._shape_text}, not {tuple(sizes)}.")
        return self._empty(sizes)

    def __repr__(self):
        scale = f" scale {self.scale:.6g} zero point {self.zero_point}" if self.scale else ""
        return f"<hearth.Tensor {self.name!r} {self.dtype}{self._shape_text}{scale}>"


class _Device:
    def __repr__(self):
        return f"<hearth.Device {self.name!r} {self.type}, version {self.version}>"


class _Statistics:
    def __repr__(self):
        return (f"<hearth.Statistics runs={self.runs} last_ns={self.last_ns} "
                f"copied_bytes={self.copied_bytes}>")


def add():
    """Gives the classes of the module their methods."""
    for native, python in ((Compilation, _Compilation), (Execution, _Execution), (Run, _Run),
                           (Tensor, _Tensor), (Device, _Device), (Statistics, _Statistics)):
        for name, value in vars(python).items():
            if name not in ("__module__", "__dict__", "__weakref__", "__doc__", "__qualname__",
                            "__firstlineno__", "__static_attributes__"):
                if callable(value):
                    value.__qualname__ = f"{native.__name__}.{name}"
                setattr(native, name, value)
