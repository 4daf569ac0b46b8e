# SPDX-License-Identifier: Apache-2.0
"""Answers imports of TensorFlow Lite's packages with the modules here."""

import importlib
import importlib.machinery
import sys

# Modules that are answered: the module here, and the names that it has there; None stands for all.
_MODULES = {
    "tflite_runtime": (None, ()),
    "tflite_runtime.interpreter": ("interpreter", None),
    "ai_edge_litert": (None, ()),
    "ai_edge_litert.interpreter": ("interpreter", None),
    "ai_edge_litert.compiled_model": ("compiled_model", None),
    "ai_edge_litert.tensor_buffer": ("tensor_buffer", None),
    "ai_edge_litert.environment": ("environment", None),
    "ai_edge_litert.options": ("options", None),
    "ai_edge_litert.cpu_options": ("options", ("CpuKernelMode", "CpuOptions")),
    "ai_edge_litert.gpu_options": ("options", ("GpuOptions",)),
    "ai_edge_litert.cpu_kernel_mode": ("options", ("CpuKernelMode",)),
    "ai_edge_litert.hardware_accelerator": ("options", ("HardwareAccelerator",)),
    "ai_edge_litert.intel_openvino_options": ("vendor_options", None),
    "ai_edge_litert.qualcomm_options": ("vendor_options", None),
}
_TENSORFLOW = {
    "tensorflow": (None, ()),
    "tensorflow.lite": ("interpreter", ("Interpreter",)),
    "tensorflow.lite.experimental": ("interpreter", ("OpResolverType", "load_delegate")),
    "tensorflow.lite.python": (None, ()),
    "tensorflow.lite.python.interpreter": ("interpreter", None),
}
_PACKAGES = {name.rpartition(".")[0] for name in (*_MODULES, *_TENSORFLOW)}


class _Finder:
    """A finder and loader of modules. It needs none of the base classes in importlib.abc, which imports a
    dozen modules."""

    def __init__(self, modules, paths):
        self._modules = modules
        self._paths = paths

    def find_spec(self, name, path=None, target=None):
        del path, target
        if name not in self._modules:
            return None
        spec = importlib.machinery.ModuleSpec(name, self, origin="hearth.tflite",
                                              is_package=name in _PACKAGES)
        # Other modules of a package that is installed are found as they are.
        if name in _PACKAGES:
            spec.submodule_search_locations = list(self._paths.get(name, ()))
        return spec

    def create_module(self, spec):
        del spec
        return None

    def exec_module(self, module):
        source, names = self._modules[module.__name__]
        module.__version__ = _version(module.__name__)
        if source is not None:
            found = importlib.import_module(f".{source}", __package__)
            for name in found.__all__ if names is None else names:
                setattr(module, name, getattr(found, name))
        if module.__name__.partition(".")[0] == "tensorflow":
            module.__getattr__ = lambda name: _of_tensorflow(module.__name__, name)


def _version(name):
    from .. import __version__
    # Programs compare it with the first version that has what they need.
    return {"tflite_runtime": "2.14.0", "tensorflow": "2.20.0"}.get(name.partition(".")[0], __version__)


def _of_tensorflow(module, name):
    if not name.startswith("__") and f"{module}.{name}" in _TENSORFLOW:
        return importlib.import_module(f"{module}.{name}")
    raise AttributeError(f"module {module!r} has no attribute {name!r}: hearth.tflite answers for the "
                         "interpreter of tensorflow.lite, and TensorFlow is not installed.")


def install():
    """Answers imports of tflite_runtime.interpreter, ai_edge_litert.interpreter and, unless TensorFlow
    is installed, tensorflow.lite from now on, in this process."""
    import importlib.util  # not needed by those who import the interpreter from here

    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    modules = dict(_MODULES)
    if importlib.util.find_spec("tensorflow") is None:
        modules.update(_TENSORFLOW)
    paths = {}
    for name in ("tflite_runtime", "ai_edge_litert"):
        spec = importlib.util.find_spec(name)
        if spec is not None:
            paths[name] = spec.submodule_search_locations or ()
    for name in modules:
        sys.modules.pop(name, None)
    sys.meta_path.insert(0, _Finder(modules, paths))
