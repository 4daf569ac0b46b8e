# SPDX-License-Identifier: Apache-2.0
"""Runs .tflite models with Hearth.

    import hearth, numpy

    model = hearth.Model("model.tflite").compile()
    outputs = model.run({"image": numpy.zeros((1, 224, 224, 3), numpy.float32)})

Every start after the first finds packed weights in a store that all processes share; a compilation's
`start_report` says what was found. Inputs are arrays of NumPy or of anything with DLPack or the
buffer protocol: by name, as a sequence, or a single one. Memory of Tensor.empty() is used in place.
"""

import os

from . import _files, _hearth, _methods, _options, errors
from ._hearth import Compilation, Device, Execution, Run, Statistics, Tensor
from ._model import Model, describe_container
from .errors import Error

__all__ = ["Compilation", "Device", "Error", "Execution", "Model", "Run", "Statistics", "Tensor",
           "delegate_library", "describe_container", "devices", "errors", "flush", "tflite_library", "version"]
__version__ = _hearth._version()

_methods.add()


def delegate_library():
    """The path of libhearth_delegate.so, for load_delegate() of LiteRT; its name, which the system
    finds, if it is not beside this package."""
    return _files.find("lib", "libhearth_delegate.so") or "libhearth_delegate.so"


def devices():
    """All devices, in the order of preference."""
    return _hearth._devices()


def flush(timeout=None):
    """Waits until packed weights are written for the next start."""
    _hearth._flush(_options.seconds(timeout))


def tflite_library():
    """The path of libtensorflowlite_c.so, for programs that open TensorFlow Lite's C library; its name,
    which the system finds, if Hearth's is neither beside this package nor installed."""
    name = "libtensorflowlite_c.so"
    found = _files.find(os.path.join("lib", "hearth-tflite"), name) or _files.find("lib", name)
    if found:
        return found
    import sysconfig  # few programs need it

    installed = os.path.join("/usr/lib", sysconfig.get_config_var("MULTIARCH") or "", "hearth-tflite", name)
    return installed if os.path.isfile(installed) else name


def version():
    """The version of the library, for example '0.1.0'."""
    return __version__
